/// Committing: every sink durable, then one checkpoint that says so.
extension PipelineRunner {
  /// The pending bytes of the store that has most.
  var pendingByteCount: Int { self.stores.reduce(0) { max($0, $1.pendingByteCount) } }

  /// Whether a store may refuse what the keeper of dead letters has taken.
  var mayRefuse: Bool { self.stores.count > 1 }

  func commitIfDue(now: Instant) throws {
    let isDue =
      self.policy.isDue(pendingBytes: self.pendingByteCount, at: now)
      || self.stores.contains(where: \.isDue)
    guard isDue else { return }
    try self.commit(isLast: false)
  }

  /// - Parameter isLast: gives every open file its final name too.
  func commit(isLast: Bool) throws {
    // A store's refusals become dead letters of this commit, so their keeper prepares last; the
    // commits of the others come after its own, so that after a crash they take the events again.
    let others = self.stores.indices.filter { $0 != self.keeper }
    for number in others + [self.keeper] {
      let commit = Commit(positions: self.positions(of: number), isLast: isLast)
      for event in try self.stores[number].prepare(commit) { try self.takeRefused(event) }
    }
    for number in [self.keeper] + others { try self.stores[number].commit() }
    self.policy.committed(at: .now)
    self.isOverweight = false
    self.retained.removeAll(keepingLast: true)
    self.refused.removeAll()
    self.statistics.commits += 1
    for (index, topic) in self.topics.enumerated() {
      self.statistics.topics[index].exported = topic.takenCount
    }
    for store in self.stores { try store.complete() }
  }

  /// The positions of the topics that have one: a topic that was misspelt leaves no trace.
  private func positions(of store: Int) -> [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    for topic in self.topics {
      let stored = topic.positions.stores[store].stored
      if !stored.isUntouched { positions[topic.topic.name] = stored }
    }
    return positions
  }

  /// Gives an event that a store refused to the dead letters, once.
  private func takeRefused(_ event: RefusedEvent) throws {
    guard let topic = self.topics.firstIndex(where: { $0.topic.name == event.topic }) else {
      return
    }
    let place = RefusedPlace(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    guard self.refused.insert(place).inserted else { return }
    if let durable = self.topics[topic].lettersDurable, durable.isAfter(place) { return }
    guard
      let found = self.retained.find(topic: topic, epoch: event.epoch, ordinal: event.ordinal)
    else {
      preconditionFailure("\(event.topic): an event outside of the commit was refused")
    }
    let raw = self.source.rawEvent(found.event, of: found.response)
    try self.stores[self.keeper].take(
      DeadLetter(
        topic: event.topic, replayID: ReplayID(raw.replayID),
        eventID: String(decoding: raw.eventID, as: UTF8.self), schemaID: raw.schemaID,
        payload: raw.payload, reason: event.reason, epoch: event.epoch, ordinal: event.ordinal))
    self.countDeadLetter(topic: topic)
  }

  func countDeadLetter(topic: Int) {
    self.statistics.topics[topic].deadLetters += 1
    if self.statistics.deadLetters > self.configuration.maxDeadLetters {
      self.decide(.deadLetterLimit(topic: self.topics[topic].topic.name))
    }
  }
}

/// The place of an event that a store refused.
struct RefusedPlace: Hashable {
  var topic: Int
  var epoch: Int
  var ordinal: Int64

  func isAfter(_ other: RefusedPlace) -> Bool {
    (self.epoch, self.ordinal) > (other.epoch, other.ordinal)
  }
}
