internal import Bytes
internal import Checkpoint
import Clocks
import EventLoop
import HTTPClient
import JSON
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import SalesforceAuth

/// `run --dry-run`: a run in which nothing is stored. The source, the stages, the rules for positions,
/// credit and dead letters are those of a run; sinks only show what they would write.
///
/// Takes no lock and writes no file and no row: what it reads are the checkpoint, stored schemas, and the
/// positions in databases.
final class DryRun {
  private let configuration: PipelineConfiguration
  private let options: RunOptions
  private let dryRun: DryRunOptions
  private let logger: Logger
  private let assembly: PipelineAssembly
  private let output: DryRunOutput

  init(
    _ configuration: PipelineConfiguration, options: RunOptions, dryRun: DryRunOptions,
    clock: ProcessClock, logger: Logger, output: DryRunOutput
  ) {
    self.configuration = configuration
    self.options = Self.bounded(options)
    self.dryRun = dryRun
    self.logger = logger
    self.assembly = PipelineAssembly(configuration: configuration, clock: clock)
    self.output = output
  }

  /// It ends at the end of the stream, whatever the pipeline file says.
  private static func bounded(_ options: RunOptions) -> RunOptions {
    var options = options
    options.limits.untilCaughtUp = true
    return options
  }

  func execute() async -> ExitCode {
    do {
      // Databases block: they get a thread that nobody else waits for.
      let worker = try EventLoop(name: "pipeline", clock: self.assembly.clock)
      return try await withTaskExecutorPreference(worker) { try await self.run() }
    } catch {
      let failure = RunFailure(error)
      self.logger.error("\(failure.message)")
      return failure.exitCode
    }
  }

  private func run() async throws -> ExitCode {
    for warning in self.configuration.securityWarnings { self.logger.warning("\(warning)") }
    let count = try self.eventCount()
    return try await OrgConnection.open(
      self.configuration.source.org, secrets: self.configuration.secrets,
      clock: self.assembly.clock, logger: self.logger
    ) { connection in
      let token = try await connection.credentials.provider.token()
      let session = Session(
        self.assembly, connection, token, retry: self.assembly.retrySchedule(self.options),
        logger: self.logger)
      return try await self.run(session, count: count)
    }
  }

  private func run(_ session: Session, count: Int) async throws -> ExitCode {
    let document = try FileCheckpointStore.peek(self.configuration.statePaths)
    try OrgChange.check(document, isOf: session.org)
    let stages = session.stages
    try await session.checkColumns(document, logger: self.logger)
    let stored = try self.dryRun.from == nil ? self.positions(document, org: session.org) : [:]

    if self.configuration.source.managed != nil, self.dryRun.from == nil,
      !stored.values.contains(where: \.isResumable)
    {
      throw RunFailure(
        .noStart,
        "no position is stored, and a dry run leaves the managed subscription alone; say where to "
          + "begin with --from earliest, latest or a replay ID")
    }

    var configuration = self.runnerConfiguration(maxEvents: count)
    configuration.serviceClock = await session.connection.credentials.serviceClock
    let watch = AllowanceWatch(session, logger: self.logger)
    // What may be spent covers all that is asked for, so nothing has to be counted later.
    if try await watch.begin(outstanding: count, maxEvents: count) == nil {
      await watch.watch(nil, maxEvents: count)
    }
    try self.output.begin(
      self.configuration, self.topics, stored: stored, count: count, allowance: watch.first)

    var options = self.assembly.sourceOptions(
      self.options, schemas: session.schemas, logger: self.logger)
    options.maxEvents = nil
    options.maxDelivered = count
    // It takes neither the subscription from a run nor a position.
    options.managed = nil
    options.beforeHandingOn = session.inquiry?.beforeHandingOn
    let source = PubSubSource(
      topics: self.topics, client: session.connection.service,
      credentials: session.connection.credentials, options: options)
    let watcher = try await SignalWatcher(clock: self.assembly.clock) {
      [interrupt = source.interrupt] in interrupt()
    }
    defer { withExtendedLifetime(watcher) {} }

    let traces = EventTraces(
      stages, sinks: self.configuration.sinks.map(\.name), showsMasked: self.dryRun.showMasked)
    let (log, output) = (
      RunLog(
        logger: self.logger, progress: nil, follows: false,
        endpoint: self.configuration.source.org.endpoint.url, clock: self.assembly.clock),
      self.output
    )
    let store = CheckpointedStore(
      sinks: self.sinks(stages, traces), deadLetters: PreviewLetters(traces)
    ) { _, _, _ in try output.show(traces.take()) }
    let runner = try PipelineRunner(
      source: source, stages: stages.pipeline, stores: [StagedStore(store)], stored: [stored],
      configuration: configuration, wallClock: { [clock = self.assembly.clock] in clock.wallTime })
    runner.onRetry = { log.retrying(topic: $0, $1, delay: $2) }
    runner.onNote = { log.note($0) }
    let result = await runner.run(reading: source.background)
    let outcome = try self.outcome(result, runner.statistics)
    for warning in ColumnCheck.warnings(
      atEndOf: stages, earlier: document?.matchedColumns ?? [:])
    {
      self.logger.warning("\(warning)")
    }
    try output.end(outcome, runner.statistics, allowance: watch.first)
    return output.deadLetters > 0 ? .data : .success
  }

