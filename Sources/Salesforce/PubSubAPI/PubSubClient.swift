package import Clocks
internal import EventLoop
internal import FoundationEssentials
public import GRPCCore
internal import GRPCProtobuf
internal import PubSubMessages
internal import SwiftProtobuf

/// The Pub/Sub API calls that an exporter makes. The owner of the `GRPCClient` runs it and shuts it
/// down.
public struct PubSubClient<Transport: ClientTransport>: Sendable {
  let client: GRPCClient<Transport>
  /// For calls with one answer; a subscription has no deadline.
  let unaryTimeout: Duration
  package let clock: ProcessClock
  /// Where calls of subscriptions run, so that responses change no thread; nil for anywhere. What
  /// takes their responses must not block there.
  package let executor: (any TaskExecutor)?
  let onTrace: (@Sendable (ServiceTrace) -> Void)?

  /// - Parameter onTrace: receives the progress of calls. Called from any thread; must not block.
  public init(
    _ client: GRPCClient<Transport>, unaryTimeout: Duration = .seconds(30),
    onTrace: (@Sendable (ServiceTrace) -> Void)? = nil
  ) {
    self.init(client, unaryTimeout: unaryTimeout, clock: ProcessClock(), onTrace: onTrace)
  }

  package init(
    _ client: GRPCClient<Transport>, unaryTimeout: Duration = .seconds(30), clock: ProcessClock,
    executor: (any TaskExecutor)? = nil, onTrace: (@Sendable (ServiceTrace) -> Void)? = nil
  ) {
    self.client = client
    self.unaryTimeout = unaryTimeout
    self.clock = clock
    self.executor = executor
    self.onTrace = onTrace
  }

  /// The service's information about a topic. Throws `PubSubError`.
  public func topic(
    named name: String, credentials: Credentials
  ) async throws -> TopicInformation {
    let info: Eventbus_V1_TopicInfo = try await self.unary(
      Eventbus_V1_TopicRequest.with { $0.topicName = name },
      Eventbus_V1_PubSub.Method.GetTopic.descriptor, credentials, .topic(name), rpcID: \.rpcID,
      deserializer: ProtobufDeserializer())
    return TopicInformation(
      name: info.topicName, tenantGUID: info.tenantGuid, canPublish: info.canPublish,
      canSubscribe: info.canSubscribe, schemaID: info.schemaID, rpcID: info.rpcID)
  }

  /// The schema of an event, by the ID in the event. Throws `PubSubError`.
  public func schema(
    id: String, credentials: Credentials
  ) async throws -> SchemaInformation {
    let info: Eventbus_V1_SchemaInfo = try await self.unary(
      Eventbus_V1_SchemaRequest.with { $0.schemaID = id },
      Eventbus_V1_PubSub.Method.GetSchema.descriptor, credentials, .schema(id: id), rpcID: \.rpcID,
      deserializer: ProtobufDeserializer())
    return SchemaInformation(id: info.schemaID, json: info.schemaJson, rpcID: info.rpcID)
  }

  /// Runs one subscription until the service or the caller ends it.
  ///
  /// The request side stays open as long as the call. Returns when the service has ended the call
  /// with status OK or `onResponse` has returned false. Throws `PubSubError` if the call ended
  /// otherwise, and what `onResponse` throws. Cancelling the task resets the stream.
  ///
  /// - Parameters:
  ///   - credit: the credit to request after the first request.
  ///   - onOpen: called when the first request has been sent on a live connection.
  ///   - onResponse: called for each response in order; the next one is read after it returns.
  ///     False ends the call.
  public func subscribe(
    _ start: Subscription, credentials: Credentials, credit: CreditQueue,
    onOpen: @Sendable @escaping () async -> Void = {},
    onResponse: @Sendable @escaping (FetchResponseView) async throws -> Bool
  ) async throws {
    let onTrace = self.onTrace
    let first = start.firstRequest
    try await self.converse(
      .subscription(topic: start.topic), topic: start.topic,
      Eventbus_V1_PubSub.Method.Subscribe.descriptor, FetchResponseDeserializer(), credentials,
      onEnd: { credit.finish() }, onResponse: onResponse,
      write: { (writer: RPCWriter<Eventbus_V1_FetchRequest>) in
        try await writer.write(first)
        onTrace?(.subscribed(start))
        await onOpen()
        while let count = await credit.next() {
          try await writer.write(.with { $0.numRequested = Int32(count) })
          onTrace?(.requested(topic: start.topic, count: count))
        }
      })
  }

