import JSON

/// Committing: every sink durable, then one checkpoint that says so.
extension PipelineRunner {
  func commitIfDue(now: Instant) throws {
    let pending = self.sinks.reduce(self.deadLetters.pendingByteCount) {
      max($0, $1.pendingByteCount)
    }
    let isDue = self.policy.isDue(pendingBytes: pending, at: now)
    guard isDue || self.deadLetters.isDue || self.sinks.contains(where: \.isDue) else { return }
    try self.commit(finish: false)
  }

  /// - Parameter finish: gives every open file its final name too.
  func commit(finish: Bool) throws {
    try self.save(finish: finish)
    self.policy.committed()
    self.statistics.commits += 1
    for topic in self.taken.indices {
      self.statistics.topics[topic].exported = self.taken[topic]
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
    var topics: [String: JSONValue] = [:]
    for (topic, position) in zip(self.source.topics, self.positions) {
      topics[topic.name] = position.stored.json
    }
    try self.saveCheckpoint(topics, states, deadLetters)
  }
}
