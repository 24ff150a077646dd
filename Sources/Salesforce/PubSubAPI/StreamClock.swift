internal import Clocks
internal import EventLoop

/// The clock of the streams.
package struct StreamClock: Sendable {
  package var now: @Sendable () -> ContinuousClock.Instant
  /// Returns at that instant, or as soon as the task is cancelled.
  package var sleep: @Sendable (ContinuousClock.Instant) async -> Void

  package init(
    now: @escaping @Sendable () -> ContinuousClock.Instant,
    sleep: @escaping @Sendable (ContinuousClock.Instant) async -> Void
  ) {
    self.now = now
    self.sleep = sleep
  }

  package static let continuous = StreamClock(
    now: { ProcessClock.now },
    sleep: { deadline in
      // The only error is cancellation, which the caller checks itself.
      try? await ProcessClock.sleep(until: deadline)
    })
}