  /// Runs a call whose responses are those of a subscription; see `subscribe`.
  ///
  /// - Parameters:
  ///   - topic: the topic named in the trace of its responses.
  ///   - onEnd: makes the writer end; may be called more than once.
  ///   - write: writes the requests; the request side closes when it returns.
  func converse<Request: Message>(
    _ call: ServiceTrace.Call, topic: String, _ method: MethodDescriptor,
    _ deserializer: FetchResponseDeserializer, _ credentials: Credentials,
    onEnd: @Sendable @escaping () -> Void,
    onResponse: @Sendable @escaping (FetchResponseView) async throws -> Bool,
    write: @Sendable @escaping (RPCWriter<Request>) async throws -> Void
  ) async throws {
    let onTrace = self.onTrace
    let request = StreamingClientRequest<Request>(
      metadata: credentials.metadata, producer: write)
    // The writer that waits for more requests ends with the call.
    defer { onEnd() }
    let ending: Ending
    do {
      ending = try await self.client.bidirectionalStreaming(
        request: request, descriptor: method, serializer: ProtobufSerializer<Request>(),
        deserializer: deserializer, options: .defaults
      ) { response in
        defer { onEnd() }
        let contents = try response.accepted.get()
        for try await part in contents.bodyParts {
          switch part {
          case .message(let view):
            onTrace?(.received(topic: topic, view))
            do {
              guard try await onResponse(view) else { return .left }
            } catch {
              return .failed(error)
            }
          case .trailingMetadata:
            return .ended
          }
        }
        try Task.checkCancellation()
        throw RPCError(code: .unavailable, message: "the stream broke off without a status")
      }
    } catch {
      let failure = PubSubError(error, operation: "\(call)")
      onTrace?(.ended(call, Task.isCancelled ? nil : failure))
      throw failure
    }
    onTrace?(.ended(call, nil))
    if case .failed(let error) = ending { throw error }
  }

  private enum Ending: Sendable {
    case ended, left
    case failed(any Error)
  }

  func unary<Request: Message, Response: Message>(
    _ message: Request, _ method: MethodDescriptor, _ credentials: Credentials,
    _ call: ServiceTrace.Call, rpcID: (Response) -> String,
    deserializer: some MessageDeserializer<Response>
  ) async throws -> Response {
    var metadata = credentials.metadata
    metadata.addString(Self.timeoutText(self.unaryTimeout), forKey: "grpc-timeout")
    let start = self.clock.now
    let answer = Lock<Response?>(nil)
    do {
      let response = try await Self.within(self.unaryTimeout, self.clock) {
        [client, metadata] in
        // Not `unary`, which does not report a message before an error status, and does not
        // distinguish an error status from an answer with no or two messages.
        try await client.serverStreaming(
          request: ClientRequest(message: message, metadata: metadata),
          descriptor: method, serializer: ProtobufSerializer<Request>(),
          deserializer: deserializer, options: .defaults
        ) { response in
          for try await part in try response.accepted.get().bodyParts {
            guard case .message(let message) = part else { continue }
            guard answer.withLock({ Self.fill(&$0, with: message) }) else {
              throw PubSubError(
                .malformedResponse, status: .ok, "\(call): the response has several messages")
            }
          }
          try Task.checkCancellation()
          guard let message = answer.withLock({ $0 }) else {
            throw PubSubError(
              .malformedResponse, status: .ok, "\(call): the response has no message")
          }
          return message
        }
      }
      self.onTrace?(.answered(call, rpcID: rpcID(response), after: self.clock.now - start))
      return response
    } catch {
      var failure = PubSubError(error, operation: "\(call)")
      failure.hasResponse = answer.withLock { $0 != nil }
      self.onTrace?(.ended(call, failure))
      throw failure
    }
  }

