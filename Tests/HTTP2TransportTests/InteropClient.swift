import EventLoop
import GRPCCore
import HTTP2Transport
import TLSStream

func interopMethod(
  _ name: String, service: String = "grpc.testing.TestService"
) -> MethodDescriptor {
  MethodDescriptor(fullyQualifiedService: service, method: name)
}

/// Sizes of the payloads of a response, one at a time.
struct InteropResponse {
  fileprivate var messages: RPCAsyncSequence<[UInt8], any Error>.AsyncIterator

  /// Nil after the last; -1 for a message that is not a response.
  mutating func next() async throws -> Int? {
    try await self.messages.next().map { InteropMessages.payloadByteCount(of: $0) ?? -1 }
  }
}

extension GRPCClient {
  func interop(
    _ name: String, _ message: [UInt8], service: String = "grpc.testing.TestService",
    metadata: Metadata = [:], options: CallOptions = .defaults
  ) async throws -> ClientResponse<[UInt8]> {
    try await self.unary(
      request: ClientRequest(message: message, metadata: metadata),
      descriptor: interopMethod(name, service: service), serializer: IdentitySerializer(),
      deserializer: IdentityDeserializer(), options: options
    ) { $0 }
  }

  /// `StreamingInputCall` with payloads of these sizes.
  func interopInput(_ sizes: [Int], options: CallOptions = .defaults) async throws -> [UInt8] {
    try await self.clientStreaming(
      request: StreamingClientRequest { writer in
        for size in sizes { try await writer.write(InteropMessages.inputRequest(payload: size)) }
      }, descriptor: interopMethod("StreamingInputCall"), serializer: IdentitySerializer(),
      deserializer: IdentityDeserializer(), options: options
    ) { try $0.message }
  }

  /// `StreamingOutputCall`; the sizes of the payloads that came.
  func interopOutput(_ request: [UInt8]) async throws -> [Int] {
    try await self.serverStreaming(
      request: ClientRequest(message: request), descriptor: interopMethod("StreamingOutputCall"),
      serializer: IdentitySerializer(), deserializer: IdentityDeserializer(), options: .defaults
    ) { response in
      var received: [Int] = []
      for try await message in response.messages {
        received.append(InteropMessages.payloadByteCount(of: message) ?? -1)
      }
      return received
    }
  }

  /// `FullDuplexCall` that sends what `body` yields while it reads what comes. The server answers
  /// with its headers at once, so `body` begins before anything is sent.
  func interopDuplex<Result: Sendable>(
    options: CallOptions = .defaults,
    _ body:
      @Sendable @escaping (AsyncStream<[UInt8]>.Continuation, inout InteropResponse)
      async throws -> Result
  ) async throws -> Result {
    let (requests, send) = AsyncStream<[UInt8]>.makeStream()
    let isOver = Gate()
    return try await self.bidirectionalStreaming(
      request: StreamingClientRequest { writer in
        for await request in requests { try await writer.write(request) }
        // The stream of requests ends with the task too, which does not end the requests.
        if Task.isCancelled { await isOver.wait() }
      }, descriptor: interopMethod("FullDuplexCall"), serializer: IdentitySerializer(),
      deserializer: IdentityDeserializer(), options: options
    ) { response in
      defer {
        send.finish()
        isOver.open()
      }
      var messages = InteropResponse(messages: response.messages.makeAsyncIterator())
      return try await body(send, &messages)
    }
  }
}

/// Waits until it is opened.
final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Lock(State())

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = self.state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = self.state.withLock { state in
      defer { state = State(isOpen: true) }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
