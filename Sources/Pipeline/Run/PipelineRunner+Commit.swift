internal import Clocks

/// Committing: every store prepared, then one after the other durable.
///
/// One commit is on its way at most while the next one fills. Both have the limits of `CommitPolicy`;
/// beyond them nothing more is taken.
extension PipelineRunner {
  /// Pending bytes of the store that has most.
  var pendingByteCount: Int {
    self.stores.reduce(self.letterByteCount) { max($0, $1.pendingByteCount) }
  }

  /// Whether a store may refuse what the keeper of dead letters has taken.
  var mayRefuse: Bool { self.stores.count > 1 }

  /// The open commit has all it may have, and the one before it is not durable.
  var isFull: Bool {
    self.inFlight != nil && self.policy.isFull(pendingBytes: self.pendingByteCount)
  }

  func commitIfDue(now: Instant) throws {
    if self.inFlight != nil {
      for store in self.stores where store.isDue { try store.renewLease() }
      return
    }
    let isDue =
      self.policy.isDue(pendingBytes: self.pendingByteCount, at: now)
      || self.stores.contains(where: \.isDue)
    if isDue { try self.commit() }
  }

  /// Seals what has been taken and makes it durable, as far as that goes at once.
  ///
  /// - Returns: false while another commit is in flight; nothing has been done then.
  @discardableResult
  func commit(isLast: Bool = false) throws -> Bool {
    guard self.inFlight == nil else { return false }
    for store in self.stores { try store.seal(isLast: isLast) }
    self.inFlight = CommitInFlight(
      commits: self.stores.indices.map { number in
        Commit(
          positions: self.positions(of: number),
          letters: self.letters.filter { $0.recipients.contains(number) }.map(\.letter),
          isLast: isLast)
      },
      retained: self.retained.seal(keepingLast: self.inHand != nil),
      takenCounts: self.topics.map(\.takenCount))
    self.letters.removeAll()
    self.letterByteCount = 0
    self.policy.sealed()
    self.isOverweight = false
    try self.advance()
    return true
  }

  /// Commits everything that has been taken, and waits until it is durable.
  func settle(isLast: Bool = false) async throws {
    while self.inFlight != nil { try await self.waitForStores() }
    try self.commit(isLast: isLast)
    while self.inFlight != nil { try await self.waitForStores() }
  }

  /// Waits for stores to become available, a second at most, and asks them again.
  func waitForStores() async throws {
    if await self.source.interruption(until: self.nextDeadline(now: ProcessClock.now)) {
      self.interrupt()
    }
    let now = ProcessClock.now
    if self.inFlight?.isDue(at: now) == true { try self.advance() }
    if self.inFlight != nil { try self.commitIfDue(now: now) }
    self.checkEnd(now: now)
    try self.checkPatience(now: now)
    self.publishProgress()
  }

  /// Takes the commit in flight as far as it goes.
  func advance() throws {
    guard self.inFlight != nil else { return }
    self.inFlight?.outage = nil
    guard try self.prepareStores() else { return }
    let order = [self.keeper] + self.stores.indices.filter { $0 != self.keeper }
    for number in order where self.inFlight?.durable.contains(number) == false {
      if case .unavailable(let outage) = try self.stores[number].commit() {
        self.inFlight?.waits(for: self.hastened(outage))
      } else {
        self.inFlight?.durable.insert(number)
      }
    }
    if self.inFlight?.outage == nil { try self.finishCommit() }
  }

