internal import Clocks

/// Commits in two steps: every store prepares, then the stores commit one after the other.
///
/// At most one commit is in flight while the next one fills. Both have the limits of
/// `CommitPolicy`; beyond them, nothing more is taken.
extension PipelineRunner {
  /// The largest number of pending bytes of any store.
  var pendingByteCount: Int {
    self.stores.reduce(self.letterByteCount) { max($0, $1.pendingByteCount) }
  }

  /// Whether the open commit is full and the previous one is not durable.
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

  /// Seals what has been taken and makes it durable as far as possible without waiting.
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
      tallies: self.sealTallies(), resumes: self.topics.map(\.cursors.resume))
    self.letters.removeAll()
    self.letterByteCount = 0
    self.policy.sealed()
    self.isOverweight = false
    // These refusals belong to this commit: rows that are written from here on are part of the next one.
    for (number, store) in self.stores.enumerated() {
      for event in store.takeRefusedEvents() { try self.takeRefused(event, missingIn: number) }
    }
    try self.advance()
    return true
  }

  /// Commits everything that has been taken, and waits until it is durable.
  func settle(isLast: Bool = false) async throws {
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

  /// A store's refusals become dead letters of the commit, so the keeper prepares last. It commits
  /// first, so that after a crash the other stores take the events again.
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
        // The others must not hold locks while the run waits for this one.
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
    self.policy.committed(at: self.now)
    self.statistics.commits += 1
    for (index, tally) in flight.tallies.enumerated() {
      self.statistics.topics[index].committed = tally
    }
    for store in self.stores { try store.complete() }
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
    guard let retained = self.inFlight?.retained else { return }
    let letter = self.letter(for: event, in: retained, topic: topic)
    if let store, store != self.keeper { self.inFlight?.commits[store].letters.append(letter) }
    let place = RefusedPlace(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    guard self.inFlight?.refused.insert(place).inserted == true else {
      self.noteRefusal(by: event.refusal?.sink, of: letter)
      return
    }
    if let durable = self.topics[topic].lettersDurable, durable.isAfter(place) { return }
    self.inFlight?.commits[self.keeper].letters.append(letter)
    // The event was taken before the commit in flight was sealed.
    self.inFlight?.tallies[topic].deadLetters += 1
    self.inFlight?.tallies[topic].refused += 1
    self.statistics.topics[topic].taken.refused += 1
    self.countDeadLetter(topic: topic)
  }

  /// Adds a sink to the letter of an event that another sink has refused as well.
  private func noteRefusal(by sink: String?, of letter: DeadLetter) {
    let letters = self.inFlight?.commits[self.keeper].letters ?? []
    guard let sink,
      let index = letters.firstIndex(where: {
        ($0.topic, $0.epoch, $0.ordinal) == (letter.topic, letter.epoch, letter.ordinal)
      }), letters[index].refusal?.sinks.contains(sink) == false
    else { return }
    self.inFlight?.commits[self.keeper].letters[index].refusal?.otherSinks.append(sink)
  }

  /// The letter of an event that was taken and is not written.
  func letter(
    for event: RefusedEvent, in retained: RetainedEvents<S.Response>, topic: Int
  ) -> DeadLetter {
    guard
      let found = retained.find(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
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
    self.checkDeadLetterCount(topic: topic)
  }

  /// Ends the run if too many events have become dead letters, or too many records that were read
  /// could not be written.
  func checkDeadLetterCount(topic: Int) {
    guard let limit = self.configuration.maxDeadLetters,
      self.statistics.takenDeadLetters + self.statistics.reads.unwritten > limit
    else { return }
    self.decide(.deadLetterLimit(topic: self.topics[topic].topic.name, .count))
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
    let since: Instant?
    switch self.outcome {
    case .interrupted, .outOfTime: since = self.stoppedAt
    // A run that follows would wait for a store forever, so its patience counts from the end,
    // whatever ended it.
    default: since = self.configuration.until == .forever ? self.stoppedAt : self.interruptedAt
    }
    if let since, now - since >= self.configuration.stopPatience { throw outage.reason }
  }

  /// A run that is ending retries an unavailable store at short intervals.
  func hastened(_ outage: StoreOutage) -> StoreOutage {
    guard self.isStopping else { return outage }
    return StoreOutage(outage.reason, retryAt: min(outage.retryAt, self.now + .seconds(1)))
  }
}
