import JSON

/// Committing: every sink durable, then one checkpoint that says so.
extension PipelineRunner {
  /// The pending bytes of the sink that has most.
  var pendingByteCount: Int {
    var pending = self.sinks.reduce(self.deadLetters.pendingByteCount) {
      max($0, $1.pendingByteCount)
    }
    for sink in self.transactionalSinks { pending = max(pending, sink.pendingByteCount) }
    return pending
  }

  func commitIfDue(now: Instant) throws {
    let isDue =
      self.policy.isDue(pendingBytes: self.pendingByteCount, at: now) || self.deadLetters.isDue
      || self.sinks.contains(where: \.isDue) || self.transactionalSinks.contains(where: \.isDue)
    guard isDue else { return }
    try self.commit(finish: false)
  }

  /// - Parameter finish: gives every open file its final name too.
  func commit(finish: Bool) throws {
    // A store's refusals become dead letters of this commit; its own commit comes last, so that
    // after a crash it is the one that takes the events again.
    for (index, sink) in self.transactionalSinks.enumerated() {
      try sink.prepare(self.storedPositions(ofStore: index + 1)) { try self.takeRefused($0) }
    }
    try self.save(finish: finish)
    for sink in self.transactionalSinks { try sink.commit() }
    self.policy.committed(at: .now)
    self.isOverweight = false
    self.retained.removeAll(keepingLast: true)
    self.refused.removeAll()
    self.statistics.commits += 1
    for (index, topic) in self.topics.enumerated() {
      self.statistics.topics[index].exported = topic.takenCount
    }
    var hasChanged = try self.deadLetters.committed()
    for sink in self.sinks where try sink.committed() { hasChanged = true }
    // During a run the next checkpoint drops what has been completed; the last one has no next.
    if finish, hasChanged { try self.save(finish: true) }
  }

  private func save(finish: Bool) throws {
    var states: [String: JSONValue] = [:]
    for sink in self.sinks { states[sink.name] = try sink.flush(finish: finish) }
    let deadLetters = try self.deadLetters.flush(finish: finish)
    try self.saveCheckpoint(self.storedPositions(ofStore: 0), states, deadLetters)
  }

  /// Of topics that have a position: one that was misspelt leaves no trace.
  private func storedPositions(ofStore store: Int) -> [String: JSONValue] {
    var topics: [String: JSONValue] = [:]
    for topic in self.topics {
      let stored = topic.positions.stores[store].stored
      if stored.isUntouched { continue }
      topics[topic.topic.name] = stored.json
    }
    return topics
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
    try self.deadLetters.append(
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
