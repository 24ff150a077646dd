internal import EventLoop
package import GRPCCore

/// A client transport whose server is a closure: for tests of what is above the transport.
package final class ScriptedTransport: ClientTransport {
  package typealias Bytes = [UInt8]

  private let serve: @Sendable (ServerCall) async -> Void
  private let takenMessages: Int
  private let shutdown = AsyncStream<Never>.makeStream()

  /// - Parameters:
  ///   - takenMessages: those of a call that are taken. The client waits in the middle of the next until
  ///     the call has been served.
  ///   - serve: answers one call; cancelled when the client has left the call.
  package init(
    takenMessages: Int = .max, serve: @Sendable @escaping (ServerCall) async -> Void
  ) {
    self.takenMessages = takenMessages
    self.serve = serve
  }

  package var retryThrottle: RetryThrottle? { nil }

  package func config(forMethod descriptor: MethodDescriptor) -> MethodConfig? { nil }

  package func connect() async throws {
    for await _ in self.shutdown.stream {}
  }

  package func beginGracefulShutdown() { self.shutdown.continuation.finish() }

  package func withStream<T: Sendable>(
    descriptor: MethodDescriptor, options: CallOptions,
    _ closure: (_ stream: RPCStream<Inbound, Outbound>, _ context: ClientContext) async throws -> T
  ) async throws -> T {
    let requests = AsyncStream<RPCRequestPart<[UInt8]>>.makeStream()
    let responses = AsyncThrowingStream<RPCResponsePart<[UInt8]>, any Error>.makeStream()
    let window = RequestWindow(messages: self.takenMessages)
    let call = ServerCall(
      method: descriptor.method, requests: requests.stream, responses: responses.continuation,
      window: window)
    let stream = RPCStream(
      descriptor: descriptor,
      inbound: RPCAsyncSequence(wrapping: responses.stream),
      outbound: RPCWriter.Closable(
        wrapping: RequestWriter(continuation: requests.continuation, window: window)))
    let context = ClientContext(
      descriptor: descriptor, remotePeer: "in-process:server", localPeer: "in-process:client")
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        await self.serve(call)
        responses.continuation.finish()
        window.close()
      }
      defer {
        requests.continuation.finish()
        group.cancelAll()
      }
      return try await closure(stream, context)
    }
  }

  private struct RequestWriter: ClosableRPCWriterProtocol {
    var continuation: AsyncStream<RPCRequestPart<[UInt8]>>.Continuation
    var window: RequestWindow

    func write(_ element: RPCRequestPart<[UInt8]>) async throws {
      if case .message = element { try await self.window.take() }
      self.continuation.yield(element)
    }
    func write(contentsOf elements: some Sequence<RPCRequestPart<[UInt8]>>) async throws {
      for element in elements { try await self.write(element) }
    }
    func finish() async { self.continuation.finish() }
    func finish(throwing error: any Error) async { self.continuation.finish() }
  }
}

/// How many messages of a call the server takes.
struct RequestWindow: Sendable {
  private let rest: Lock<Int>
  private let full = AsyncStream<Void>.makeStream()
  private let closed = AsyncStream<Never>.makeStream()

  init(messages: Int) { self.rest = Lock(messages) }

  /// Throws when there was no room for the message before the call ended, or the task was cancelled.
  func take() async throws {
    let hasRoom = self.rest.withLock { rest in
      defer { rest = max(0, rest - 1) }
      return rest > 0
    }
    guard !hasRoom else { return }
    self.full.continuation.yield()
    for await _ in self.closed.stream {}
    throw RPCError(code: .unavailable, message: "the call has ended")
  }

  func waitUntilFull() async {
    for await _ in self.full.stream { return }
  }

  func close() { self.closed.continuation.finish() }
}

/// The server's side of one call. Used by one task.
package final class ServerCall: @unchecked Sendable {
  // Guard: only the task that serves the call touches `iterator` and `hasSent`.
  package let method: String
  private var iterator: AsyncStream<RPCRequestPart<[UInt8]>>.Iterator
  private let responses: AsyncThrowingStream<RPCResponsePart<[UInt8]>, any Error>.Continuation
  private let window: RequestWindow
  private var hasSent = false

  init(
    method: String, requests: AsyncStream<RPCRequestPart<[UInt8]>>,
    responses: AsyncThrowingStream<RPCResponsePart<[UInt8]>, any Error>.Continuation,
    window: RequestWindow
  ) {
    self.window = window
    self.method = method
    self.iterator = requests.makeAsyncIterator()
    self.responses = responses
  }

  /// The next thing the client wrote; nil when it closed its side or left.
  package func nextPart() async -> RPCRequestPart<[UInt8]>? { await self.iterator.next() }

  package func nextMetadata() async -> Metadata? {
    if case .metadata(let metadata) = await self.nextPart() { metadata } else { nil }
  }

  package func nextMessage() async -> [UInt8]? {
    if case .message(let bytes) = await self.nextPart() { bytes } else { nil }
  }

  /// Returns when the client waits in the middle of a message.
  package func waitUntilFull() async { await self.window.waitUntilFull() }

  package func sendHeaders(_ metadata: Metadata = [:]) { self.responses.yield(.metadata(metadata)) }

  package func send(_ message: [UInt8]) {
    self.hasSent = true
    self.responses.yield(.message(message))
  }

  /// - Parameter isRefusal: whether the transport knows that the status is the server's whole answer;
  ///   nil if it is and no message was sent.
  package func end(
    _ code: Status.Code, _ message: String = "", trailers: Metadata = [:], isRefusal: Bool? = nil
  ) {
    var trailers = trailers
    // As `HTTP2ClientTransport` marks it.
    if isRefusal ?? (code != .ok && !self.hasSent) { trailers.addString("", forKey: ":refusal") }
    self.responses.yield(.status(Status(code: code, message: message), trailers))
  }

  /// The connection breaks.
  package func fail(_ error: RPCError) { self.responses.finish(throwing: error) }
}
