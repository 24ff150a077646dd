internal import Bytes
internal import Checkpoint
internal import Clocks
import EventLoop
import GRPCCore
import Glibc
import HTTP2Transport
import HTTPClient
import JSON
import Logging
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceAuth
import SalesforceREST
import SchemaStore

/// One run, from the lock to the report. Everything except the streams happens on a dedicated
/// thread, because sinks block.
final class PipelineRun {
  let configuration: PipelineConfiguration
  let options: RunOptions
  private let purpose: RunPurpose
  let logger: Logger
  private let log: RunLog
  private let assembly: PipelineAssembly
  private let interruption: Interruption
  /// The source of the run's tokens; nil before the first login.
  private var provider: AccessTokenProvider?
  /// The runner has begun to read, so from now on it ends the run itself.
  private var isReading = false
  var report: RunReport
  /// No other run uses the state directory, so this one counts as a run of the pipeline.
  private(set) var hasLock = false
  /// The org's instance URL at the last commit, if it has changed since.
  private var formerInstance: String?

  init(
    _ configuration: PipelineConfiguration, options: RunOptions, purpose: RunPurpose,
    interruption: Interruption, logger: Logger, progress: LiveProgress?
  ) {
    self.configuration = configuration
    self.options = options
    self.purpose = purpose
    self.interruption = interruption
    self.logger = logger
    self.log = RunLog(
      logger: logger, progress: progress,
      follows: options.limits.until(configuration.run) == .forever,
      endpoint: configuration.source.org.endpoint.url)
    self.assembly = PipelineAssembly(configuration: configuration)
    let now = UTCTime.now()
    self.report = RunReport(
      pipeline: configuration.name, file: configuration.file, startedAt: now, finishedAt: now,
      exitCode: .internal, reason: EndReason.internal.rawValue)
    self.report.deadLetterDirectory = configuration.deadLetter.directory
  }

  /// Runs and leaves the outcome in `report`.
  func execute() async {
    do {
      let watcher = try await SignalWatcher { [interruption] in interruption.ask() }
      defer { withExtendedLifetime(watcher) {} }
      // Sinks block, so they get a thread that nothing else waits for.
      let worker = try EventLoop(name: "pipeline")
      try await withTaskExecutorPreference(worker) { try await self.run() }
    } catch {
      self.failed(error)
    }
    await self.provider?.settle(within: RunnerConfiguration.stopPatience)
    self.report.finishedAt = UTCTime.now()
    self.report.retries = self.log.retries
    self.log.finish(self.report)
    if let message = self.report.message, self.report.exitCode != .success {
      self.logger.error("\(message)")
    }
  }

  /// Failures that also occur when the org was moved and its streams started again.
  private static let streamFaults: Set<String> = [
    EndReason.otherStream.rawValue, "subscription_fetch_replayid_corrupted",
  ]

  private func failed(_ error: any Error) {
    var failure = RunFailure(error)
    // A failure that the user has to fix is still reported, and a database that did not come back.
    if self.interruption.isAsked, !self.isReading, failure.reason != .databaseUnavailable,
      error is CancellationError || [.unavailable, .tryAgain].contains(failure.exitCode)
    {
      self.endBySignal()
      return
    }
    if let formerInstance, Self.streamFaults.contains(failure.word) {
      failure.message +=
        ". The org's instance URL was \(formerInstance) before and has changed, as when "
        + "Salesforce moves an org"
    }
    self.report.exitCode = failure.exitCode
    self.report.reason = failure.word
    self.report.message = failure.message
    // A run on another host, detected by its lease, is never expected; two runs are a mistake.
    if failure.reason == .alreadyRunning, !self.hasLock,
      self.configuration.run.ifRunning == .skip
    {
      self.report.exitCode = .success
    }
  }

