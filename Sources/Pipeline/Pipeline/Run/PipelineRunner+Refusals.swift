/// A topic that the service refuses does not stop the others. A run that follows requests it again
/// at a configured pace; any other run exports the other topics first. The refusal decides how the
/// run ends.
extension PipelineRunner {
  /// Sets a topic aside; ends the run if no topic is left.
  func refuse(topic: Int, _ failure: SourceFailure, at now: Instant) {
    let delay = self.follows ? self.configuration.refusedDelay : nil
    self.topics[topic].refused(failure, until: delay.map { now + $0 })
    self.statistics.topics[topic].refusal = failure
    self.statistics.topics[topic].retries += 1
    let isLast = self.topics.allSatisfy { $0.state != .running }
    // The failure of the last topic is what the run ends with.
    if delay != nil || !isLast {
      self.onNote?(.refused(topic: self.topics[topic].topic.name, failure, retryAfter: delay))
    }
    if isLast { self.decide(.failed(failure)) }
  }

  /// Requests topics again whose retry time has come.
  func retryRefused(now: Instant) {
    guard !self.isStopping else { return }
    for topic in self.topics.indices where self.topics[topic].resumeIfDue(at: now) {
      self.source.reopen(topic: topic)
    }
  }

  /// Notes that the service delivers the topic again.
  func noteService(topic: Int) {
    guard self.topics[topic].refusal != nil else { return }
    self.topics[topic].refusal = nil
    self.statistics.topics[topic].refusal = nil
  }
}
