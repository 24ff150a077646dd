internal import EventLoop
internal import Pipeline
internal import PubSubAPI

/// The runner's answer to where the stream begins. It never comes if the runner has failed; the
/// stream is then cancelled. The first answer counts.
final class StartAnswer: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<StartPoint?, Never>)
    case given(StartPoint?)
  }
  private let state = Lock(State.open)

  func give(_ start: StartPoint?) {
    let waiter = self.state.withLock { state -> CheckedContinuation<StartPoint?, Never>? in
      switch state {
      case .open:
        state = .given(start)
        return nil
      case .waiting(let waiter):
        state = .given(start)
        return waiter
      case .given: return nil
      }
    }
    waiter?.resume(returning: start)
  }

  /// Call this once. Also returns nil if the task is cancelled.
  func wait() async -> StartPoint? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let given = self.state.withLock { state -> StartPoint?? in
          if case .given(let start) = state { return .some(start) }
          state = .waiting(continuation)
          return .none
        }
        if case .some(let start) = given { continuation.resume(returning: start) }
      }
    } onCancel: {
      self.give(nil)
    }
  }
}