  private func run() async throws {
    for warning in self.configuration.securityWarnings { self.logger.warning("\(warning)") }
    let deadline = self.interruption.deadline
    let store = try await self.lockedStore(until: deadline)
    self.hasLock = true
    // The lock needs no permission to write; without this check, the first commit would fail.
    let state = self.configuration.checkpoint.directory
    if let failure = LocalCheck.stateFailure(self.configuration, LocalCheck.obstacle(to: state)) {
      throw failure
    }
    self.tellStatus()
    defer { WaitingRecord.remove(self.configuration.statePaths) }
    let document = try store.load()
    let credentials = OrgCredentials(
      self.configuration.source.org, secrets: self.configuration.secrets,
      onRenewal: { [logger] in
        logger.info("token renewed", metadata: ["org": "\($0.organizationID)"])
      }, onNotice: { [logger] in logger.warning("\($0)") },
      onExchange: ServiceLog.exchanges(self.logger))
    self.provider = credentials.provider
    let token = try await self.login(credentials, until: deadline)
    let org = token.organizationID
    try OrgChange.check(document, isOf: org)
    self.formerInstance = document?.instance.flatMap { $0 == token.instanceURL ? nil : $0 }
    let succession = try document.map {
      try SinkSuccession($0, sinks: self.configuration.sinkPlaces, now: UTCTime.now())
    }
    let schemas = self.assembly.schemas(ofOrg: org, logger: self.logger)
    defer {
      let counts = schemas.counts
      self.report.schemas = RunReport.Schemas(
        fetched: Int64(counts.fetched), cached: Int64(counts.cached))
    }
    let inquiry = ClassificationInquiry(
      self.configuration, credentials, retry: self.assembly.retrySchedule(self.options),
      logger: self.logger)
    let stages = self.assembly.stages(ofOrg: org, inquiry?.known)
    let matched = document?.matchedColumns ?? [:]
    try await self.checkColumns(
      stages, credentials, schemas, inquiry, earlier: matched, until: deadline)
    let context = SinkContext(
      configuration: self.configuration, org: org, options: self.options,
      owner: try self.assembly.owner(store), retry: self.assembly.retrySchedule(self.options),
      logger: self.logger, log: self.log,
      interruption: self.interruption)
    let sinks = self.configuration.sinks.map { $0.runSink(context) }
    let faults = try sinks.flatMap { try $0.survey(from: succession?.states[$0.name]) }
    if document == nil { for sink in sinks { try sink.checkIsNew() } }
    try self.noteAccepted(faults)
    defer { for sink in sinks { sink.close() } }
    for sink in sinks { try sink.connect() }
    let stored = try self.startingPositions(document, sinks)
    for sink in sinks { try sink.recover() }
    let deadLetters = try context.deadLetters(recoveredFrom: document?.deadLetters)
    let removedSinks = try SinkRegistry.finishRemoved(
      succession, pipeline: self.configuration.name, org: org
    ) { self.logger.log(level: $0, "\($1)") }
    let positionStates = Dictionary(
      uniqueKeysWithValues: sinks.compactMap { sink in
        if case .ownPosition(let keeper) = sink.store {
          (sink.name, keeper.checkpointState)
        } else {
          nil
        }
      })

    var runner = self.assembly.runner(self.options)
    // The time already spent, perhaps waiting for another run, counts.
    runner.maxDuration = deadline.map { max(.zero, $0 - ProcessClock.now) }
    if let date = await credentials.provider.serverDate,
      let readAt = await credentials.provider.serverDateReadAt
    {
      runner.serviceClock = ServiceClock(reading: date * 1000, readAt: readAt)
      self.report.startClock = .service
    }
    let watch = AllowanceWatch(
      self.configuration, credentials, retry: self.assembly.retrySchedule(self.options),
      logger: self.logger)
    let (outstanding, maxEvents) = (
      runner.window * self.configuration.source.topics.count, runner.maxEvents
    )
    runner.allowance = try await Self.within(deadline, "the org's limits could be read") {
      try await watch.begin(outstanding: outstanding, maxEvents: maxEvents)
    }
    let transport = try self.assembly.transport()
    let client = GRPCClient(transport: transport)
    var options = self.assembly.sourceOptions(
      self.options, schemas: schemas, logger: self.logger)
    options.allowance = runner.allowance
    if let inquiry {
      options.beforeHandingOn = { schemas async throws(SourceFailure) in
        try await inquiry.prepare(schemas)
      }
    }
    let source = PubSubSource(
      topics: self.assembly.topics(),
      client: PubSubClient(client, onTrace: ServiceLog.calls(self.logger)),
      credentials: credentials, options: options)
    defer { withExtendedLifetime(store) {} }

    let checkpoints = CheckpointPace(store, isNeeded: self.configuration.needsCheckpoint)
    // Positions of topics that are no longer in the pipeline file are kept, so that a misspelled
    // name does not lose the position of the correct one.
    let ownTopics = Set(self.configuration.source.topics.map(\.name))
    let otherTopics = document?.topics.filter { !ownTopics.contains($0.key) } ?? [:]
    let staged = self.assembly.staged(sinks, stages)
    let checkpointed = CheckpointedStore(
      sinks: staged.checkpointed, deadLetters: deadLetters
    ) { topics, states, letters in
      var next = CheckpointDocument(
        pipeline: self.configuration.name, org: org,
        topics: topics.merging(otherTopics) { own, _ in own },
        sinks: states.mapValues { SinkState($0) }.merging(positionStates) { own, _ in own },
        removedSinks: removedSinks, deadLetters: SinkState(letters))
      next.instance = token.instanceURL
      next.matchedColumns = stages.matched(since: matched)
      try checkpoints.save(next)
    }
    let snapshot =
      self.options.limits.maxEvents != nil
      ? nil
      : try await SnapshotRun.make(
        self.assembly, credentials, schemas, inquiry, sinks: sinks, files: checkpointed,
        stages: stages, purpose: self.purpose, follows: self.follows, logger: self.logger,
        wake: source.wake
      ) {
        try Self.checkTime(until: deadline, delay: $1, $0.message)
        self.log.schemasFailed($0.message, delay: $1)
      }
    self.log.schemasFetched()
    guard self.interruption.respond(source.interrupt) else { throw CancellationError() }
    self.isReading = true
    let pipeline = try PipelineRunner(
      source: source, stages: stages.pipeline,
      stores: [checkpointed] + staged.stores, stored: stored,
      reader: snapshot?.reader, configuration: runner, wallClock: UTCTime.now)
    pipeline.onRetry = { [log] in log.retrying(topic: $0, $1, delay: $2) }
    pipeline.onWaiting = { [log] in log.waiting(topic: $0, $1) }
    pipeline.onNote = { [log] in log.note($0) }
    pipeline.onProgress = { [log] in log.progressed($0, sinks: sinks) }
    // The connection and the streams run alongside the runner and end with it.
    let connections = Task { try await client.runConnections() }
    let streams = Task(operation: source.background)
    let reads = snapshot.map { Task(operation: $0.reader.background) }
    let limits = Task { [allowance = runner.allowance] in
      await watch.watch(allowance, maxEvents: maxEvents)
    }
    let result: Result<RunOutcome, any Error>
    do {
      let outcome = try await pipeline.run()
      try checkpoints.finish()
      result = .success(outcome)
    } catch {
      result = .failure(error)
    }
    await source.finish()
    self.noteManaged(source.managedProgress)
    streams.cancel()
    reads?.cancel()
    limits.cancel()
    await reads?.value
    await limits.value
    self.report.allowance = watch.first
    connections.cancel()
    await streams.value
    _ = await connections.result
    self.log.ended(pipeline.statistics, sinks: sinks)
    self.fill(statistics: pipeline.statistics, sinks: sinks)
    self.fill(reads: pipeline.statistics.reads, apiCalls: snapshot?.client.callCount ?? 0)
    for topic in pipeline.statistics.topics where topic.futureCommits > 0 {
      self.logger.warning(
        """
        \(topic.futureCommits) events were committed in the future, by the service's own clock; their \
        times say nothing about how far the topic has been read
        """,
        metadata: ["topic": "\(topic.name)"])
    }
    for warning in ColumnCheck.warnings(atEndOf: stages, earlier: matched) {
      self.logger.warning("\(warning)")
    }
    try self.conclude(result.get(), statistics: pipeline.statistics)
  }