  // MARK: Before it begins

  /// The limit, at least one event for each topic.
  private func eventCount() throws -> Int {
    let topics = self.configuration.source.topics.count
    let count = self.options.limits.maxEvents ?? max(DryRunOptions.standardCount, topics)
    guard count >= topics else {
      throw RunFailure(
        .maxEvents,
        "--max-events \(count) is less than the pipeline's \(topics) topics, which share it; give "
          + "at least one event to each, or choose topics with --set source.topic=NAME")
    }
    guard topics == 1 || self.dryRun.from?.isReplayID != true else {
      throw RunFailure(
        .from,
        "--from with a replay ID is for one topic, and the pipeline has \(topics); choose one with "
          + "--set source.topic=NAME")
    }
    return count
  }

  private var topics: [SourceTopic] {
    self.assembly.topics().map { topic in
      var topic = topic
      topic.start = self.dryRun.from ?? (topic.start == .managed ? nil : topic.start)
      return topic
    }
  }

  /// Where a run would begin: of each topic the position that is furthest behind.
  ///
  /// - Throws: `RunFailure` for what would keep a run from beginning.
  private func positions(
    _ document: CheckpointDocument?, org: String
  ) throws -> [String: TopicPosition] {
    let topics = self.configuration.source.topics.map(\.name)
    let databases = try SinkDatabases(self.configuration)
    try databases.checkOrg(org)
    let sinks = self.configuration.sinks
    let starting = try StartingPositions(
      topics: topics, checkpoint: (document?.topics ?? [:]).filter { topics.contains($0.key) },
      knownSinks: document.map { Array($0.sinks.keys) },
      checkpointed: sinks.filter { !$0.keepsPosition }.map { ($0.name, $0.start) },
      keepers: databases.entries.map { entry in
        StartingPositions.Keeper(
          name: entry.name,
          stored: entry.positions.map { $0.filter { topics.contains($0.key) } }, newestEpoch: nil,
          start: sinks.first { $0.name == entry.name }?.start)
      }, acceptsReset: false)
    return ([starting.checkpoint] + starting.keepers).reduce(into: [:]) { found, positions in
      found.merge(positions) { one, other in
        (other.epoch, other.nextOrdinal) < (one.epoch, one.nextOrdinal) ? other : one
      }
    }
  }

  private func runnerConfiguration(maxEvents: Int) -> RunnerConfiguration {
    var runner = self.assembly.runner(self.options)
    runner.maxEvents = maxEvents
    // All are shown, and counted in the end.
    runner.maxDeadLetters = nil
    runner.maxDeadLetterRatio = nil
    // Events are shown with the commit that they would belong to.
    runner.commitMaxEvents = 1
    // No position is kept, so none has to be found or renewed.
    runner.keepaliveWait = .zero
    return runner
  }

  private func sinks(_ stages: RunStages, _ traces: EventTraces) -> [StagedSink] {
    self.configuration.sinks.map { sink in
      let preview = PreviewSink(
        name: sink.name, sink.preview(self.configuration), traces)
      return StagedSink(preview, stages: stages.sinks[sink.name])
    }
  }

  // MARK: How it ended

  private func outcome(
    _ result: Result<RunOutcome, any Error>, _ statistics: RunStatistics
  ) throws -> DryRunOutput.Ending {
    let outcome = try result.get()
    if let refusal = PipelineRun.refusal(outcome, statistics) { throw refusal }
    switch outcome {
    case .caughtUp, .noPosition: return .caughtUp
    case .eventsReached: return .eventsReached
    case .durationReached, .outOfTime, .readingGoesOn:
      let failures = statistics.topics.compactMap { topic in
        topic.lastFailure.map { "\(topic.name): \($0)" }
      }
      guard failures.isEmpty else {
        throw RunFailure(
          .maxDuration, code: .tryAgain,
          "the time limit was reached: \(failures.joined(separator: "; "))")
      }
      return .timeReached
    case .interrupted:
      throw RunFailure(.signal, code: .tryAgain, "stopped by a signal")
    case .failed(let failure): throw failure
    case .deadLetterLimit, .allowanceSpent:
      preconditionFailure("a dry run counts neither dead letters nor the allowance: \(outcome)")
    }
  }
}

extension StartPoint {
  fileprivate var isReplayID: Bool { if case .after = self { true } else { false } }
}
