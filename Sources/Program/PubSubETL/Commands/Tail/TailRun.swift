internal import Checkpoint
import Clocks
import EventLoop
import HTTPClient
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import SalesforceAuth

/// Shows changes as they come, by the source, the stages and the rules of a run. Stores no position,
/// takes no lock, and writes no file and no row.
final class TailRun {
  private let configuration: PipelineConfiguration
  /// The sink whose stages events pass; what they mask or remove is not shown.
  private let sink: any ConfiguredSink
  private let options: RunOptions
  private let logger: Logger
  private let output: TailOutput
  private let assembly: PipelineAssembly

  /// - Parameter options: with a limit of events, if there is one.
  init(
    _ configuration: PipelineConfiguration, sink: any ConfiguredSink, options: RunOptions,
    clock: ProcessClock, logger: Logger, output: TailOutput
  ) {
    self.configuration = configuration
    self.sink = sink
    self.options = options
    self.logger = logger
    self.output = output
    self.assembly = PipelineAssembly(configuration: configuration, clock: clock)
  }

  /// Returns after a signal, or when the number of events has come.
  ///
  /// - Throws: `RunFailure` and what parts throw.
  func run() async throws {
    // Databases and terminals block: they get a thread that nobody else waits for.
    let worker = try EventLoop(name: "pipeline", clock: self.assembly.clock)
    try await withTaskExecutorPreference(worker) {
      try await OrgConnection.open(
        self.configuration.source.org, secrets: self.configuration.secrets,
        clock: self.assembly.clock, logger: self.logger
      ) { connection in
        let token = try await connection.credentials.provider.token()
        try await self.follow(
          Session(
            self.assembly, connection, token, retry: self.assembly.retrySchedule(self.options),
            logger: self.logger))
      }
    }
  }

  private func follow(_ session: Session) async throws {
    let document = try FileCheckpointStore.peek(self.configuration.statePaths)
    try OrgChange.check(document, isOf: session.org)
    try await session.checkColumns(document, logger: self.logger)
    self.learn()

    let maxEvents = self.options.limits.maxEvents
    let watch = AllowanceWatch(session, logger: self.logger)
    let outstanding =
      self.configuration.source.numRequested * self.configuration.source.topics.count
    let allowance = try await watch.begin(outstanding: outstanding, maxEvents: maxEvents)
    if allowance == nil { await watch.watch(nil, maxEvents: maxEvents) }
    self.say(
      "showing changes as they come, until Ctrl-C; each counts as one of the org's delivered events"
        + (watch.first.map {
          ": \(ProgressLine.grouped($0.remaining)) of \(ProgressLine.grouped($0.max)) are left today"
        } ?? ""))

    var options = self.assembly.sourceOptions(
      self.options, schemas: session.schemas, logger: self.logger)
    // It takes the subscription from no run.
    options.managed = nil
    options.allowance = allowance
    options.beforeHandingOn = session.inquiry?.beforeHandingOn
    let source = PubSubSource(
      topics: self.assembly.topics().map { topic in
        var topic = topic
        topic.start = .latest
        return topic
      }, client: session.connection.service, credentials: session.connection.credentials,
      options: options)
    let watcher = try await SignalWatcher(clock: self.assembly.clock) {
      [interrupt = source.interrupt] in interrupt()
    }
    defer { withExtendedLifetime(watcher) {} }
    let log = RunLog(
      logger: self.logger, progress: nil, follows: true,
      endpoint: self.configuration.source.org.endpoint.url, clock: self.assembly.clock)
    let store = CheckpointedStore(
      sinks: [
        StagedSink(
          TailSink(name: self.sink.name, self.output), stages: session.stages.sinks[self.sink.name])
      ], deadLetters: TailLetters { [logger] in logger.warning("\($0)") }
    ) { _, _, _ in }
    let runner = try PipelineRunner(
      source: source, stages: session.stages.pipeline, stores: [StagedStore(store)], stored: [[:]],
      configuration: self.runnerConfiguration(allowance),
      wallClock: { [clock = self.assembly.clock] in clock.wallTime })
    runner.onRetry = { log.retrying(topic: $0, $1, delay: $2) }
    runner.onNote = { log.note($0) }
    let result = await runner.run(reading: source.background)
    let delivered = runner.statistics.delivered
    self.say(
      "\(Phrase.count(delivered, "delivered event")) of this tail "
        + "\(delivered == 1 ? "counts" : "count") against the org's daily allowance")
    try self.conclude(result.get(), runner.statistics)
  }

  private func runnerConfiguration(_ allowance: DeliveryAllowance?) -> RunnerConfiguration {
    var runner = self.assembly.runner(self.options)
    runner.allowance = allowance
    runner.maxDeadLetters = nil
    runner.maxDeadLetterRatio = nil
    // No position is kept, so none has to be found or renewed.
    runner.keepaliveWait = .zero
    return runner
  }

  /// Reads what the copy knows, so that changes can be shown with the values before. Without a copy,
  /// only new values are shown.
  private func learn() {
    guard let sink = self.sink as? any RecallingSink else { return }
    do {
      try sink.recall(Self.learnedCount, self.configuration) { _ = self.output.learn($0) }
    } catch {
      self.say("values before the changes are not known: \(RunFailure(error).message)")
    }
  }

  /// Changes whose records are known from the beginning, in the tables of a database.
  private static let learnedCount = 1000

  private func conclude(_ outcome: RunOutcome, _ statistics: RunStatistics) throws {
    if let refusal = PipelineRun.refusal(outcome, statistics) { throw refusal }
    switch outcome {
    case .interrupted, .eventsReached, .caughtUp, .durationReached, .outOfTime, .readingGoesOn,
      .noPosition:
      return
    case .allowanceSpent:
      throw RunFailure(
        .allowance,
        "stopped, because allowance.reserve keeps the rest of the org's daily delivered events for "
          + "others")
    case .failed(let failure): throw failure
    case .deadLetterLimit: preconditionFailure("a tail counts no dead letters")
    }
  }

  /// Says something to a person; programs that read the lines are left alone.
  private func say(_ line: String) {
    guard StandardStream.error.isTerminal else { return }
    StandardStream.tell(PrintableText(line: line, hiding: self.configuration.secrets))
  }
}