  /// Notes accepted losses of output in the journal.
  private func noteAccepted(_ faults: [String]) throws {
    guard !faults.isEmpty else { return }
    for fault in faults { self.logger.warning("accepted: \(fault)") }
    try CheckpointJournal.append(
      self.configuration.statePaths, command: "run --accept-missing", topic: nil,
      old: .array(faults.map { .string($0) }), new: nil)
  }

  /// Stores what the run waits for where `status` finds it. Failures would also affect the
  /// checkpoint next to it, and are reported there.
  private func tellStatus() {
    let (paths, secrets) = (self.configuration.statePaths, self.configuration.secrets)
    WaitingRecord.remove(paths)
    self.log.onWaiting = { [logger] waiting in
      do {
        try WaitingRecord.store(waiting, processID: getpid(), in: paths, hiding: secrets)
      } catch {
        logger.debug("what the run waits for could not be stored for 'status': \(error)")
      }
    }
  }

  private var follows: Bool { self.options.limits.until(self.configuration.run) == .forever }

  /// Called before anything is written: a typo in `drop` must not cause the column to be exported.
  private func checkColumns(
    _ stages: RunStages, _ credentials: OrgCredentials, _ schemas: SchemaCache,
    _ inquiry: ClassificationInquiry?, earlier: [String: Set<String>],
    until deadline: ContinuousClock.Instant?
  ) async throws {
    guard self.configuration.namesColumns || inquiry != nil else { return }
    let planned = try await PlannedLayouts.askPatiently(
      self.configuration, credentials, schemas, retry: self.assembly.retrySchedule(self.options)
    ) {
      try Self.checkTime(until: deadline, delay: $1, $0.message)
      self.log.schemasFailed($0.message, delay: $1)
    }
    self.log.schemasFetched()
    if let inquiry, case let layouts = planned.inputs {
      try await Self.within(deadline, "the org had reported how fields are classified") {
        try await inquiry.prepare(layouts)
      }
    }
    for warning in try ColumnCheck(stages, planned, earlier: earlier).warnings {
      self.logger.warning("\(warning)")
    }
  }

