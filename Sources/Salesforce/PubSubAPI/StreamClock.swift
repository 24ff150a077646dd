package import Clocks
internal import EventLoop

/// The clock of the streams.
package struct StreamClock: Sendable {
  package var now: @Sendable () -> ContinuousClock.Instant
  /// Returns at that instant, or as soon as the task is cancelled.
  package var sleep: @Sendable (ContinuousClock.Instant) async -> Void
  /// When to look again for something that nobody announces.
  package var nextLook: @Sendable (ContinuousClock.Instant, Duration) -> ContinuousClock.Instant

  package init(
    now: @escaping @Sendable () -> ContinuousClock.Instant,
    sleep: @escaping @Sendable (ContinuousClock.Instant) async -> Void,
    nextLook: @escaping @Sendable (ContinuousClock.Instant, Duration) -> ContinuousClock.Instant = {
      $0 + $1
    }
  ) {
    self.now = now
    self.sleep = sleep
    self.nextLook = nextLook
  }

  package init(_ clock: ProcessClock) {
    self.init(
      now: { clock.now },
      sleep: { deadline in
        // The only error is cancellation, which the caller checks itself.
        try? await clock.sleep(until: deadline)
      }, nextLook: { clock.nextLook(from: $0, after: $1) })
  }
}
