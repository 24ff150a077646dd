internal import EventLoop

/// Passes credit and commits to the writing half of a managed subscription.
///
/// Holds one number and one commit: a position includes earlier ones, so only the newest of several
/// commits is sent, and nothing can pile up. One reader.
public final class ManagedRequestQueue: Sendable {
  struct Request: Sendable, Equatable {
    /// 0 for a commit alone.
    var credit = 0
    var commit: ManagedCommit?

    var isEmpty: Bool { self.credit == 0 && self.commit == nil }
  }

  private struct State {
    var request = Request()
    var isFinished = false
    var waiter: CheckedContinuation<Request?, Never>?
  }
  private let state = Lock(State())

  /// An empty queue, for one call.
  public init() {}

  /// - Parameter count: more than zero.
  public func add(_ count: Int) {
    precondition(count > 0, "credit of \(count)")
    self.change { $0.credit += count }
  }

  /// Sends this position with the next request, in place of one that is still waiting.
  public func add(_ commit: ManagedCommit) { self.change { $0.commit = commit } }

  private func change(_ body: (inout Request) -> Void) {
    let resume = self.state.withLock { state -> (() -> Void)? in
      guard !state.isFinished else { return nil }
      body(&state.request)
      guard let waiter = state.waiter.take() else { return nil }
      defer { state.request = Request() }
      return { [request = state.request] in waiter.resume(returning: request) }
    }
    resume?()
  }

  /// Ends the requests. What has been added is still sent; then the request side closes.
  public func finish() {
    let waiter = self.state.withLock { state in
      state.isFinished = true
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }

  /// Everything added since the last call, as soon as there is anything; nil when finished.
  func next() async -> Request? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer = self.state.withLock { state -> Request?? in
          if !state.request.isEmpty {
            defer { state.request = Request() }
            return .some(state.request)
          }
          if state.isFinished { return .some(nil) }
          state.waiter = continuation
          return .none
        }
        if case .some(let request) = answer { continuation.resume(returning: request) }
      }
    } onCancel: {
      self.finish()
    }
  }
}
