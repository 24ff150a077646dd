internal import Clocks
internal import EventLoop
import HTTP2Transport
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceAuth
import SalesforceREST
import SchemaStore

/// The columns that a run's events would have with the current schemas.
struct PlannedLayouts {
  /// The layouts after the stages of the pipeline; one per topic, in the pipeline file's order.
  var layouts: [RecordLayout] = []
  /// The layouts before the stages.
  var inputs: [RecordLayout] = []
  /// Topics whose schemas the service reveals only with the events.
  var unknown: [String] = []
  /// How the fields of `inputs` are classified, if stages mask by classification.
  var classification: OrgClassification?

  /// Logs in and asks the service. Subscribes to nothing, so no deliveries are counted.
  static func ask(_ configuration: PipelineConfiguration) async throws -> PlannedLayouts {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, credentials in
      let org = try await credentials.provider.token().organizationID
      let schemas = assembly.schemas(ofOrg: org)
      let inquiry = ClassificationInquiry(configuration, credentials)
      let stages = assembly.stages(ofOrg: org, inquiry?.known).pipeline
      var planned = PlannedLayouts(classification: inquiry?.known)
      for topic in configuration.source.topics {
        guard let layout = try await assembly.layout(of: topic.name, service, credentials, schemas)
        else {
          planned.unknown.append(topic.name)
          continue
        }
        try await inquiry?.prepare([layout])
        planned.inputs.append(layout)
        planned.layouts.append(try stages.layout(for: layout))
      }
      return planned
    }
  }

  /// Asks on behalf of a run: waits out a short outage of the service, leaves refused topics to the
  /// streams, and leaves unreadable schemas to the dead letters.
  ///
  /// - Parameters:
  ///   - retry: how long to wait for the service.
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  static func askPatiently(
    _ configuration: PipelineConfiguration, _ credentials: OrgCredentials, _ schemas: SchemaCache,
    retry: RetrySchedule, onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> PlannedLayouts {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, _ in
      var planned = PlannedLayouts()
      var asking = Patience(credentials: credentials, retry: retry)
      for topic in configuration.source.topics {
        let layout = try await asking.ask("schema of \(topic.name)", onRetry) {
          try await assembly.layout(of: topic.name, service, credentials, schemas)
        }
        if let layout { planned.inputs.append(layout) } else { planned.unknown.append(topic.name) }
      }
      return planned
    }
  }

  /// The layouts of objects' events, by object, as their topics would deliver them, without refused
  /// ones.
  ///
  /// - Parameters:
  ///   - retry: how long to wait for the service.
  ///   - objects: the objects, with the topics that deliver their events.
  ///   - isRenewed: stored schemas are out of date.
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  static func askPatiently(
    _ configuration: PipelineConfiguration, _ credentials: OrgCredentials, _ schemas: SchemaCache,
    retry: RetrySchedule, objects: [(entity: String, topic: String)], isRenewed: Bool = false,
    onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> [String: RecordLayout] {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, _ in
      var layouts: [String: RecordLayout] = [:]
      var asking = Patience(credentials: credentials, retry: retry)
      for (entity, topic) in objects {
        layouts[entity] = try await asking.ask("schema of \(entity)", onRetry) {
          try await assembly.layout(
            of: TopicName.changes(of: entity), for: topic, service, credentials, schemas,
            isRenewed: isRenewed)
        }
      }
      return layouts
    }
  }

  /// Replaces layouts that the descriptions of their objects show to be of outdated schemas.
  static func renew(
    _ layouts: inout [String: RecordLayout], described: [String: ObjectDescription],
    _ configuration: PipelineConfiguration, _ credentials: OrgCredentials, _ schemas: SchemaCache,
    retry: RetrySchedule, objects: [(entity: String, topic: String)],
    onRetry: (PubSubError, Duration) throws -> Void
  ) async throws {
    let outdated = objects.filter { entity, _ in
      guard let layout = layouts[entity], let object = described[entity] else { return false }
      return SnapshotPlan(layout, object).isOfOutdatedSchema
    }
    guard !outdated.isEmpty else { return }
    let renewed = try await Self.askPatiently(
      configuration, credentials, schemas, retry: retry, objects: outdated, isRenewed: true,
      onRetry: onRetry)
    layouts.merge(renewed) { _, new in new }
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
        var failure = PubSubError(error, operation: what)
        guard !(error is RunFailure), !(error is EventDecodingError),
          await self.mayPass(failure, &refusals)
        else { return nil }
        let now = ProcessClock.now
        guard let delay = self.retries.failed(at: now, random: .random(in: 0..<1)) else {
          failure.message += self.retries.verdict(at: now)
          throw failure
        }
        try onRetry(failure, delay)
        try await ProcessClock.sleep(for: delay)
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

extension PipelineAssembly {
  /// The layout of a topic's events in its current schema; nil for a channel, whose schemas come
  /// with its events.
  ///
  /// - Parameters:
  ///   - other: the topic that delivers the events, if different.
  ///   - isRenewed: a stored schema is out of date.
  fileprivate func layout(
    of topic: String, for other: String? = nil, _ service: PubSubClient<HTTP2ClientTransport>,
    _ credentials: OrgCredentials, _ schemas: SchemaCache, isRenewed: Bool = false
  ) async throws -> RecordLayout? {
    let used = try await credentials.credentials()
    let found = try await service.subscribableTopic(topic, credentials)
    await credentials.worked(used)
    guard !found.schemaID.isEmpty else { return nil }
    let json = try await schemas.json(of: found.schemaID, isRenewed: isRenewed) {
      try await service.schema(id: found.schemaID, credentials: used).json
    }
    return try AvroEventDecoder(
      json: json, schemaID: found.schemaID, topic: other ?? topic, options: self.decoding
    ).layout
  }
}