  /// Returns false if there already was an answer.
  private static func fill<Response>(_ answer: inout Response?, with message: Response) -> Bool {
    defer { answer = message }
    return answer == nil
  }

  /// Aborts a call that takes too long.
  ///
  /// GRPCCore's timer does not tell whether the request had been sent by then, and uses the
  /// machine's clock, which a served clock runs ahead of.
  private static func within<Response: Sendable>(
    _ timeout: Duration, _ clock: ProcessClock,
    _ call: @escaping @Sendable () async throws -> Response
  ) async throws -> Response {
    try await withThrowingTaskGroup(of: Response?.self) { group in
      group.addTask { try await call() }
      group.addTask {
        // The only error is cancellation, which also aborts the call.
        try? await clock.sleep(for: timeout)
        return nil
      }
      defer { group.cancelAll() }
      if case .some(.some(let response)) = try await group.next() { return response }
      group.cancelAll()
      do {
        if case .some(.some(let response)) = try await group.next() { return response }
        preconditionFailure("a call without a result")
      } catch let error as RPCError where error.code == .cancelled && !Task.isCancelled {
        var late = RPCError(code: .deadlineExceeded, message: "no response within \(timeout)")
        late.metadata = error.metadata
        throw late
      }
    }
  }

  /// The timeout as sent to the server (gRPC over HTTP/2, "Timeout"), with at most eight digits.
  private static func timeoutText(_ timeout: Duration) -> String {
    let milliseconds = max(1, Int64((timeout / .milliseconds(1)).rounded()))
    return milliseconds <= 99_999_999
      ? "\(milliseconds)m" : "\(min(milliseconds / 1000, 99_999_999))S"
  }
}

/// Answer of `GetTopic`.
public struct TopicInformation: Sendable, Hashable {
  /// As the service spells it.
  public var name: String
  /// The org's ID in the service.
  public var tenantGUID: String
  /// Whether the user may publish to it.
  public var canPublish: Bool
  /// Whether the user may subscribe to it.
  public var canSubscribe: Bool
  /// Empty for channels, whose events have their own schemas.
  public var schemaID: String
  /// To quote to the service's support.
  public var rpcID: String
}

/// Answer of `GetSchema`.
public struct SchemaInformation: Sendable, Hashable {
  /// The requested ID.
  public var id: String
  /// The Avro schema.
  public var json: String
  /// To quote to the service's support.
  public var rpcID: String
}

/// The parameters of a `Subscribe` call.
public struct Subscription: Sendable, Hashable {
  /// Where a subscription begins.
  public enum Position: Sendable, Hashable {
    /// Events published once the subscription is established.
    case latest
    /// The oldest event that the service retains.
    case earliest
    /// The event after this replay ID.
    case after([UInt8])
  }

  /// Such as `/event/Order_Event__e`.
  public var topic: String
  /// Where the subscription begins.
  public var position: Position
  /// 1...100.
  public var credit: Int

  /// - Parameters:
  ///   - topic: such as `/event/Order_Event__e`.
  ///   - position: where the subscription begins.
  ///   - credit: events of the first request, 1...100.
  public init(topic: String, position: Position, credit: Int) {
    self.topic = topic
    self.position = position
    self.credit = credit
  }

  var firstRequest: Eventbus_V1_FetchRequest {
    .with {
      $0.topicName = self.topic
      $0.numRequested = Int32(self.credit)
      switch self.position {
      case .latest: $0.replayPreset = .latest
      case .earliest: $0.replayPreset = .earliest
      case .after(let replayID):
        $0.replayPreset = .custom
        $0.replayID = .init(replayID)
      }
    }
  }
}
