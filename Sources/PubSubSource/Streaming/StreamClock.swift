internal import Clocks
internal import EventLoop

/// Time as the streams see it.
struct StreamClock: Sendable {
  var now: @Sendable () -> ContinuousClock.Instant
  /// Returns at that instant, or as soon as the task is cancelled.
  var sleep: @Sendable (ContinuousClock.Instant) async -> Void

  static let continuous = StreamClock(
    now: { ProcessClock.now },
    sleep: { deadline in
      // The only error is cancellation, which the caller looks at itself.
      try? await ProcessClock.sleep(until: deadline)
    })
}
