internal import Bytes
internal import Checkpoint
internal import Clocks
import EventLoop
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
  let purpose: RunPurpose
  let logger: Logger
  let log: RunLog
  private let assembly: PipelineAssembly
  let interruption: Interruption
  /// The runner has begun to read, so from now on it ends the run itself.
  private var isReading = false
  var report: RunReport
  /// No other run uses the state directory, so this one counts as a run of the pipeline.
  private(set) var hasLock = false
  /// Has the lock.
  private var store: FileCheckpointStore?
  /// Nil if the pipeline has none.
  private let metrics: RunMetrics?
  /// Nil for a run that somebody has asked for and not a schedule.
  let incidents: IncidentWatch?
  /// The org's instance URL at the last commit, if it has changed since.
  private var formerInstance: String?

  var clock: ProcessClock { self.assembly.clock }

  init(
    _ configuration: PipelineConfiguration, options: RunOptions, purpose: RunPurpose,
    interruption: Interruption, clock: ProcessClock, logger: Logger, progress: LiveProgress?
  ) {
    self.configuration = configuration
    self.options = options
    self.purpose = purpose
    self.interruption = interruption
    self.logger = logger
    let follows = options.limits.until(configuration.run) == .forever
    self.log = RunLog(
      logger: logger, progress: progress, follows: follows,
      endpoint: configuration.source.org.endpoint.url, clock: clock)
    self.metrics = RunMetrics(configuration, clock: clock, logger: logger)
    self.incidents =
      purpose.isSnapshot
      ? nil
      : IncidentWatch(
        configuration, clock: clock, logger: logger, isMailed: options.isMailed && !follows)
    self.assembly = PipelineAssembly(configuration: configuration, clock: clock)
    let now = clock.wallTime
    self.report = RunReport(
      pipeline: configuration.name, file: configuration.file, startedAt: now, finishedAt: now,
      exitCode: .internal, reason: EndReason.internal.rawValue)
    self.report.deadLetterDirectory = configuration.deadLetter.directory
  }

  /// Runs and leaves the outcome in `report`.
  func execute() async {
    do {
      let watcher = try await SignalWatcher(clock: self.clock) { [interruption] in
        interruption.ask()
      }
      defer { withExtendedLifetime(watcher) {} }
      // Sinks block, so they get a thread that nothing else waits for.
      let worker = try EventLoop(name: "pipeline", clock: self.clock)
      try await withTaskExecutorPreference(worker) { try await self.run() }
    } catch {
      self.failed(error)
    }
    self.report.finishedAt = self.clock.wallTime
    self.report.retries = self.log.retries
    self.log.finish(self.report)
    self.report.fail(on: self.configuration.run.failOn)
    // With the lock, so that no other run counts or notifies meanwhile.
    if self.hasLock, let incidents {
      incidents.ended(self.report, isStopped: self.interruption.isAsked)
    } else if let message = self.report.message, self.report.exitCode != .success {
      self.logger.error("\(message)")
    }
    if self.hasLock {
      self.metrics?.end(self.report)
      self.noteEnd()
    }
    // A stop does not wait for notifications.
    if self.hasLock, !self.interruption.isAsked { await self.incidents?.deliver() }
    self.store = nil
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
    let store = try await self.lockedStore()
    self.store = store
    self.hasLock = true
    let hasNotice = self.beginIncidents()
    self.metrics?.begin()
    // The lock needs no permission to write; without this check, the first commit would fail.
    let state = self.configuration.checkpoint.directory
    if let failure = LocalCheck.stateFailure(self.configuration, LocalCheck.obstacle(to: state)) {
      throw failure
    }
    self.noteBeginning()
    if hasNotice { await self.incidents?.deliver() }
    self.tellStatus()
    defer { WaitingRecord.remove(self.configuration.statePaths) }
    guard self.options.limits.until(self.configuration.run) == .forever, let incidents else {
      return try await self.run(from: store)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: globalConcurrentExecutor) { await incidents.watch() }
      defer { group.cancelAll() }
      try await self.run(from: store)
    }
  }

  private func run(from store: FileCheckpointStore) async throws {
    let document = try store.load()
    self.metrics?.began(at: document)
    try await OrgConnection.open(
      self.configuration.source.org, secrets: self.configuration.secrets, clock: self.clock,
      logger: self.logger
    ) { connection in
      let token = try await self.login(connection.credentials)
      try OrgChange.check(document, isOf: token.organizationID)
      self.formerInstance = document?.instance.flatMap { $0 == token.instanceURL ? nil : $0 }
      let succession = try document.map {
        try SinkSuccession($0, sinks: self.configuration.sinkPlaces, now: self.clock.wallTime)
      }
      let session = Session(
        self.assembly, connection, token, retry: self.assembly.retrySchedule(self.options),
        logger: self.logger, keepsSchemas: true)
      self.metrics?.session = session
      defer { self.note(session.schemas.counts) }
      let matched = document?.matchedColumns ?? [:]
      try await self.checkColumns(session, earlier: matched)
      let stores = try self.openStores(session, store, document, succession)
      do {
        let result = try await self.export(session, stores)
        for warning in ColumnCheck.warnings(atEndOf: session.stages, earlier: matched) {
          self.logger.warning("\(warning)")
        }
        try result()
      } catch {
        self.failed(error)
      }
      stores.sinks.close(adding: self.recordBeforeEnd)
    }
  }

  /// Reads and writes until the run ends.
  ///
  /// - Returns: throws what ended it early, after everything else was reported.
  private func export(
    _ session: Session, _ stores: RunStores
  ) async throws -> () throws -> Void {
    var configuration = self.assembly.runner(self.options)
    // The time already spent, perhaps waiting for another run, counts.
    configuration.maxDuration = self.interruption.deadline.map { max(.zero, $0 - self.clock.now) }
    configuration.serviceClock = await session.connection.credentials.serviceClock
    if configuration.serviceClock != nil { self.report.startClock = .service }
    configuration.measuresTimes = self.metrics != nil
    let watch = AllowanceWatch(session, logger: self.logger)
    self.metrics?.allowance = watch
    let (outstanding, maxEvents) = (
      configuration.window * self.configuration.source.topics.count, configuration.maxEvents
    )
    configuration.allowance = try await self.within("the org's limits could be read") {
      try await watch.begin(outstanding: outstanding, maxEvents: maxEvents)
    }
    let source = self.source(session, configuration.allowance)
    let snapshot = try await self.snapshot(session, stores, wake: source.wake)
    self.log.schemasFetched()
    guard self.interruption.respond(source.interrupt) else { throw CancellationError() }
    self.isReading = true
    let runner = try PipelineRunner(
      source: source, stages: session.stages.pipeline, stores: stores.all,
      stored: stores.positions, reader: snapshot?.reader, configuration: configuration,
      wallClock: { [clock] in clock.wallTime })
    self.show(runner, stores.sinks)
    let allowance = configuration.allowance
    // The streams, the reader and the watch over the allowance run beside the runner and end with it.
    let result = await withTaskGroup(of: Void.self) { group in
      // Not on the thread of the sinks, which may block.
      let pool = globalConcurrentExecutor
      group.addTask(executorPreference: pool, operation: source.background)
      if let reader = snapshot?.reader {
        group.addTask(executorPreference: pool, operation: reader.background)
      }
      group.addTask(executorPreference: pool) {
        await watch.watch(allowance, maxEvents: maxEvents)
      }
      let result: Result<RunOutcome, any Error>
      do {
        let outcome = try await runner.run()
        try stores.checkpoints.finish()
        result = .success(outcome)
      } catch {
        result = .failure(error)
      }
      await source.finish()
      self.noteManaged(source.managedProgress)
      group.cancelAll()
      await group.waitForAll()
      return result
    }
    if let reader = snapshot?.reader {
      do {
        try session.outdateDescriptions(of: reader.outdatedDescriptions)
      } catch {
        // The next run finds out again.
        self.logger.debug("outdated descriptions of objects were not forgotten: \(error)")
      }
    }
    self.report.allowance = watch.first
    self.metrics?.progressed(runner.statistics, sinks: stores.sinks, retries: self.log.retries)
    // Somebody who asks for a stop does not wait for it.
    if case .success = result, !self.interruption.isAsked { self.metrics?.countIncorrectRows() }
    self.log.ended(runner.statistics, sinks: stores.sinks)
    self.fill(statistics: runner.statistics, sinks: stores.sinks)
    self.fill(reads: runner.statistics.reads, apiCalls: snapshot?.client.callCount ?? 0)
    return { try self.conclude(result.get(), statistics: runner.statistics) }
  }

  private func source(
    _ session: Session, _ allowance: DeliveryAllowance?
  ) -> PubSubSource<HTTP2ClientTransport> {
    var options = self.assembly.sourceOptions(
      self.options, schemas: session.schemas, logger: self.logger)
    options.allowance = allowance
    options.beforeHandingOn = session.inquiry?.beforeHandingOn
    return PubSubSource(
      topics: self.assembly.topics(), client: session.connection.service,
      credentials: session.connection.credentials, options: options)
  }

  /// - Returns: nil if no records have to be read.
  private func snapshot(
    _ session: Session, _ stores: RunStores, wake: @escaping @Sendable () -> Void
  ) async throws -> SnapshotRun? {
    guard self.options.limits.maxEvents == nil else { return nil }
    return try await SnapshotRun.make(
      session, sinks: stores.sinks, files: stores.checkpointed, purpose: self.purpose,
      follows: self.options.limits.until(self.configuration.run) == .forever,
      logger: self.logger, wake: wake, onRetry: self.schemasFailed)
  }

  private func show(_ runner: PipelineRunner<some Source>, _ sinks: OpenSinks) {
    runner.onRetry = { [log] in log.retrying(topic: $0, $1, delay: $2) }
    runner.onWaiting = { [log] in log.waiting(topic: $0, $1) }
    runner.onNote = { [log, incidents] note in
      log.note(note)
      if case .opened = note { incidents?.connected() }
    }
    runner.onProgress = { [log, metrics] in
      log.progressed($0, sinks: sinks)
      metrics?.progressed($0, sinks: sinks, retries: log.retries)
    }
  }

  /// Stores what the run waits for where `status` finds it. Failures would also affect the
  /// checkpoint next to it, and are reported there.
  private func tellStatus() {
    let (paths, secrets) = (self.configuration.statePaths, self.configuration.secrets)
    WaitingRecord.remove(paths)
    self.log.onWaiting = { [logger, incidents] waiting in
      incidents?.waits(for: waiting)
      do {
        try WaitingRecord.store(waiting, processID: getpid(), in: paths, hiding: secrets)
      } catch {
        logger.debug("what the run waits for could not be stored for 'status': \(error)")
      }
    }
  }

  /// Called before anything is written: a typo in `drop` must not cause the column to be exported.
  private func checkColumns(_ session: Session, earlier: [String: Set<String>]) async throws {
    guard self.configuration.namesColumns || session.inquiry != nil else { return }
    let planned = try await session.inputLayouts(onRetry: self.schemasFailed)
    self.log.schemasFetched()
    if let inquiry = session.inquiry, case let layouts = planned.inputs {
      try await self.within("the org had reported how fields are classified") {
        try await inquiry.prepare(layouts)
      }
    }
    for warning in try ColumnCheck(session.stages, planned, earlier: earlier).warnings {
      self.logger.warning("\(warning)")
    }
  }

  private func schemasFailed(_ failure: PubSubError, _ delay: Duration) throws {
    try self.checkTime(delay: delay, failure.message)
    self.log.schemasFailed(failure.message, delay: delay)
  }

  /// Takes the host lock; with `if_running: wait`, as soon as it is free, but not after the run's time
  /// limit.
  private func lockedStore() async throws -> FileCheckpointStore {
    let deadline = self.interruption.deadline
    while true {
      do throws(CheckpointError) {
        return try FileCheckpointStore(
          directory: self.configuration.checkpoint.directory, pipeline: self.configuration.name,
          clock: self.clock)
      } catch {
        guard error.code == .alreadyRunning, self.configuration.run.ifRunning == .wait else {
          throw error
        }
        let now = self.clock.now
        if let deadline, now >= deadline { throw error }
        let next = now + .milliseconds(500)
        try await self.clock.sleep(until: deadline.map { min($0, next) } ?? next)
      }
    }
  }

  private func login(_ credentials: OrgCredentials) async throws -> AccessToken {
    let auth = self.configuration.source.org.auth
    self.log.loggingIn(at: auth.server?.url ?? "the org of the Salesforce CLI")
    var retries = Retries(self.assembly.retrySchedule(self.options))
    while true {
      do {
        let token = try await self.within("the login had answered") {
          try await credentials.provider.token()
        }
        self.log.loggedIn(token)
        return token
      } catch var error as AuthError {
        guard error.isTransient else { throw error }
        let now = self.clock.now
        guard let delay = retries.failed(at: now, random: .random(in: 0..<1)) else {
          error.message += retries.verdict(at: now)
          throw error
        }
        try self.checkTime(delay: delay, error.message)
        try await self.log.loginFailed(error, delay: delay)
      }
    }
  }

  /// Returns the result of `body`, unless the run's time limit comes first.
  ///
  /// - Parameter what: the part of the run that the limit would end, for the message.
  private func within<Value: Sendable>(
    _ what: String, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    guard let deadline = self.interruption.deadline else { return try await body() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await body() }
      group.addTask { [clock] in
        try await clock.sleep(until: deadline)
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
  private func checkTime(delay: Duration, _ failure: String) throws(RunFailure) {
    guard let deadline = self.interruption.deadline, self.clock.now + delay >= deadline else {
      return
    }
    throw RunFailure(
      .maxDuration, code: .tryAgain,
      "the next attempt would start after the time limit, and no event could be read yet; "
        + failure)
  }
}
