internal import Clocks
import EventLoop

/// Since when a run should have stopped: its user has asked for it, or its time is over. Known to every
/// thread.
final class Interruption: Sendable {
  private let since: Lock<ContinuousClock.Instant?>

  /// - Parameter deadline: when the run's time is over; nil for a run without a limit.
  init(deadline: ContinuousClock.Instant?) { self.since = Lock(deadline) }

  func ask() {
    self.since.withLock { $0 = $0.map { min($0, ProcessClock.now) } ?? ProcessClock.now }
  }

  /// The run has been asked to stop, and should have by now.
  func hasLasted(_ patience: Duration) -> Bool {
    self.since.withLock { since in since.map { ProcessClock.now - $0 >= patience } ?? false }
  }
}
