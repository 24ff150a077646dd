internal import Clocks
internal import EventLoop
import HTTPClient
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceAuth
import SalesforceREST
import SchemaStore

/// The columns that a run's events would have with the current schemas.
struct PlannedLayouts {
  /// The layouts after the stages of the pipeline, in the pipeline file's order: one per topic, then
  /// one per object without change events.
  var layouts: [RecordLayout] = []
  /// The layouts before the stages.
  var inputs: [RecordLayout] = []
  /// Topics whose schemas the service reveals only with the events.
  var unknown: [String] = []
  /// How the fields of `inputs` are classified, if stages mask by classification.
  var classification: OrgClassification?
}

extension Session {
  /// The columns that events would have now. Subscribes to nothing, so no deliveries are counted.
  func plannedLayouts() async throws -> PlannedLayouts {
    var planned = PlannedLayouts(classification: self.inquiry?.known)
    for topic in self.configuration.source.topics {
      guard let layout = try await self.layout(of: topic.name) else {
        planned.unknown.append(topic.name)
        continue
      }
      planned.inputs.append(layout)
    }
    try await self.addOnlyRead(to: &planned.inputs)
    planned.inputs += try await self.polledObjects().map(\.layout)
    try await self.inquiry?.prepare(planned.inputs)
    for layout in planned.inputs {
      planned.layouts.append(try self.stages.pipeline.layout(for: layout))
    }
    return planned
  }

  /// The columns before the stages, for a run: waits out a short outage of the service, leaves refused
  /// topics to the streams, and leaves unreadable schemas to the dead letters.
  ///
  /// - Parameter onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  func inputLayouts(
    onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> PlannedLayouts {
    var planned = PlannedLayouts()
    var asking = Patience(credentials: self.connection.credentials, retry: self.retry)
    for topic in self.configuration.source.topics {
      let layout = try await asking.ask("schema of \(topic.name)", onRetry) {
        try await self.layout(of: topic.name)
      }
      if let layout { planned.inputs.append(layout) } else { planned.unknown.append(topic.name) }
    }
    try await self.addOnlyRead(to: &planned.inputs, onRetry: onRetry)
    planned.inputs += try await self.polledObjects(onRetry: onRetry).map(\.layout)
    return planned
  }

  /// The layouts of objects' events, by object, as their topics would deliver them, without refused
  /// ones.
  ///
  /// - Parameters:
  ///   - objects: the objects, with the topics that deliver their events.
  ///   - isRenewed: stored schemas are out of date.
  ///   - retry: how long to wait for the service; nil: as long as the session does.
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  func layouts(
    of objects: [(entity: String, topic: String)], isRenewed: Bool = false,
    retry: RetrySchedule? = nil, onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> [String: RecordLayout] {
    var layouts: [String: RecordLayout] = [:]
    var asking = Patience(
      credentials: self.connection.credentials, retry: retry ?? self.retry)
    for (entity, topic) in objects {
      layouts[entity] = try await asking.ask("schema of \(entity)", onRetry) {
        try await self.layout(
          of: TopicName.changes(of: entity), for: topic, isRenewed: isRenewed)
      }
    }
    return layouts
  }

  /// Replaces layouts that the descriptions of their objects show to be of outdated schemas.
  func renew(
    _ layouts: inout [String: RecordLayout], described: [String: ObjectDescription],
    objects: [(entity: String, topic: String)], onRetry: (PubSubError, Duration) throws -> Void
  ) async throws {
    let outdated = objects.filter { entity, _ in
      guard let layout = layouts[entity], let object = described[entity] else { return false }
      return SnapshotPlan(layout, object).isOfOutdatedSchema
    }
    guard !outdated.isEmpty else { return }
    let renewed = try await self.layouts(of: outdated, isRenewed: true, onRetry: onRetry)
    layouts.merge(renewed) { _, new in new }
  }

  /// The layout of a topic's events in its current schema; nil for a channel, whose schemas come
  /// with its events.
  ///
  /// - Parameters:
  ///   - other: the topic that delivers the events, if different.
  ///   - isRenewed: a stored schema is out of date.
  private func layout(
    of topic: String, for other: String? = nil, isRenewed: Bool = false
  ) async throws -> RecordLayout? {
    let used = try await self.connection.credentials.credentials()
    let found = try await self.connection.subscribableTopic(topic)
    await self.connection.credentials.worked(used)
    guard !found.schemaID.isEmpty else { return nil }
    let json = try await self.schemas.json(of: found.schemaID, isRenewed: isRenewed) {
      try await self.connection.service.schema(id: found.schemaID, credentials: used).json
    }
    return try AvroEventDecoder(
      json: json, schemaID: found.schemaID, topic: other ?? topic, options: self.assembly.decoding
    ).layout
  }
}

/// Retries temporary failures.
private struct Patience {
  let credentials: OrgCredentials
  private var retries: Retries

  init(credentials: OrgCredentials, retry: RetrySchedule) {
    self.credentials = credentials
    self.retries = Retries(retry)
  }

  /// - Returns: nil if the answer is a refusal or unreadable.
  mutating func ask<Value>(
    _ what: String, _ onRetry: (PubSubError, Duration) throws -> Void,
    _ body: () async throws -> Value?
  ) async throws -> Value? {
    var refusals = 0
    while true {
      do {
        let value = try await body()
        self.retries.succeeded()
        return value
      } catch {
        // A signal makes the request fail, and nothing is retried after it.
        try Task.checkCancellation()
        var failure = PubSubError(error, operation: what)
        guard !(error is RunFailure), !(error is EventDecodingError),
          await self.mayPass(failure, &refusals)
        else { return nil }
        let now = self.credentials.http.clock.now
        guard let delay = self.retries.failed(at: now, random: .random(in: 0..<1)) else {
          failure.message += self.retries.verdict(at: now)
          throw failure
        }
        try onRetry(failure, delay)
        try await self.credentials.http.clock.sleep(for: delay)
      }
    }
  }

  /// Replaces a refused token.
  ///
  /// - Parameter refusals: the number of refused tokens for this topic. A topic that is refused
  ///   with every token is left to its stream, which reports it.
  private func mayPass(_ failure: PubSubError, _ refusals: inout Int) async -> Bool {
    switch failure.disposition(sentReplayID: false) {
    case .retry: return true
    case .reauthenticate:
      refusals += 1
      // Nobody else logs in yet, so this is the token that was used.
      guard refusals < 3, let used = try? await self.credentials.credentials() else {
        return false
      }
      return await self.credentials.refused(used)
    default: return false
    }
  }
}
