internal import Checkpoint
internal import Clocks
import JSON
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceREST
import SchemaStore

/// An object without change events, as the org describes it.
struct PolledObject {
  let description: ObjectDescription
  /// Milliseconds since 1970.
  let describedAt: Int64
  /// When its fields were found to be others than before; milliseconds since 1970.
  let changedAt: Int64
  /// The layout that its change events would have.
  let layout: RecordLayout

  var entity: String { self.description.name }
  var fields: [FieldDescription] { self.description.fields.map { FieldDescription($0) } }
}

/// The descriptions of a pipeline's objects that are not only read through their change events, from a
/// file beside the checkpoint or from the org. Nothing depends on the file: without it, the org is
/// asked, and all records of objects without change events are read once more.
struct PolledDescriptions {
  /// A description and its age.
  struct Entry {
    var description: ObjectDescription
    /// Milliseconds since 1970.
    var describedAt: Int64
    var changedAt: Int64
  }

  /// The age after which a description is renewed. New fields come to the copy that much later.
  private static let usualAge: Int64 = 24 * 3_600_000
  /// The age at which no description is used any more.
  private static let maxAge: Int64 = 7 * usualAge
  /// The number of descriptions that are renewed in a run although they can still be used. This
  /// spreads the calls over several runs.
  private static let renewedCount = 4

  private let paths: StatePaths
  private let org: String
  private(set) var entries: [String: Entry] = [:]
  /// The objects whose descriptions can be used as they are.
  private var usable: Set<String> = []
  private var hasChanged = false

  /// - Parameter now: milliseconds since 1970.
  init(_ paths: StatePaths, org: String, at now: Int64) {
    self.paths = paths
    self.org = org
    guard let text = try? TextFile.read(paths.lookups),
      let json = try? JSONValue(parsing: text), json["org"]?.string == org
    else { return }
    for entry in json["objects"]?.array ?? [] {
      guard let description = entry["description"].flatMap({ ObjectDescription(stored: $0) }),
        let describedAt = entry["described_at_ms"]?.integer,
        let changedAt = entry["changed_at_ms"]?.integer
      else { continue }
      self.entries[description.name] = Entry(
        description: description, describedAt: describedAt, changedAt: changedAt)
    }
    // A time in the future shows no age.
    let known = self.entries.filter { (0..<Self.maxAge).contains(now - $0.value.describedAt) }
    let old = known.filter { now - $0.value.describedAt >= Self.usualAge }
      .sorted { ($0.value.describedAt, $0.key) < ($1.value.describedAt, $1.key) }
    self.usable = Set(known.keys).subtracting(old.prefix(Self.renewedCount).map(\.key))
  }

  /// A description that need not be renewed now.
  func usable(_ entity: String) -> Entry? {
    self.usable.contains(entity) ? self.entries[entity] : nil
  }

  /// - Returns: the entry, whose fields have changed only if the schema made of them has.
  @discardableResult
  mutating func note(_ description: ObjectDescription, at now: Int64) -> Entry {
    let schema = try? PolledSchema(description)
    var changedAt = now
    if let known = self.entries[description.name], known.changedAt <= now,
      (try? PolledSchema(known.description)) == schema
    {
      changedAt = known.changedAt
    }
    let entry = Entry(description: description, describedAt: now, changedAt: changedAt)
    self.entries[description.name] = entry
    self.hasChanged = true
    return entry
  }

  /// Forgets descriptions that have proved wrong. The time of the last change stays, so that a
  /// description that is the same after all causes no read of all records.
  mutating func outdate(_ objects: Set<String>) {
    for object in objects where self.entries[object] != nil {
      self.entries[object]?.describedAt = 0
      self.hasChanged = true
    }
  }

