internal import Clocks

/// Up to when a topic is known to have been taken whole. Times are milliseconds since 1970 by the
/// service's clock.
extension PipelineRunner {
  /// Commit times have whole seconds, and changes are delivered a little later than they are made.
  private static var deliverySkew: Int64 { 5000 }

  /// The service's, as far as it is known.
  private var clock: ServiceClock {
    self.configuration.serviceClock
      ?? ServiceClock(reading: self.wallClock(), readAt: ProcessClock.now)
  }

  /// Now.
  var serviceTime: Int64 { self.clock.time(at: ProcessClock.now) }

  /// Only commit times that a calendar has, and that are not in the future, are believed: any other is
  /// wrong, and proves nothing.
  func beginCommitTimes() {
    self.latestCommit = self.clock.latestCommit(at: ProcessClock.now)
    self.responseNewestCommit = nil
  }

  /// A stream that had nothing more to bring at `time`, or that has brought a change of that time:
  /// changes come in the order of their commits.
  func completeThrough(nothingMoreAt time: Int64) -> Int64 { time &- Self.deliverySkew }

  /// The run ends with every topic caught up: those that were silent then have nothing more.
  func proveCaughtUp() {
    for topic in self.topics.indices {
      guard let time = self.topics[topic].quietAt, self.topics[topic].cursors.hasPlace else {
        continue
      }
      self.topics[topic].cursors.prove(completeThrough: self.completeThrough(nothingMoreAt: time))
    }
  }
}