  /// A store's refusals become dead letters of the commit, so their keeper prepares last; the commits
  /// of the others come after its own, so that after a crash they take the events again.
  ///
  /// - Returns: whether every store is prepared.
  private func prepareStores() throws -> Bool {
    let order = self.stores.indices.filter { $0 != self.keeper } + [self.keeper]
    for number in order {
      guard let flight = self.inFlight, !flight.prepared.contains(number) else { continue }
      switch try self.stores[number].prepare(flight.commits[number]) {
      case .done: break
      case .refused(let events): for event in events { try self.takeRefused(event) }
      case .unavailable(let outage):
        // The others must not hold locks for as long as this one is waited for.
        for other in order where flight.prepared.contains(other) { self.stores[other].retract() }
        self.inFlight?.prepared = StoreSet()
        self.inFlight?.waits(for: self.hastened(outage))
        return false
      }
      self.inFlight?.prepared.insert(number)
    }
    return true
  }

  private func finishCommit() throws {
    guard let flight = self.inFlight else { return }
    self.inFlight = nil
    self.policy.committed(at: ProcessClock.now)
    self.statistics.commits += 1
    for (index, count) in flight.takenCounts.enumerated() {
      self.statistics.topics[index].exported = count
    }
    for store in self.stores { try store.complete() }
    try self.advanceRepairs(now: ProcessClock.now)
  }

  /// The positions of the topics that have one: a topic that was misspelt leaves no trace.
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

  /// Gives an event that a store refused to the dead letters, once.
  private func takeRefused(_ event: RefusedEvent) throws {
    guard let topic = self.topics.firstIndex(where: { $0.topic.name == event.topic }) else {
      return
    }
    let place = RefusedPlace(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    guard self.inFlight?.refused.insert(place).inserted == true else { return }
    if let durable = self.topics[topic].lettersDurable, durable.isAfter(place) { return }
    guard
      let found = self.inFlight?.retained.find(
        topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    else {
      preconditionFailure("\(event.topic): an event outside the commit was refused")
    }
    let raw = self.source.rawEvent(found.event, of: found.response)
    self.inFlight?.commits[self.keeper].letters.append(
      DeadLetter(
        topic: event.topic, replayID: ReplayID(raw.replayID),
        eventID: String(decoding: raw.eventID, as: UTF8.self), schemaID: raw.schemaID,
        payload: raw.payload, reason: event.reason, refusal: event.refusal, epoch: event.epoch,
        ordinal: event.ordinal))
    self.statistics.topics[topic].refused += 1
    self.countDeadLetter(topic: topic)
  }

  func countDeadLetter(topic: Int) {
    self.statistics.topics[topic].deadLetters += 1
    guard let limit = self.configuration.maxDeadLetters, self.statistics.deadLetters > limit else {
      return
    }
    self.decide(.deadLetterLimit(topic: self.topics[topic].topic.name, .count))
  }

  /// Ends the run when too large a share of its events has become dead letters.
  func checkDeadLetterRatio() {
    guard let limit = self.configuration.maxDeadLetterRatio, self.statistics.deadLetters > 0,
      self.takenCount >= RunnerConfiguration.ratioFromEvents,
      Double(self.statistics.deadLetters) > limit * Double(self.takenCount)
    else { return }
    let worst = self.statistics.topics.max { $0.deadLetters < $1.deadLetters }
    self.decide(.deadLetterLimit(topic: worst?.name ?? "", .ratio(ofEvents: self.takenCount)))
  }

  /// Ends the run when its user no longer waits for what a store is waited for.
  func checkPatience(now: Instant) throws {
    guard let outage = self.inFlight?.outage ?? self.inHand?.place.outage else { return }
    let since: Instant?
    switch self.outcome {
    case .interrupted, .outOfTime: since = self.stoppedAt
    // A store is waited for without end when following, whatever else has ended the run.
    default: since = self.configuration.until == .forever ? self.stoppedAt : self.interruptedAt
    }
    if let since, now - since >= self.configuration.stopPatience { throw outage.reason }
  }

  /// A run that is to end asks a store at a quick pace, for as long as it waits for it at all.
  func hastened(_ outage: StoreOutage) -> StoreOutage {
    guard self.isStopping else { return outage }
    return StoreOutage(outage.reason, retryAt: min(outage.retryAt, ProcessClock.now + .seconds(1)))
  }
}
