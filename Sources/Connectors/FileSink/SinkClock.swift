internal import CSystem
internal import Clocks
internal import Glibc
internal import Pipeline

/// The clocks of a sink; tests supply their own.
struct SinkClock: Sendable {
  /// For ages; never goes backwards.
  var monotonic: @Sendable () -> Duration
  /// Milliseconds since 1970, for export dates.
  var utcMilliseconds: @Sendable () -> Int64

}

extension SinkClock {
  init(_ clock: ProcessClock) {
    self.init(
      monotonic: {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec) + clock.skipped
      },
      utcMilliseconds: { clock.wallTime })
  }
}
