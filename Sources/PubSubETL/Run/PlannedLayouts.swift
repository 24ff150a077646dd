import HTTP2Transport
import Pipeline
import PubSubAPI
import PubSubSource

/// The columns that a run's events would have by the schemas of today.
struct PlannedLayouts {
  /// After the stages of the pipeline; a layout per topic, in the pipeline file's order.
  var layouts: [RecordLayout] = []
  /// The same before them.
  var inputs: [RecordLayout] = []
  /// Topics whose events have schemas that the service tells with the events alone.
  var unknown: [String] = []

  /// Logs in and asks the service. Subscribes to nothing, so costs no delivery.
  static func ask(_ configuration: PipelineConfiguration) async throws -> PlannedLayouts {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, credentials in
      let stages = assembly.stages().pipeline
      var planned = PlannedLayouts()
      for topic in configuration.source.topics {
        guard let layout = try await assembly.layout(of: topic.name, service, credentials) else {
          planned.unknown.append(topic.name)
          continue
        }
        planned.inputs.append(layout)
        planned.layouts.append(try stages.layout(for: layout))
      }
      return planned
    }
  }

  /// The same for a run: waits for a service that is not there for a moment, and leaves to the
  /// streams what is refused and to the dead letters what cannot be read.
  ///
  /// - Parameters:
  ///   - retries: nil is no limit.
  ///   - onRetry: receives each failure and the pause after it; ends the attempts by throwing.
  static func askPatiently(
    _ configuration: PipelineConfiguration, _ credentials: OrgCredentials, retries: Int?,
    onRetry: (PubSubError, Duration) throws -> Void
  ) async throws -> PlannedLayouts {
    let assembly = PipelineAssembly(configuration: configuration)
    return try await assembly.withService { service, _ in
      var planned = PlannedLayouts()
      var failures = 0
      for topic in configuration.source.topics {
        var isOpen = true
        var refusals = 0
        while isOpen {
          do {
            if let layout = try await assembly.layout(of: topic.name, service, credentials) {
              planned.inputs.append(layout)
            } else {
              planned.unknown.append(topic.name)
            }
            isOpen = false
          } catch {
            let failure = PubSubError(error, operation: "schema of \(topic.name)")
            guard !(error is RunFailure), !(error is EventDecodingError),
              await Self.mayPass(failure, credentials, &refusals)
            else {
              planned.unknown.append(topic.name)
              isOpen = false
              continue
            }
            failures += 1
            if let retries, failures > retries { throw failure }
            let delay = Duration.seconds(min(60, 1 << min(failures - 1, 6)))
            try onRetry(failure, delay)
            try await Task.sleep(for: delay)
          }
        }
      }
      return planned
    }
  }

  /// Has a token that was refused replaced.
  ///
  /// - Parameter refusals: of tokens, for this topic. A topic that is refused with every token is
  ///   left to its stream, which says so.
  private static func mayPass(
    _ failure: PubSubError, _ credentials: OrgCredentials, _ refusals: inout Int
  ) async -> Bool {
    switch failure.disposition(sentReplayID: false) {
    case .retry: return true
    case .reauthenticate:
      refusals += 1
      // Nobody else logs in yet, so it is the token that was used.
      guard refusals < 3, let used = try? await credentials.credentials() else { return false }
      return await credentials.refused(used)
    default: return false
    }
  }
}

extension PipelineAssembly {
  /// The layout of a topic's events by its schema of today; nil for a channel, whose events tell.
  fileprivate func layout(
    of topic: String, _ service: PubSubClient<HTTP2ClientTransport>, _ credentials: OrgCredentials
  ) async throws -> RecordLayout? {
    let used = try await credentials.credentials()
    let found = try await service.subscribableTopic(topic, credentials)
    await credentials.worked(used)
    guard !found.schemaID.isEmpty else { return nil }
    let schema = try await service.schema(id: found.schemaID, credentials: used)
    return try AvroEventDecoder(
      json: schema.json, schemaID: found.schemaID, topic: topic, options: self.decoding
    ).layout
  }
}
