internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import PubSubMessages

/// A call of `PublishStream` that is open: requests go out, and each is answered, in their order.
///
/// Used by one task. How many requests are outstanding is up to the caller.
public final class PublishStream: Sendable {
  private struct State {
    var writer: RPCWriter<Eventbus_V1_PublishRequest>?
    /// IDs of the events of each request that is not answered, the oldest first.
    var outstanding: [[String]] = []
    var answers: [PublishAnswer] = []
    /// Why there will be no more answers.
    var end: PubSubError?
    var hasAnswered = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let operation: String
  private let topic: String
  private let answerTimeout: Duration
  private let state = Lock(State())

  init(topic: String, answerTimeout: Duration) {
    self.operation = "\(ServiceTrace.Call.publishStream(topic: topic))"
    self.topic = topic
    self.answerTimeout = answerTimeout
  }

  /// Whether the service has answered a request of this call: before that, a refusal of the call means
  /// that nothing was published.
  public var hasAnswered: Bool { self.state.withLock { $0.hasAnswered } }

  /// Sends a request.
  ///
  /// - Parameter events: at least one.
  /// - Returns: false if the call had ended before, so that nothing was sent; `answer` says why.
  /// - Throws: `PubSubError`, why the call has ended. Whether the events were published is unknown then,
  ///   as it is for all requests without an answer.
  public func send(_ events: [EventToPublish]) async throws -> Bool {
    precondition(!events.isEmpty, "a request without events")
    let writer = self.state.withLock { state -> RPCWriter<Eventbus_V1_PublishRequest>? in
      guard state.end == nil else { return nil }
      guard let writer = state.writer else {
        preconditionFailure("a stream is lent only while it is open")
      }
      // Before the request is written: its answer may be there before `write` returns.
      state.outstanding.append(events.map(\.id))
      return writer
    }
    guard let writer else { return false }
    do {
      try await writer.write(Eventbus_V1_PublishRequest(topic: self.topic, events: events))
      return true
    } catch {
      // What the call ended with says more than that nothing can be written.
      await self.wait { $0.end != nil }
      throw self.state.withLock { $0.end } ?? PubSubError(error, operation: self.operation)
    }
  }

  /// The answer to the oldest request that has none.
  ///
  /// - Throws: `PubSubError`, why the call has ended, or that no answer came in time.
  public func answer() async throws -> PublishAnswer {
    await self.wait { !$0.answers.isEmpty || $0.end != nil }
    return try self.state.withLock { state throws(PubSubError) in
      if !state.answers.isEmpty { return state.answers.removeFirst() }
      throw state.end
        ?? PubSubError(
          .idle, status: .deadlineExceeded,
          "\(self.operation): no answer within \(self.answerTimeout)")
    }
  }

  /// Returns when the condition holds, or after the time for an answer. The calling task may have been
  /// cancelled: it is, when the service has ended the call.
  private func wait(_ condition: @Sendable (State) -> Bool) async {
    let isLate = Lock(false)
    let timer = Task {
      // The only error is cancellation, which means that the wait is over.
      try? await ProcessClock.sleep(for: self.answerTimeout)
      isLate.withLock { $0 = true }
      self.wake()
    }
    defer { timer.cancel() }
    while !self.state.withLock({ condition($0) }), !isLate.withLock({ $0 }) {
      await withCheckedContinuation { continuation in
        let isOver = self.state.withLock { state in
          guard !condition(state), !isLate.withLock({ $0 }) else { return true }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    }
  }

  private func wake() { self.state.withLock { $0.waiter.take() }?.resume() }

  // MARK: The call's side

  func open(_ writer: RPCWriter<Eventbus_V1_PublishRequest>) {
    self.state.withLock { $0.writer = writer }
  }

  func received(_ response: Eventbus_V1_PublishResponse) {
    self.state.withLock { state in
      guard state.end == nil else { return }
      guard !state.outstanding.isEmpty else {
        state.end = PubSubError(
          .malformedResponse, status: .ok, "\(self.operation): a response without a request")
        return
      }
      do throws(PubSubError) {
        let answer = try PublishAnswer(
          response, to: state.outstanding[0], operation: self.operation)
        state.outstanding.removeFirst()
        state.answers.append(answer)
        state.hasAnswered = true
      } catch {
        state.end = error
      }
    }
    self.wake()
  }

  /// - Parameter error: nil for status OK.
  func ended(_ error: PubSubError?) {
    self.state.withLock { state in
      state.end =
        state.end ?? error
        ?? PubSubError(
          .endOfStream, status: .ok, "\(self.operation): the service ended the call")
    }
    self.wake()
  }
}
