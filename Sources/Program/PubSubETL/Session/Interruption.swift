internal import Clocks
import EventLoop

/// Whether and since when a run has to stop: the user has requested it with a signal, or the time
/// limit has passed. Used from any thread.
final class Interruption: Sendable {
  private struct State {
    /// When the run should have stopped.
    var since: ContinuousClock.Instant?
    var isAsked = false
    var response: (@Sendable () -> Void)?
  }

  /// The run's time limit; nil if there is none.
  let deadline: ContinuousClock.Instant?
  private let clock: ProcessClock
  private let state: Lock<State>

  init(deadline: ContinuousClock.Instant?, clock: ProcessClock) {
    self.deadline = deadline
    self.clock = clock
    self.state = Lock(State(since: deadline))
  }

  /// Call this when the user asks the run to stop.
  func ask() {
    let now = self.clock.now
    let response = self.state.withLock { state in
      state.since = state.since.map { min($0, now) } ?? now
      state.isAsked = true
      return state.response
    }
    response?()
  }

  var isAsked: Bool { self.state.withLock { $0.isAsked } }

  /// Replaces what `ask` calls. If the user has asked already, calls it at once.
  ///
  /// - Returns: false if the user has asked already.
  @discardableResult
  func respond(_ response: @escaping @Sendable () -> Void) -> Bool {
    let isAsked = self.state.withLock { state in
      state.response = response
      return state.isAsked
    }
    if isAsked { response() }
    return !isAsked
  }

  /// Whether the run was to stop longer ago than `patience`.
  func hasLasted(_ patience: Duration) -> Bool {
    self.state.withLock { state in
      state.since.map { self.clock.now - $0 >= patience } ?? false
    }
  }
}
