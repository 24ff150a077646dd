internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import GRPCProtobuf
internal import PubSubMessages

extension PubSubClient {
  /// Publishes events with one `Publish` call.
  ///
  /// Publishing is not idempotent. After an error, whether the events were published is unknown
  /// unless the error says otherwise: `PubSubError.isUnprocessed`, or `isRefusal` with a status or
  /// a code that means that the request was not examined.
  ///
  /// - Parameter events: at least one; the service asks for at most 200 and 3 MB.
  /// - Throws: `PubSubError`, also for an answer that does not fit the request.
  public func publish(
    topic: String, events: [EventToPublish], credentials: Credentials
  ) async throws -> PublishAnswer {
    precondition(!events.isEmpty, "a request without events")
    let call = ServiceTrace.Call.publication(topic: topic)
    let response: Eventbus_V1_PublishResponse = try await self.unary(
      Eventbus_V1_PublishRequest(topic: topic, events: events),
      Eventbus_V1_PubSub.Method.Publish.descriptor, credentials, call, rpcID: \.rpcID,
      deserializer: PublishResponseDeserializer())
    return try PublishAnswer(response, to: events.map(\.id), operation: "\(call)")
  }

  /// Opens a `PublishStream` call and lends it to `body`.
  ///
  /// The service ends a stream that gets no request for 70 s, so `body` should return when it no
  /// longer needs the stream. When `body` returns, the request side is closed and the end of the
  /// call is awaited for `closingTime`. When it throws, the call is aborted. `body` runs in a task
  /// that is cancelled when the service ends the call.
  ///
  /// - Throws: what `body` throws; `PubSubError` if the call failed before `body` began.
  public func withPublishStream<Result: Sendable>(
    topic: String, credentials: Credentials, closingTime: Duration = .seconds(10),
    _ body: @Sendable @escaping (PublishStream) async throws -> Result
  ) async throws -> Result {
    let call = ServiceTrace.Call.publishStream(topic: topic)
    let stream = PublishStream(
      topic: topic, answerTimeout: self.unaryTimeout, clock: self.clock)
    let outcome = Lock<Swift.Result<Result, any Error>?>(nil)
    let left = AsyncStream<Never>.makeStream()
    let request = StreamingClientRequest<Eventbus_V1_PublishRequest>(
      metadata: credentials.metadata
    ) { writer in
      stream.open(writer)
      defer { left.continuation.finish() }
      do {
        let value = try await body(stream)
        outcome.withLock { $0 = .success(value) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
        // Aborts the call.
        throw error
      }
    }
    let failure = await withTaskGroup(of: PubSubError??.self) { group -> PubSubError? in
      group.addTask { await .some(self.conduct(request, stream, call)) }
      group.addTask {
        for await _ in left.stream {}
        let isOver = outcome.withLock { if case .success = $0 { false } else { true } }
        // The only error is cancellation, which means that the call has ended.
        if !isOver { try? await self.clock.sleep(for: closingTime) }
        return .none
      }
      // Either the call has ended, or nobody waits for its end any longer.
      let first = await group.next() ?? .none
      group.cancelAll()
      left.continuation.finish()
      if case .some(let failure) = first { return failure }
      for await result in group { if case .some(let failure) = result { return failure } }
      return nil
    }
    self.onTrace?(.ended(call, failure))
    switch outcome.withLock({ $0 }) {
    case .success(let value): return value
    case .failure(let error):
      // `body` may have abandoned a request that waited for a connection.
      guard var error = error as? PubSubError, failure?.isUnprocessed == true else { throw error }
      error.isUnprocessed = true
      throw error
    case nil:
      throw failure
        ?? PubSubError(.endOfStream, status: .ok, "\(call): the service ended the call at once")
    }
  }

  /// Returns the error with which the call ended; nil for status OK.
  private func conduct(
    _ request: StreamingClientRequest<Eventbus_V1_PublishRequest>, _ stream: PublishStream,
    _ call: ServiceTrace.Call
  ) async -> PubSubError? {
    do {
      try await self.client.bidirectionalStreaming(
        request: request, descriptor: Eventbus_V1_PubSub.Method.PublishStream.descriptor,
        serializer: ProtobufSerializer<Eventbus_V1_PublishRequest>(),
        deserializer: PublishResponseDeserializer(), options: .defaults
      ) { response in
        do {
          for try await part in try response.accepted.get().bodyParts {
            guard case .message(let message) = part else { break }
            stream.received(message)
          }
          try Task.checkCancellation()
          stream.ended(nil)
        } catch {
          // Reported at once, because the call returns only after `body`, which may be waiting for
          // an answer.
          stream.ended(PubSubError(error, operation: "\(call)"))
          throw error
        }
      }
      return nil
    } catch {
      let failure = PubSubError(error, operation: "\(call)")
      // For a call that failed before there was a response.
      stream.ended(failure)
      return failure
    }
  }
}
