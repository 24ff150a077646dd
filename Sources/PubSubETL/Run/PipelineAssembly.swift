internal import Checkpoint
import FileSink
import GRPCCore
import Glibc
import HTTP2Transport
import Logging
import Pipeline
import PostgresSink
import PubSubAPI
import PubSubSource
import TLSStream

/// Makes the parts of a run from its configuration: the only place that knows the real ones.
struct PipelineAssembly {
  let configuration: PipelineConfiguration

  func transport() throws -> HTTP2ClientTransport {
    let org = self.configuration.source.org
    let certificate = org.tls.identity.map {
      HTTP2ClientTransport.Configuration.ClientCertificate(
        certificateFile: $0.certificateFile, keyFile: $0.keyFile)
    }
    // Ports are from 1 to 65535, or the pipeline file would have been refused.
    var configuration = HTTP2ClientTransport.Configuration(
      host: org.endpoint.host, port: UInt16(org.endpoint.port),
      security: org.endpoint.isSecure
        ? .tls(caFile: org.tls.caFile, certificate: certificate) : .plaintext)
    configuration.proxy = org.proxy.proxy(for: org.endpoint).map { proxy in
      HTTP2ClientTransport.Configuration.Proxy(
        host: proxy.host, port: UInt16(proxy.port),
        authorization: proxy.authorization.map { .init(user: $0.user, password: $0.password.value) }
      )
    }
    return try HTTP2ClientTransport(configuration: configuration)
  }

  /// Lends a connection to the service for calls with one answer. Logging in is up to `body`.
  func withService<Value>(
    _ body: (PubSubClient<HTTP2ClientTransport>, OrgCredentials) async throws -> Value
  ) async throws -> Value {
    let client = GRPCClient(transport: try self.transport())
    let connections = Task { try await client.runConnections() }
    defer { connections.cancel() }
    return try await body(
      PubSubClient(client),
      OrgCredentials(self.configuration.source.org, secrets: self.configuration.secrets))
  }

  func sinks(org: String, acceptsReset: Bool, acceptsMissing: Bool) -> [FileSink] {
    self.configuration.fileSinks.map { files in
      FileSink(
        FileSinkConfiguration(
          name: files.name, directory: files.directory,
          compressionLevel: files.compressionLevel,
          rotation: FileSinkConfiguration.Rotation(
            maxByteCount: files.rotateBytes, maxEventCount: files.rotateEvents,
            maxAge: files.rotateAge, maxIdle: files.rotateIdle),
          pipeline: self.configuration.name, org: org, int64AsStrings: files.int64 == .string,
          acceptsReset: acceptsReset, whenMissing: files.whenMissing,
          acceptsMissing: acceptsMissing, permissions: files.permissions))
    }
  }

  /// Connected to their databases.
  func databases(
    org: String, owner: LeaseOwner, options: RunOptions, logger: Logger, log: RunLog
  ) throws -> [PostgresSink] {
    try self.configuration.postgresSinks.map { settings in
      let sink = try PostgresSink(
        name: settings.name, configuration: settings.sink, pipeline: self.configuration.name,
        org: org, topics: self.configuration.source.topics.map(\.name), owner: owner,
        takesOver: options.takeOver, acceptsMissing: options.acceptMissing)
      sink.onNotice = { logger.notice("sink '\(settings.name)': \($0)") }
      sink.onRepair = { logger.warning("sink '\(settings.name)': \($0)") }
      sink.onRetry = { log.retrying(database: settings.name, $0, code: $1, delay: $2) }
      sink.onRecovery = { log.committed(database: settings.name) }
      return sink
    }
  }

  /// This process, as databases know it.
  func leaseOwner(_ store: FileCheckpointStore) throws(CheckpointError) -> LeaseOwner {
    LeaseOwner(
      place: "\(HostName.current) \(self.configuration.checkpoint.directory)",
      identity: try store.identity(), processID: getpid())
  }

  func stages() -> RunStages { RunStages(self.configuration) }

  /// Sinks as the runner sees them, behind stages of their own where there are any.
  func staged(_ sinks: [FileSink], _ stages: RunStages) -> [any CheckpointedSink] {
    sinks.map { sink -> any CheckpointedSink in
      guard let chain = stages.sinks[sink.name] else { return sink }
      return Staged(sink, stages: chain)
    }
  }

  func staged(_ databases: [PostgresSink], _ stages: RunStages) -> [any Store] {
    databases.map { sink -> any Store in
      guard let chain = stages.sinks[sink.name] else { return sink }
      return Staged(sink, stages: chain)
    }
  }

  func topics() -> [SourceTopic] {
    self.configuration.source.topics.map { topic in
      let start: StartPoint? =
        switch topic.start {
        case .earliest: .earliest
        case .latest: .latest
        case .replayID(let id): .after(id)
        case nil: nil
        }
      return SourceTopic(name: topic.name, isChannel: topic.isChannel, start: start)
    }
  }

  func sourceOptions(_ options: RunOptions, logger: Logger) -> PubSubSourceOptions {
    let until = options.until(self.configuration.run)
    var maxEvents = options.maxEvents
    if case .events(let count) = until { maxEvents = min(count, maxEvents ?? count) }
    return PubSubSourceOptions(
      window: self.configuration.source.numRequested,
      // While a batch is committed the next comes in.
      readAhead: self.configuration.commit.maxEvents, maxEvents: maxEvents,
      maxRetries: until == .forever ? nil : 8,
      recordIDs: self.decoding.recordIDs,
      isIdentityError: { ($0 as? TLSError)?.needsIntervention == true },
      onUnexpectedSchemaID: { id in
        logger.notice("schema \(id): the ID is not the fingerprint of the schema the service gave")
      })
  }

  var decoding: EventDecodingOptions {
    EventDecodingOptions(recordIDs: self.configuration.source.recordIDs == .array ? .array : .rows)
  }

  func runner(_ options: RunOptions) -> RunnerConfiguration {
    var runner = RunnerConfiguration()
    switch options.until(self.configuration.run) {
    case .caughtUp: runner.until = .caughtUp
    case .forever: runner.until = .forever
    case .events(let count): runner.until = .events(count)
    case .duration(let length): runner.until = .duration(length)
    }
    runner.quiet = self.configuration.run.quiet
    runner.maxEvents = options.maxEvents
    runner.maxDuration = options.maxDuration
    switch self.configuration.source.onInvalidReplay {
    case .fail: runner.onInvalidReplay = .fail
    case .earliest: runner.onInvalidReplay = .earliest
    case .latest: runner.onInvalidReplay = .latest
    }
    runner.maxDeadLetters = self.configuration.deadLetter.max
    runner.window = self.configuration.source.numRequested
    runner.commitMaxEvents = self.configuration.commit.maxEvents
    runner.commitMaxBytes = self.configuration.commit.maxBytes
    runner.commitMaxDelay = self.configuration.commit.maxDelay
    runner.renewAfter = self.configuration.checkpoint.renewAfter
    return runner
  }
}

extension SourceConfiguration.Topic {
  /// Several entities share the stream (contract/semantics.md section 2).
  var isChannel: Bool {
    TopicName.isChannel(self.name)
  }
}
