import ArgumentParser
import Clocks
import Logging
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg

@testable import PubSubETL

/// A pipeline from an org that is simulated in this process, to files.
struct SimulatedPipeline {
  static let object = "Opportunity"
  private static let text = """
    {
      "version": 1,
      "name": "opps",
      "source": {
        "type": "salesforce",
        "topic": "/data/OpportunityChangeEvent",
        "num_requested": 10,
        "snapshot": { "visibility_wait": "0s" },
        "org": {
          "endpoint": "${PUBSUB_ENDPOINT}",
          "auth": { "type": "client_credentials", "login_url": "${SF_LOGIN_URL}",
            "client_id": "${SF_CLIENT_ID}", "client_secret": "${SF_CLIENT_SECRET}" }
        }
      },
      "sinks": [ { "type": "files", "directory": "out" } ],
      "commit": { "max_delay": "10ms" },
      "checkpoint": { "type": "file", "directory": "state" }
    }
    """

  let org: OrgServer
  private let sample: SamplePipeline

  /// - Parameter existing: the number of records from before the first event; nil for an org
  ///   without REST.
  init(
    events: Int = 0, existing: Int? = nil, deliveryLimit: Int = 10_000_000
  ) async throws {
    self.org = try await OrgServer {
      $0.isPlaintext = true
      $0.org.topics = ["/data/OpportunityChangeEvent"]
      $0.org.events = events
      $0.org.existing = existing
      $0.org.deliveryLimit = deliveryLimit
      $0.org.keepaliveInterval = 50
    }
    self.sample = try SamplePipeline()
  }

  /// - Parameter changing: changes the text of the pipeline file.
  func load(
    start: String? = "earliest", sets: [String] = [], environment: [String: String] = [:],
    changing: (String) -> String = { $0 }
  ) throws -> PipelineConfiguration {
    var configuration = try self.sample.load(
      changing(Self.text), sets: sets + (start.map { ["source.start=\($0)"] } ?? []),
      environment: self.org.environment.merging(environment) { $1 })
    // Less than a pipeline file may have.
    configuration.run.quiet = .milliseconds(100)
    return configuration
  }

  /// The directory of the pipeline file.
  var base: String { self.sample.base }

  /// - Parameters:
  ///   - onMessage: receives the messages of the log.
  ///   - onLine: receives them with their level: `warning: …`.
  func makeRun(
    _ configuration: PipelineConfiguration, _ arguments: [String] = [],
    purpose: RunPurpose = .export,
    interruption: Interruption = Interruption(deadline: nil, clock: ProcessClock()),
    onMessage: @escaping @Sendable (String) -> Void = { _ in },
    onLine: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> PipelineRun {
    PipelineRun(
      configuration, options: try RunOptions.parse(arguments),
      purpose: purpose, interruption: interruption, clock: ProcessClock(),
      logger: self.logger(onLine, onMessage), progress: nil)
  }

  func logger(
    _ onLine: @escaping @Sendable (String) -> Void,
    _ onMessage: @escaping @Sendable (String) -> Void = { _ in }
  ) -> Logger {
    Logger(label: "test") { _ in MessageHandler(onLine: onLine, onMessage: onMessage) }
  }
}

/// Passes the messages of a log on.
private struct MessageHandler: LogHandler {
  let onLine: @Sendable (String) -> Void
  let onMessage: @Sendable (String) -> Void
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info

  init(
    onLine: @escaping @Sendable (String) -> Void, onMessage: @escaping @Sendable (String) -> Void
  ) {
    (self.onLine, self.onMessage) = (onLine, onMessage)
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    self.onLine("\(event.level): \(event.message)")
    self.onMessage("\(event.message)")
  }
}
