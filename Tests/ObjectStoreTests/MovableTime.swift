import Clocks
import EventLoop

/// A wall clock that a test moves, and pauses that are over at once.
final class MovableTime: TimeService {
  private let offset = Lock<Int64>(0)
  private let slept = Lock<Duration>(.zero)

  /// Sets how many milliseconds it is ahead of the machine's clock.
  func move(_ milliseconds: Int64) { self.offset.withLock { $0 = milliseconds } }

  var wallOffset: Int64 { self.offset.withLock { $0 } }
  var skipped: Duration { self.slept.withLock { $0 } }
  func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant { now + usual }
  func sleep(until deadline: ContinuousClock.Instant) async throws {
    self.slept.withLock { $0 += max(.zero, deadline - (ContinuousClock.now + $0)) }
  }
  func beginWait() {}
  func endWait() {}
  func loopBegins(wake: @escaping @Sendable () -> Void) -> Int { 0 }
  func loopEnds(_ loop: Int) {}
  func loop(_ loop: Int, waitsUntil deadline: ContinuousClock.Instant?) {}
  func loopsWatch(_ descriptor: Int32) {}
  func loopsIgnore(_ descriptor: Int32) {}
}
