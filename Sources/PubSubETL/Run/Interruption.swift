internal import Clocks
import EventLoop

/// When a run has to stop: its user asks for it by a signal, or its time is over. Known to every
/// thread.
final class Interruption: Sendable {
  private struct State {
    /// Since when the run should have stopped.
    var since: ContinuousClock.Instant?
    var isAsked = false
    var response: (@Sendable () -> Void)?
  }

  /// The end of the run's time; nil for a run without a limit.
  let deadline: ContinuousClock.Instant?
  private let state: Lock<State>

  init(deadline: ContinuousClock.Instant?) {
    self.deadline = deadline
    self.state = Lock(State(since: deadline))
  }

  /// The user asks the run to stop.
  func ask() {
    let response = self.state.withLock { state in
      state.since = state.since.map { min($0, ProcessClock.now) } ?? ProcessClock.now
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

  /// The run has been asked to stop, and should have by now.
  func hasLasted(_ patience: Duration) -> Bool {
    self.state.withLock { state in
      state.since.map { ProcessClock.now - $0 >= patience } ?? false
    }
  }
}
