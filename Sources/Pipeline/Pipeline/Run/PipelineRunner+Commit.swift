internal import Clocks

/// Commits in two steps: every store prepares, then the stores commit one after the other.
///
/// At most one commit is in flight while the next one fills. Both have the limits of
/// `CommitPolicy`; beyond them, nothing more is taken.
extension PipelineRunner {
  /// The largest number of pending bytes of any store.
  var pendingByteCount: Int {
    self.stores.reduce(self.commits.letterByteCount) { max($0, $1.base.pendingByteCount) }
  }

  /// Whether the open commit is full and the previous one is not durable.
  var isFull: Bool {
    self.inFlight != nil && self.commits.policy.isFull(pendingBytes: self.pendingByteCount)
  }

  func commitIfDue(now: Instant) throws {
    if self.inFlight != nil {
      for store in self.stores where store.base.isDue { try store.leased?.renewLease() }
      return
    }
    let isDue =
      self.commits.policy.isDue(
        pendingBytes: self.pendingByteCount, isIdle: self.isIdle, at: now)
      || self.stores.contains(where: \.base.isDue)
    if isDue { try self.commit() }
  }

  /// Seals what has been taken and makes it durable as far as possible without waiting.
  ///
  /// - Returns: false while another commit is in flight; nothing has been done then.
  @discardableResult
  func commit(isLast: Bool = false) throws -> Bool {
    guard self.inFlight == nil else { return false }
    let now = self.now
    for store in self.stores.indices {
      try self.measure(.seal, of: store) { try $0.base.seal(isLast: isLast) }
    }
    self.commits.seal(
      at: self.stores.indices.map(self.positions), now: now, isLast: isLast,
      tallies: self.sealTallies(), resumes: self.topics.map(\.cursors.resume))
    self.times?.seal()
    self.retained.seal(keepingLast: self.inHand != nil)
    // These refusals belong to this commit: rows that are written from here on are part of the next one.
    for (number, store) in self.stores.enumerated() {
      for event in store.takeRefusedEvents() { try self.takeRefused(event, missingIn: number) }
    }
    // In the middle of a response, the next step does it, so that more can be taken meanwhile.
    if self.inHand == nil || !self.overlaps { try self.advance() }
    return true
  }

  /// Commits everything that has been taken, and waits until it is durable.
  func settle(isLast: Bool = false) async throws {
    self.overlap.isSettling = true
    defer { self.overlap.isSettling = false }
    while self.inFlight != nil { try await self.waitForStores() }
    try self.commit(isLast: isLast)
    while self.inFlight != nil { try await self.waitForStores() }
  }

  /// Waits at most a second for stores to become available, and asks them again.
  func waitForStores() async throws {
    if await self.source.interruption(until: self.nextDeadline(now: self.now)) {
      self.interrupt()
    }
    let now = self.now
    if self.inFlight?.isDue(at: now) == true { try self.advance() }
    if self.inFlight != nil { try self.commitIfDue(now: now) }
    self.checkEnd(now: now)
    try self.checkPatience(now: now)
    self.publishProgress()
  }

  /// Advances the commit in flight as far as possible.
  func advance() throws {
    self.commits.inFlight?.retry()
    self.overlap.isAdvancing = true
    defer { self.overlap.isAdvancing = false }
    while let step = self.inFlight?.next {
      switch step {
      case .prepare(let number): try self.prepare(number)
      case .commit(let number):
        let answer = try self.measure(.commit, of: number) { try $0.base.commit() }
        if case .unavailable(let outage) = answer {
          self.commits.inFlight?.cannotCommit(number, self.hastened(outage))
        } else {
          self.commits.inFlight?.committed(by: number)
        }
      case .finish: try self.finishCommit()
      }
    }
    // It concerns events after those of the commit.
    if let failure = self.overlap.failure { throw failure }
  }

  var overlaps: Bool { self.stores.contains { $0.overlapping != nil } }

  /// Lets stores take more of the stream while they wait for their servers.
  func beginOverlapping() {
    for store in self.stores {
      store.overlapping?.whileWaiting = { [unowned self] in self.takeWhileWaiting() }
    }
  }

  /// Takes a response for the commit after the one in flight.
  ///
  /// - Returns: false if no response is there, or none may be taken.
  private func takeWhileWaiting() -> Bool {
    guard self.overlap.mayTake, self.inFlight != nil, self.inHand == nil, !self.isFull else {
      return false
    }
    guard let signal = self.source.poll() else { return false }
    switch signal {
    case .response(let topic, let response, let receivedAt):
      do {
        try self.take(response, topic: topic, receivedAt: receivedAt)
      } catch {
        self.overlap.failure = error
      }
      self.checkEnd(now: self.now)
    case .interrupted: self.interrupt()
    default:
      self.overlap.signal = signal
      return false
    }
    return true
  }

  private func prepare(_ number: Int) throws {
    guard let commit = self.inFlight?.commits[number] else { return }
    switch try self.measure(.prepare, of: number, { try $0.base.prepare(commit) }) {
    case .done: break
    case .refused(let events): for event in events { try self.takeRefused(event) }
    case .unavailable(let outage):
      let others = self.commits.inFlight?.cannotPrepare(self.hastened(outage)) ?? []
      for other in others { self.stores[other].leased?.retract() }
      return
    }
    self.commits.inFlight?.prepared(by: number)
  }

