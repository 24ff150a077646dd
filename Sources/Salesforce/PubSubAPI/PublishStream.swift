internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import PubSubMessages

/// An open `PublishStream` call: requests are sent, and each is answered, in order.
///
/// Used by one task. The caller decides how many requests are outstanding.
public final class PublishStream: Sendable {
  private struct State {
    var writer: RPCWriter<Eventbus_V1_PublishRequest>?
    /// The event IDs of each unanswered request, oldest first.
    var outstanding: [[String]] = []
    var answers: [PublishAnswer] = []
    /// Why there will be no more answers.
    var end: PubSubError?
    /// When the last message came; nil before the first.
    var lastMessage: ContinuousClock.Instant?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let operation: String
  private let topic: String
  private let answerTimeout: Duration
  private let clock: ProcessClock
  private let state = Lock(State())

  init(topic: String, answerTimeout: Duration, clock: ProcessClock) {
    self.operation = "\(ServiceTrace.Call.publishStream(topic: topic))"
    self.topic = topic
    self.answerTimeout = answerTimeout
    self.clock = clock
  }

  /// Sends a request.
  ///
  /// The request gets no answer if the call ends in the middle of it, or if the call accepts no
  /// more of it and sends no answer within the time limit.
  ///
  /// - Parameter events: at least one.
  /// - Returns: false if the call had already ended, so that nothing was sent; `answer` says why,
  ///   after the answers that have arrived.
  public func send(_ events: [EventToPublish]) async -> Bool {
    precondition(!events.isEmpty, "a request without events")
    let writer = self.state.withLock { state -> RPCWriter<Eventbus_V1_PublishRequest>? in
      guard state.end == nil else { return nil }
      guard let writer = state.writer else {
        preconditionFailure("a stream is lent only while it is open")
      }
      // Done before the request is written, because its answer may arrive before `write` returns.
      state.outstanding.append(events.map(\.id))
      return writer
    }
    guard let writer else { return false }
    do {
      try await self.write(
        Eventbus_V1_PublishRequest(topic: self.topic, events: events), by: writer)
    } catch {
      let failure = PubSubError(error, operation: self.operation)
      // The call's error says more than the failed write does.
      if failure.code != .idle { await self.wait { $0.end != nil } }
      self.ended(failure)
    }
    return true
  }

  /// Throws code `idle` if the service accepts no more of the request and sends no answer.
  private func write(
    _ request: Eventbus_V1_PublishRequest, by writer: RPCWriter<Eventbus_V1_PublishRequest>
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await writer.write(request) }
      group.addTask { try await self.waitForSilence() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Throws if nothing has come within the time limit for an answer.
  private func waitForSilence() async throws {
    var since = self.clock.now
    while true {
      try await self.clock.sleep(until: since + self.answerTimeout)
      guard let last = self.state.withLock({ $0.lastMessage }), last > since else { break }
      since = last
    }
    throw PubSubError(
      .idle, status: .deadlineExceeded,
      "\(self.operation): the service took no more of the request for \(self.answerTimeout)")
  }

  /// The answer to the oldest unanswered request.
  ///
  /// - Throws: `PubSubError`, because the call has ended or no answer came in time.
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

  /// Returns when the condition holds, or after the time limit for an answer. The calling task may
  /// have been cancelled, which happens when the service has ended the call.
  private func wait(_ condition: @Sendable (State) -> Bool) async {
    let isLate = Lock(false)
    let timer = Task {
      // The only error is cancellation, which means that the wait is over.
      try? await self.clock.sleep(for: self.answerTimeout)
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
      state.lastMessage = self.clock.now
      guard !state.outstanding.isEmpty else {
        state.end = PubSubError(
          .malformedResponse, status: .ok, "\(self.operation): a response without a request")
        state.end?.hasResponse = true
        return
      }
      do throws(PubSubError) {
        let answer = try PublishAnswer(
          response, to: state.outstanding[0], operation: self.operation)
        state.outstanding.removeFirst()
        state.answers.append(answer)
      } catch {
        state.end = error
      }
      state.end?.hasResponse = true
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
      if state.lastMessage != nil { state.end?.hasResponse = true }
    }
    self.wake()
  }
}
