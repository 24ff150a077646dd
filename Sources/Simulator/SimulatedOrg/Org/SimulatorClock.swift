internal import EventLoop
internal import Glibc

/// Wall-clock time that tests can move forward: days in no time.
package final class SimulatorClock: Sendable {
  private let offset = Lock<Int64>(0)

  /// Epoch milliseconds.
  package var now: Int64 {
    Self.wallTime + self.offset.withLock { $0 }
  }

  package func advance(byMilliseconds milliseconds: Int64) {
    self.offset.withLock { $0 += milliseconds }
  }

  package static var wallTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
