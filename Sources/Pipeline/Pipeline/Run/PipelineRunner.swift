internal import Clocks

/// Controls a run: takes responses from the source, has them decoded, staged and written, and
/// commits.
///
/// The one rule: each store moves its position past an event only in the step that makes the
/// event's rows, or its dead letter, durable. Not `Sendable`; everything happens in the task that
/// calls `run`, which should have its own thread, because sinks block.
///
/// An unavailable store stops neither signals nor leases: the sealed commit waits for it, the next
/// one fills, and once that is full, responses stay in the source.
package final class PipelineRunner<S: Source> {
  package typealias Instant = ContinuousClock.Instant

  let source: S
  let stages: StageChain
  /// Indexed by number, as in `TopicCursors`.
  let stores: [StagedStore]
  /// Whether a store, or a stage, may refuse what the keeper of dead letters has taken.
  let mayRefuse: Bool
  let configuration: RunnerConfiguration
  /// Milliseconds since 1970.
  let wallClock: () -> Int64

  // State that every event touches is not checked for exclusive access at run time: only one task
  // calls, and no method lends it out while another one changes it.

  /// In the order of the source's topics.
  @exclusivity(unchecked) var topics: [TopicRun]
  @exclusivity(unchecked) var commits: CommitCycle
  @exclusivity(unchecked) package internal(set) var statistics: RunStatistics
  /// Nil unless times are measured.
  @exclusivity(unchecked) var times: RunTimes?
  /// Called at least once a second, more often while signals arrive, and at the end.
  package var onProgress: ((RunStatistics) -> Void)?
  /// Receives each problem that is retried.
  package var onRetry: ((_ topic: String, SourceFailure, _ delay: Duration) -> Void)?
  /// Receives what a read has been waiting for, every few minutes.
  package var onWaiting: ((_ topic: String, _ what: String) -> Void)?

  package var onNote: ((RunNote) -> Void)?

  /// Reads records in addition to the stream; nil if none are to be read.
  let reader: (any RecordReader)?
  var reads: ReadCycle
  /// By the service's clock, milliseconds since 1970. Events with a later commit time have schemas that
  /// are not older than those of reads.
  let startedAt: Int64
  /// By object, the IDs of the schemas of such events.
  var recentSchemas: [String: Set<String>] = [:]
  private var began: Instant
  private var publishedAt: Instant?
  /// Events of all topics that were written, committed or not.
  @exclusivity(unchecked) var takenCount = 0
  private(set) var end = RunEnd()
  @exclusivity(unchecked) var batch = BatchInHand()
  /// Filled only where a store or a stage may refuse an event.
  @exclusivity(unchecked) var retained = RetainedEvents<S.Response>()
  /// The response that is being taken or had to be set aside.
  var inHand: (response: S.Response, place: PlaceInResponse)?
  @exclusivity(unchecked) var current = CurrentResponse()
  var overlap = Overlap<S.Response>()
  /// No signal was waiting at the last look, and no records are being read.
  private(set) var isIdle = false

  /// - Parameters:
  ///   - stores: where rows and positions go; one of them keeps the dead letters.
  ///   - stored: each store's positions from an earlier run, by topic name.
  ///   - reader: reads records in addition to the stream; nil if none are to be read.
  /// - Throws: `SourceFailure` (`configuration`) for a topic with neither position nor `start`.
  package init(
    source: S, stages: StageChain, stores: [StagedStore], stored: [[String: TopicPosition]],
    reader: (any RecordReader)? = nil, configuration: RunnerConfiguration,
    wallClock: @escaping () -> Int64
  ) throws {
    self.source = source
    self.reader = reader
    self.stages = stages
    self.stores = stores
    self.configuration = configuration
    self.began = configuration.clock.now
    self.wallClock = wallClock
    precondition(stored.count == stores.count, "positions of another number of stores")
    precondition(stores.count <= StoreSet.capacity, "more stores than a pipeline file may have")
    let keepers = stores.indices.filter { stores[$0].keepsDeadLetters }
    precondition(keepers.count == 1, "\(keepers.count) stores keep dead letters")
    let keeper = keepers[0]
    self.mayRefuse =
      stores.count > 1 || stages.changesRows || stores.contains(where: \.hasRefusingStages)
    for topic in source.topics
    where topic.start == nil
      && !stored.contains(where: { $0[topic.name]?.isResumable == true })
    {
      throw SourceFailure(
        .configuration, reason: "no_start",
        "\(topic.name): no position is stored and the pipeline file has no 'start'; add "
          + "\"start\": \"earliest\" or \"latest\" to the source")
    }
    self.startedAt = configuration.serviceClock?.reading ?? wallClock()
    let rules = CaughtUp.Configuration(
      quiet: configuration.quiet, window: configuration.window, runStart: self.startedAt)
    self.topics = source.topics.enumerated().map { index, topic in
      TopicRun(
        topic, index: index, stored: stored.map { $0[topic.name] }, keeper: keeper, rules: rules)
    }
    self.reads = ReadCycle(
      reader?.objects ?? [], topics: source.topics.map(\.name),
      repairing: stores.indices.filter { stores[$0].repairing != nil },
      follows: configuration.until == .forever, repeatsPolls: configuration.until != .caughtUp,
      at: configuration.clock.now)
    for topic in self.topics {
      let name = topic.topic.name
      // The stream resumes for the store furthest behind, so the stages begin with its events.
      try stages.recall(topic.storedMemory[topic.cursors.furthestBehind], ofTopic: name)
      for (store, memory) in zip(stores, topic.storedMemory) {
        try store.recall(memory, ofTopic: name)
      }
    }
    self.commits = CommitCycle(
      keeper: keeper,
      .init(
        maxEvents: configuration.commitMaxEvents, maxBytes: configuration.commitMaxBytes,
        maxDelay: configuration.commitMaxDelay))
    self.statistics = RunStatistics(topics: source.topics.map(\.name))
    self.statistics.stores = stores.map { RunStatistics.Store(name: $0.name) }
    if configuration.measuresTimes { self.times = RunTimes() }
    for (index, topic) in self.topics.enumerated() {
      self.statistics.topics[index].committed.completeThrough = topic.cursors.completeThrough
      self.statistics.topics[index].committed.confirmedAt = topic.cursors.confirmedAt
      self.statistics.topics[index].committed.end = topic.cursors.end
      self.statistics.topics[index].begin = topic.cursors.end
    }
  }

  /// Runs until the configured end, with everything received exported and committed.
  ///
  /// - Throws: what a sink or the checkpoint store throws; nothing is committed afterwards.
  package func run() async throws -> RunOutcome {
    self.began = self.now
    self.beginOverlapping()
    for (index, topic) in self.topics.enumerated() {
      if let resume = topic.cursors.resume { self.source.becameDurable(resume, topic: index) }
    }
    while !self.topics.allSatisfy(\.hasEnded) {
      let wasStopping = self.isStopping
      try await self.step()
      let now = self.now
      self.retryRefused(now: now)
      try self.commitIfDue(now: now)
      self.checkEnd(now: now)
      try self.checkPatience(now: now)
      // What has been received need not wait for what may still arrive.
      if !wasStopping, self.isStopping, self.commits.policy.eventCount > 0 { try self.commit() }
      self.publishProgress()
    }
    try await self.settle(isLast: true)
    self.publishedAt = nil
    self.publishProgress()
    return self.end.outcome ?? .caughtUp
  }

  /// Advances the commit in flight, the response in hand or the next signal.
  private func step() async throws {
    if self.inFlight?.isDue(at: self.now) == true { try self.advance() }
    if let signal = self.overlap.takeSignal() {
      self.isIdle = false
      return try await self.handle(signal, at: self.now)
    }
    try self.advanceReads(now: self.now)
    try self.advanceRepairs(now: self.now)
    if self.reads.takesTurn(), !self.isFull {
      self.reads.hasMore = try self.takeReads(now: self.now)
      if self.reads.hasMore { return }
    }
    if let (response, place) = self.inHand, place.renewal == .needed {
      await self.source.renewSchema(
        ofEvent: place.nextEvent, of: response, topic: place.topic,
        receivedAt: place.receivedAt)
      self.inHand?.place.renewal = .done
    }
    if self.mayGoOn(at: self.now) { return try self.takeInHand() }
    let deadline = self.nextDeadline(now: self.now)
    if self.inHand != nil || self.isFull {
      if await self.source.interruption(until: deadline) {
        try await self.handle(.interrupted, at: self.now)
      }
    } else {
      let signal = await self.source.next(until: self.reads.hasMore ? self.now : deadline)
      if signal == nil, self.reads.hasMore { return }
      self.isIdle = signal == nil
      try await self.handle(signal, at: self.now)
    }
  }

  /// Whether there is a response in hand and its next event need not wait.
  private func mayGoOn(at now: Instant) -> Bool {
    guard let inHand = self.inHand, self.inFlight == nil else { return false }
    return inHand.place.outage.map { $0.retryAt <= now } ?? true
  }

  private func handle(_ signal: SourceSignal<S.Response>?, at now: Instant) async throws {
    switch signal {
    case .opening(let topic, let reply): reply(self.startPoint(of: topic))
    case .opened(let topic):
      self.statistics.topics[topic].lastFailure = nil
      self.statistics.topics[topic].openings += 1
      self.statistics.topics[topic].openedAt = self.wallClock()
      let position = self.topics[topic].cursors
      self.topics[topic].opened(
        at: now, isConfirmed: position.resume != nil && !self.isStale(position))
      self.onNote?(.opened(topic: self.topics[topic].topic.name))
    case .worked(let topic): self.onNote?(.worked(topic: self.topics[topic].topic.name))
    case .passedOver(let topic, let eventCount):
      self.statistics.topics[topic].delivered += eventCount
      self.statistics.topics[topic].repeated += eventCount
    case .holding(let topic): self.topics[topic].caughtUp.held()
    case .schemasFailed(let topic, let failure, let delay):
      self.topics[topic].lacksSchema = true
      self.noteRetry(topic: topic, failure, delay: delay)
    case .response(let topic, let response, let receivedAt):
      try self.take(response, topic: topic, receivedAt: receivedAt)
    case .retrying(let topic, let failure, let delay):
      self.topics[topic].closed()
      self.noteRetry(topic: topic, failure, delay: delay)
    case .heldBack(let topic):
      self.topics[topic].closed()
      self.onNote?(.heldBack(topic: self.topics[topic].topic.name))
    case .ended(let topic, let failure):
      self.topics[topic].caughtUp.closed()
      try await self.end(topic: topic, failure: failure, at: now)
    case .woken: break
    case .interrupted: self.interrupt()
    case nil:
      // The queue is empty only now: while the runner was busy, silence proved nothing.
      for topic in self.topics.indices {
        self.topics[topic].caughtUp.tick(at: now)
        if self.topics[topic].caughtUp.isQuiet(at: now) {
          self.topics[topic].quietAt = self.serviceTime
        }
      }
    }
  }

  private func noteRetry(topic: Int, _ failure: SourceFailure, delay: Duration) {
    self.statistics.topics[topic].retries += 1
    self.statistics.topics[topic].lastFailure = failure
    // A signal makes requests fail, and nothing is retried after it.
    if case .interrupted = self.end.outcome { return }
    self.onRetry?(self.topics[topic].topic.name, failure, delay)
  }

  /// Decides how the run ends; the first reason wins. From here on, no credit is added.
  func decide(_ outcome: RunOutcome) {
    guard self.end.decide(outcome, at: self.now) else { return }
    self.onNote?(.stopping(outcome))
    self.source.stop()
  }

  var isStopping: Bool { self.end.outcome != nil }

  var follows: Bool { self.configuration.until == .forever }

  var inFlight: CommitInFlight? { self.commits.inFlight }

  /// Handles the user's request for a clean stop. Retries an unavailable store immediately, once.
  func interrupt() {
    self.decide(.interrupted(following: self.follows))
    self.end.interrupted(at: self.now)
    self.commits.inFlight?.outage?.retryAt = self.now
    self.inHand?.place.outage?.retryAt = self.now
  }

  private func startPoint(of topic: Int) -> StartPoint? {
    if self.isStopping { return nil }
    guard let start = self.topics[topic].reopen() else { return nil }
    self.onNote?(
      .subscribing(
        topic: self.topics[topic].topic.name, from: start,
        epoch: self.topics[topic].cursors.epoch))
    return start
  }

  private func end(topic: Int, failure: SourceFailure?, at now: Instant) async throws {
    if let failure, failure.isOfTopicAlone, !self.isStopping {
      return self.refuse(topic: topic, failure, at: now)
    }
    if let failure, failure.disposition == .invalidReplay, !self.isStopping,
      let start = self.replacement(for: self.configuration.onInvalidReplay)
    {
      // Every store commits the end of the old epoch before any begins the new one, and the
      // beginning before any event, so that a crash leaves no store in an epoch that cannot be
      // resumed.
      try await self.settle()
      self.topics[topic].cursors.beginEpoch()
      try await self.settle()
      self.topics[topic].startOverride = start
      self.statistics.topics[topic].holes += 1
      self.onRetry?(self.topics[topic].topic.name, failure, .zero)
      self.source.reopen(topic: topic)
      return
    }
    self.topics[topic].state = .ended
    if let failure { self.decide(.failed(failure)) }
  }

  private func replacement(for policy: RunnerConfiguration.InvalidReplayPolicy) -> StartPoint? {
    switch policy {
    case .fail: nil
    case .earliest: .earliest
    case .latest: .latest
    }
  }

  var now: Instant { self.configuration.clock.now }

  func nextDeadline(now: Instant) -> Instant {
    var deadline = self.configuration.clock.nextLook(from: now, after: .seconds(1))
    if let outage = self.inFlight?.outage ?? self.inHand?.place.outage {
      deadline = min(deadline, outage.retryAt)
    }
    let policy = self.commits.policy
    if self.inFlight == nil, let due = policy.ripeAt ?? policy.deadline {
      deadline = min(deadline, due)
    }
    if let due = self.reads.deadline { deadline = min(deadline, due) }
    // What ends a run is past once it stops.
    if self.isStopping { return deadline }
    if let limit = self.configuration.maxDuration { deadline = min(deadline, self.began + limit) }
    if case .duration(let length) = self.configuration.until {
      deadline = min(deadline, self.began + length)
    }
    if self.configuration.until == .caughtUp || self.reads.awaitsEvents {
      // By index, because a copy of each topic would cost more than the rest of a step.
      for topic in self.topics.indices
      where self.topics[topic].caughtUp.rule == nil && !self.topics[topic].hasEnded {
        if let quiet = self.topics[topic].caughtUp.quietDeadline {
          deadline = min(deadline, quiet)
        }
      }
    }
    return deadline
  }

  func checkEnd(now: Instant) {
    guard !self.isStopping else { return }
    self.checkDeadLetterRatio()
    guard !self.isStopping else { return }
    if let limit = self.configuration.maxEvents, self.takenCount >= limit {
      return self.decide(.eventsReached)
    }
    if self.configuration.allowance?.isSpent == true { return self.decide(.allowanceSpent) }
    switch self.configuration.until {
    case .forever: break
    case .events(let count):
      if self.takenCount >= count { return self.decide(.eventsReached) }
    case .duration(let length):
      if now - self.began >= length { return self.decide(.durationReached) }
    case .caughtUp:
      if self.hasReadAll, self.hasRepaired, let outcome = self.caughtUpOutcome(now: now) {
        if let failure = self.reads.failure { return self.decide(.failed(failure)) }
        if case .caughtUp = outcome { self.proveCaughtUp() }
        return self.decide(outcome)
      }
    }
    if let limit = self.configuration.maxDuration, now - self.began >= limit {
      self.decide(self.isReadingWell(at: now) ? .readingGoesOn : .outOfTime)
    }
  }

  /// Whether records are being read and some arrived in the last hour, so that the next run
  /// continues.
  private func isReadingWell(at now: Instant) -> Bool {
    guard !self.hasReadAll else { return false }
    return now - (self.statistics.reads.progressedAt ?? self.began) < .seconds(3600)
  }

  /// Silence alone does not prove that a position is still valid. A position that has not been
  /// confirmed recently is renewed by waiting for a keepalive, and a topic without a position needs
  /// one.
  private func caughtUpOutcome(now: Instant) -> RunOutcome? {
    var withoutPosition = false
    for topic in self.topics.indices where self.topics[topic].state == .running {
      guard let rule = self.topics[topic].caughtUp.rule else { return nil }
      let run = self.topics[topic]
      if self.statistics.topics[topic].caughtUpBy == nil {
        self.statistics.topics[topic].caughtUpBy = rule.rawValue
        self.onNote?(.caughtUp(topic: run.topic.name, rule: rule.rawValue))
      }
      let position = run.cursors
      let gaveUp = run.openedAt.map { now - $0 >= self.configuration.keepaliveWait } ?? false
      // With only an open group, the stream of a channel could resume only from the earliest event.
      guard position.resume != nil else {
        if !gaveUp {
          self.noteWait(topic: topic, isFirst: true, now: now)
          return nil
        }
        withoutPosition = withoutPosition || !position.hasEvent
        continue
      }
      if !gaveUp, self.isStale(position) {
        self.noteWait(topic: topic, isFirst: false, now: now)
        return nil
      }
    }
    return withoutPosition ? .noPosition : .caughtUp
  }

  private func noteWait(topic: Int, isFirst: Bool, now: Instant) {
    guard !self.topics[topic].awaitsPosition else { return }
    self.topics[topic].awaitsPosition = true
    self.onNote?(
      .awaitsPosition(
        topic: self.topics[topic].topic.name, isFirst: isFirst,
        until: (self.topics[topic].openedAt ?? now) + self.configuration.keepaliveWait))
  }

  private func isStale(_ position: TopicCursors) -> Bool {
    guard let confirmed = position.confirmedAt else { return true }
    let age = Duration.milliseconds(self.wallClock() - confirmed)
    // A time in the future was stored while the clock was wrong and proves nothing; small
    // deviations do no harm.
    return age >= self.configuration.renewAfter || age <= .zero - self.configuration.renewAfter
  }

  /// Publishes the progress, but not after each of hundreds of responses a second.
  func publishProgress() {
    let now = self.now
    if let publishedAt, now - publishedAt < .milliseconds(50) { return }
    self.publishedAt = now
    for topic in self.topics.indices {
      self.statistics.topics[topic].epoch = self.topics[topic].cursors.epoch
      self.statistics.topics[topic].resume = self.topics[topic].cursors.resume
      if self.topics[topic].openedAt == nil { self.statistics.topics[topic].openedAt = nil }
      self.statistics.topics[topic].awaitsPosition = self.topics[topic].awaitsPosition
      guard case .caughtUp = self.configuration.until else { continue }
      self.statistics.topics[topic].isCaughtUp = self.topics[topic].caughtUp.rule != nil
      self.statistics.topics[topic].silence =
        self.isStopping ? nil : self.topics[topic].caughtUp.silence(at: now)
    }
    self.onProgress?(self.statistics)
  }
}
