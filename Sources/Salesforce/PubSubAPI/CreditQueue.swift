internal import EventLoop

/// Passes credit from the reading to the writing half of a subscription.
///
/// Holds a single number: what is added while the writer is busy is sent in one request, so nothing
/// can pile up. One reader.
public final class CreditQueue: Sendable {
  private struct State {
    var credit = 0
    var isFinished = false
    var waiter: CheckedContinuation<Int?, Never>?
  }
  private let state = Lock(State())

  /// A queue for one subscription.
  public init() {}

  /// - Parameter count: more than zero.
  public func add(_ count: Int) {
    precondition(count > 0, "credit of \(count)")
    let resume = self.state.withLock { state -> (() -> Void)? in
      guard !state.isFinished else { return nil }
      guard let waiter = state.waiter.take() else {
        state.credit += count
        return nil
      }
      return { waiter.resume(returning: count) }
    }
    resume?()
  }

  /// Ends the requests; the request side closes.
  public func finish() {
    let waiter = self.state.withLock { state in
      state.isFinished = true
      state.credit = 0
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }

  /// All credit added since the last call, as soon as there is any; nil when finished.
  func next() async -> Int? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer = self.state.withLock { state -> Int?? in
          if state.isFinished { return .some(nil) }
          if state.credit > 0 {
            defer { state.credit = 0 }
            return .some(state.credit)
          }
          state.waiter = continuation
          return .none
        }
        if case .some(let credit) = answer { continuation.resume(returning: credit) }
      }
    } onCancel: {
      self.finish()
    }
  }
}