  /// Takes the host lock; with `if_running: wait`, as soon as it is free.
  ///
  /// - Parameter deadline: the end of the run, after which it does not wait.
  private func lockedStore(
    until deadline: ContinuousClock.Instant?
  ) async throws -> FileCheckpointStore {
    while true {
      do throws(CheckpointError) {
        return try FileCheckpointStore(
          directory: self.configuration.checkpoint.directory, pipeline: self.configuration.name)
      } catch {
        guard error.code == .alreadyRunning, self.configuration.run.ifRunning == .wait else {
          throw error
        }
        let now = ProcessClock.now
        if let deadline, now >= deadline { throw error }
        let next = now + .milliseconds(500)
        try await ProcessClock.sleep(until: deadline.map { min($0, next) } ?? next)
      }
    }
  }

  private func login(
    _ credentials: OrgCredentials, until deadline: ContinuousClock.Instant?
  ) async throws -> AccessToken {
    let auth = self.configuration.source.org.auth
    self.log.loggingIn(at: auth.server?.url ?? "the org of the Salesforce CLI")
    var retries = Retries(self.assembly.retrySchedule(self.options))
    while true {
      do {
        let token = try await Self.within(deadline, "the login had answered") {
          try await credentials.provider.token()
        }
        self.log.loggedIn(token)
        return token
      } catch var error as AuthError {
        guard error.isTransient else { throw error }
        let now = ProcessClock.now
        guard let delay = retries.failed(at: now, random: .random(in: 0..<1)) else {
          error.message += retries.verdict(at: now)
          throw error
        }
        try Self.checkTime(until: deadline, delay: delay, error.message)
        try await self.log.loginFailed(error, delay: delay)
      }
    }
  }

  /// Returns the result of `body`, unless the run's time limit comes first.
  ///
  /// - Parameter what: the part of the run that the limit would end, for the message.
  private static func within<Value: Sendable>(
    _ deadline: ContinuousClock.Instant?, _ what: String,
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    guard let deadline else { return try await body() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await ProcessClock.sleep(until: deadline)
        return nil
      }
      defer { group.cancelAll() }
      guard let value = try await group.next() ?? nil else {
        throw RunFailure(
          .maxDuration, code: .tryAgain, "the time limit was reached before \(what)")
      }
      return value
    }
  }

  /// Ends the run if the next attempt would be after its time limit.
  private static func checkTime(
    until deadline: ContinuousClock.Instant?, delay: Duration, _ failure: String
  ) throws(RunFailure) {
    guard let deadline, ProcessClock.now + delay >= deadline else { return }
    throw RunFailure(
      .maxDuration, code: .tryAgain,
      "the next attempt would start after the time limit, and no event could be read yet; "
        + failure)
  }
}
