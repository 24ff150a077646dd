import EventLoop

/// When the user has asked a run to stop. Known to every thread.
final class Interruption: Sendable {
  private let since = Lock<ContinuousClock.Instant?>(nil)

  func ask() {
    self.since.withLock { $0 = $0 ?? .now }
  }

  /// The run has been asked to stop, and should have by now.
  func hasLasted(_ patience: Duration) -> Bool {
    self.since.withLock { since in since.map { .now - $0 >= patience } ?? false }
  }
}