  /// Writes the file if it is out of date. Objects that are no longer read are left out.
  func store(_ objects: [String], hiding secrets: SecretMask) throws {
    guard self.hasChanged else { return }
    let entries = objects.compactMap { self.entries[$0] }.map { entry -> JSONValue in
      [
        "described_at_ms": .integer(entry.describedAt), "changed_at_ms": .integer(entry.changedAt),
        "description": entry.description.json,
      ]
    }
    try self.paths.replace(
      self.paths.lookups, with: ["org": .string(self.org), "objects": .array(entries)],
      hiding: secrets, isDurable: false)
  }
}

extension Session {
  /// Makes the next run ask for descriptions that have proved wrong in this one.
  func outdateDescriptions(of objects: Set<String>) throws {
    guard !objects.isEmpty else { return }
    var descriptions = PolledDescriptions(
      self.configuration.statePaths, org: self.org, at: self.assembly.clock.wallTime)
    descriptions.outdate(objects)
    try descriptions.store(
      self.configuration.source.describedObjects, hiding: self.configuration.secrets)
  }

  /// The objects without change events that can be described.
  ///
  /// - Parameters:
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  ///   - onFailure: receives why an object cannot be read in this run.
  /// - Throws: `RunFailure` for an object that cannot be read in any run.
  func polledObjects(
    onRetry: (PubSubError, Duration) throws -> Void = { _, _ in },
    onFailure: (_ entity: String, String) -> Void = { _, _ in }
  ) async throws -> [PolledObject] {
    let names = self.configuration.source.lookups.objects
    guard !names.isEmpty else { return [] }
    let client = self.connection.makeRESTClient()
    var descriptions = PolledDescriptions(
      self.configuration.statePaths, org: self.org, at: client.clock.wallTime)
    var objects: [PolledObject] = []
    for (index, name) in names.enumerated() {
      let now = client.clock.wallTime
      do {
        let entry: PolledDescriptions.Entry
        if let known = descriptions.usable(name) {
          entry = known
        } else {
          entry = descriptions.note(try await self.describe(name, client, onRetry), at: now)
        }
        objects.append(
          PolledObject(
            description: entry.description, describedAt: entry.describedAt,
            changedAt: entry.changedAt, layout: try self.layout(of: entry.description)))
      } catch let error as RESTError {
        if let known = descriptions.entries[name], error.disposition == .retry {
          objects.append(
            PolledObject(
              description: known.description, describedAt: known.describedAt,
              changedAt: known.changedAt,
              layout: try self.layout(of: known.description)))
        } else if error.disposition == .configuration || error.status == 404 {
          throw RunFailure(
            .lookup,
            "/source/lookups/objects/\(index): \(name) cannot be read: \(error.message)"
              + (error.status == 404
                ? "; check the name, and the run-as user's permission to read the object" : ""))
        } else {
          onFailure(name, error.message)
        }
      }
    }
    if self.keepsSchemas {
      do {
        try descriptions.store(
          self.configuration.source.describedObjects, hiding: self.configuration.secrets)
      } catch {
        onFailure(
          names.joined(separator: ", "), "descriptions are not kept for later runs: \(error)")
      }
    }
    return objects
  }

  func describe(
    _ entity: String, _ client: RESTClient, _ onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> ObjectDescription {
    var retries = Retries(self.retry)
    while true {
      do {
        let description = try await client.describe(entity)
        guard description.name == entity else {
          throw RESTError(
            .configuration, "the org writes the name \(description.name)")
        }
        return description
      } catch let error as RESTError where error.disposition == .retry {
        guard let delay = retries.failed(at: client.clock.now, random: .random(in: 0..<1)) else {
          throw error
        }
        try onRetry(
          PubSubError(error, operation: "description of \(entity)"), delay)
        try await client.clock.sleep(for: delay)
      }
    }
  }

  private func layout(of object: ObjectDescription) throws -> RecordLayout {
    try self.layout(of: PolledSchema(object), object.name)
  }

  func layout(of schema: PolledSchema, _ entity: String) throws -> RecordLayout {
    try AvroEventDecoder(
      json: schema.json, schemaID: schema.id, topic: TopicName.changes(of: entity),
      options: self.assembly.decoding
    ).layout
  }
}
