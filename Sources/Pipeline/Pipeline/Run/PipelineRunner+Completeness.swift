internal import Clocks

/// Determines the time through which a topic is complete. Times are milliseconds since 1970 by the
/// service's clock.
extension PipelineRunner {
  /// Commit times are whole seconds, and changes are delivered slightly after they are made.
  private static var deliverySkew: Int64 { 5000 }

  /// The service's clock, as far as known, or else this machine's.
  private func clock(at now: Instant) -> ServiceClock {
    self.configuration.serviceClock ?? ServiceClock(reading: self.wallClock(), readAt: now)
  }

  /// Now.
  var serviceTime: Int64 {
    let now = self.now
    return self.clock(at: now).time(at: now)
  }

  /// Accepts only commit times within the calendar and not in the future; all others are wrong and
  /// prove nothing.
  var latestCommit: Int64 {
    let now = self.now
    return self.clock(at: now).latestCommit(at: now)
  }

  /// The time through which a stream is complete if it had nothing more at `time` or delivered a
  /// change of that time. Changes arrive in commit order.
  func completeThrough(nothingMoreAt time: Int64) -> Int64 { time &- Self.deliverySkew }

  /// Called when the run ends with every topic caught up: topics that were silent have nothing
  /// more.
  func proveCaughtUp() {
    for topic in self.topics.indices {
      guard let time = self.topics[topic].quietAt, self.topics[topic].cursors.hasPlace else {
        continue
      }
      self.topics[topic].cursors.prove(completeThrough: self.completeThrough(nothingMoreAt: time))
    }
  }
}
