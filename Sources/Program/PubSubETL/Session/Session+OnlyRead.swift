internal import Clocks
import Pipeline
import PubSubAPI
import RESTSource
import SalesforceREST

// Fields that no event has, which `source.refresh` reads all the same.
extension Session {
  /// Adds the fields of `source.refresh` that no event has to the layouts of their objects, whose
  /// stored descriptions are at most a day old.
  ///
  /// - Parameters:
  ///   - described: what the org has just said about some of the objects.
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  ///   - onFailure: receives why the fields of an object are not known.
  func addOnlyRead(
    to layouts: inout [String: RecordLayout], described: [String: ObjectDescription] = [:],
    onRetry: (PubSubError, Duration) throws -> Void = { _, _ in },
    onFailure: (_ entity: String, String) throws -> Void
  ) async throws {
    let source = self.configuration.source
    guard source.refresh != nil else { return }
    let client = self.connection.makeRESTClient()
    var descriptions = PolledDescriptions(
      self.configuration.statePaths, org: self.org, at: client.clock.wallTime)
    for (entity, _, refresh) in source.refreshes {
      guard let layout = layouts[entity], refresh.mayLack(layout) else { continue }
      do {
        var object = described[entity]
        if object == nil, let known = descriptions.usable(entity)?.description {
          let extended = try self.layout(layout, with: refresh, of: known)
          // A field that is not there may be newer than the description.
          object = refresh.fields == nil || refresh.unknown(to: extended).isEmpty ? known : nil
        } else if let object {
          descriptions.note(object, at: client.clock.wallTime)
        }
        if object == nil {
          let now = client.clock.wallTime
          object =
            descriptions.note(try await self.describe(entity, client, onRetry), at: now)
            .description
        }
        if let object { layouts[entity] = try self.layout(layout, with: refresh, of: object) }
      } catch let error as RESTError {
        if error.disposition == .retry, let known = descriptions.entries[entity] {
          layouts[entity] = try self.layout(layout, with: refresh, of: known.description)
        } else {
          try onFailure(entity, error.message)
        }
      }
    }
    guard self.keepsSchemas else { return }
    do {
      try descriptions.store(source.describedObjects, hiding: self.configuration.secrets)
    } catch {
      try onFailure(
        source.refreshes.map(\.entity).joined(separator: ", "),
        "descriptions are not kept for later runs: \(error)")
    }
  }

  /// - Throws: `RESTError` if the fields are not known.
  func addOnlyRead(
    to layouts: inout [RecordLayout],
    onRetry: (PubSubError, Duration) throws -> Void = { _, _ in }
  ) async throws {
    var known = Dictionary(
      layouts.map { ($0.entity, $0) }, uniquingKeysWith: { first, _ in first })
    try await self.addOnlyRead(to: &known, onRetry: onRetry) { _, _ in }
    layouts = layouts.map { known[$0.entity] ?? $0 }
  }

  /// A layout of events with the fields of a refresh that the events do not have.
  func layout(
    _ layout: RecordLayout, with refresh: Refresh, of object: ObjectDescription
  ) throws -> RecordLayout {
    guard let schema = PolledSchema(of: refresh, object, missingIn: layout) else { return layout }
    return layout.adding(onlyRead: try self.layout(of: schema, object.name))
  }
}

extension Refresh {
  /// Whether layouts of an object's events may lack fields of the refresh.
  func mayLack(_ layout: RecordLayout) -> Bool {
    self.fields == nil || !self.unknown(to: layout).isEmpty
  }

  /// The listed fields that a layout does not have, sorted.
  func unknown(to layout: RecordLayout) -> [String] {
    let known = Set(layout.columns.lazy.filter { !$0.isMetadata }.map(\.name))
    return (self.fields ?? []).subtracting(known).sorted()
  }
}

extension SourceConfiguration {
  /// The objects whose descriptions are kept for later runs.
  var describedObjects: [String] {
    self.lookups.objects + self.refreshes.map(\.entity)
  }
}