  private func finishCommit() throws {
    guard let flight = self.commits.finish(at: self.now) else { return }
    self.retained.committed()
    self.statistics.commits += 1
    self.statistics.lastCommitAt = self.wallClock()
    for (index, tally) in flight.tallies.enumerated() {
      if let newest = tally.newestCommit,
        newest != self.statistics.topics[index].committed.newestCommit
      {
        self.statistics.topics[index].newestLag = max(0, self.serviceTime - newest)
      }
      self.statistics.topics[index].committed = tally
    }
    self.times?.becameDurable(
      at: self.now, serviceTime: self.serviceTime, &self.statistics.topics)
    for store in self.stores.indices {
      try self.measure(.complete, of: store) { try $0.base.complete() }
    }
    self.countRefusedReads()
    for (topic, resume) in flight.resumes.enumerated() {
      if let resume { self.source.becameDurable(resume, topic: topic) }
    }
    try self.advanceRepairs(now: self.now)
  }

  /// What has been taken from each topic so far.
  private func sealTallies() -> [RunStatistics.Tally] {
    self.topics.indices.map { topic in
      self.statistics.topics[topic].taken.events = self.topics[topic].takenCount
      self.statistics.topics[topic].taken.completeThrough =
        self.topics[topic].cursors.completeThrough
      self.statistics.topics[topic].taken.confirmedAt = self.topics[topic].cursors.confirmedAt
      self.statistics.topics[topic].taken.end = self.topics[topic].cursors.end
      return self.statistics.topics[topic].taken
    }
  }

  /// The positions of the topics that have one, so that a misspelled topic leaves no trace.
  private func positions(of store: Int) -> [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    for topic in self.topics {
      let position = topic.cursors.stores[store]
      var stored = position.stored
      if stored.isUntouched { continue }
      let name = topic.topic.name
      stored.memory =
        position.isBehindStream
        ? topic.storedMemory[store]
        : self.stages.memory(ofTopic: name)
          .merging(self.stores[store].memory(ofTopic: name)) { _, own in own }
      positions[name] = stored
    }
    return positions
  }

  /// Adds an event that a store refused to the dead letters, once.
  ///
  /// - Parameter store: a store that has not received the event, because its own stages refused it.
  private func takeRefused(_ event: RefusedEvent, missingIn store: Int? = nil) throws {
    guard let topic = self.topics.firstIndex(where: { $0.topic.name == event.topic }) else {
      return
    }
    let isNew = self.commits.inFlight?.refuse(
      self.letter(for: event, topic: topic), of: topic, missingIn: store,
      after: self.topics[topic].lettersDurable)
    guard isNew == true else { return }
    self.statistics.topics[topic].taken.refused += 1
    self.countDeadLetter(topic: topic)
  }

  /// The letter of an event that was taken and is not written.
  func letter(for event: RefusedEvent, topic: Int) -> DeadLetter {
    guard
      let found = self.retained.find(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    else {
      preconditionFailure("\(event.topic): an event outside the commit was refused")
    }
    let raw = self.source.rawEvent(found.event, of: found.response)
    return DeadLetter(
      topic: event.topic, replayID: ReplayID(raw.replayID),
      eventID: String(decoding: raw.eventID, as: UTF8.self), schemaID: raw.schemaID,
      payload: raw.payload, reason: event.reason, refusal: event.refusal,
      isUnprocessable: event.refusal == nil, epoch: event.epoch, ordinal: event.ordinal)
  }

  func countDeadLetter(topic: Int) {
    self.statistics.topics[topic].taken.deadLetters += 1
    self.checkDeadLetterCount(ofTopic: self.topics[topic].topic.name)
  }

  /// Ends the run if too many events have become dead letters, or too many records that were read
  /// could not be written.
  func checkDeadLetterCount(ofTopic topic: String) {
    guard let limit = self.configuration.maxDeadLetters,
      self.statistics.takenDeadLetters + self.statistics.reads.unwritten > limit
    else { return }
    self.decide(.deadLetterLimit(topic: topic, .count))
  }

  /// Ends the run if too large a share of its events has become dead letters.
  func checkDeadLetterRatio() {
    guard let limit = self.configuration.maxDeadLetterRatio, self.statistics.takenDeadLetters > 0,
      self.takenCount >= RunnerConfiguration.ratioFromEvents,
      Double(self.statistics.takenDeadLetters) > limit * Double(self.takenCount)
    else { return }
    let worst = self.statistics.topics.max { $0.taken.deadLetters < $1.taken.deadLetters }
    self.decide(.deadLetterLimit(topic: worst?.name ?? "", .ratio(ofEvents: self.takenCount)))
  }

  /// Ends the run once the user's patience with an unavailable store is exhausted.
  func checkPatience(now: Instant) throws {
    guard let outage = self.inFlight?.outage ?? self.inHand?.place.outage else { return }
    if let since = self.end.patience(follows: self.follows),
      now - since >= self.configuration.stopPatience
    {
      throw outage.reason
    }
  }

  /// A run that is ending retries an unavailable store at short intervals.
  func hastened(_ outage: StoreOutage) -> StoreOutage {
    guard self.isStopping else { return outage }
    return StoreOutage(outage.reason, retryAt: min(outage.retryAt, self.now + .seconds(1)))
  }
}
