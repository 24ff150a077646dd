import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// The cases of the gRPC interoperability tests, by their names there, against C-core.
@Suite("Interoperability with gRPC C-core", .serialized)
struct InteropTests {
  /// What is between client and server.
  enum Peer: String, CaseIterable, CustomTestStringConvertible, Sendable {
    case plaintext, tls, gzip, deflate
    var testDescription: String { self.rawValue }
  }

  /// Servers live as long as the suite: each takes a second to start.
  final class Servers: Sendable {
    let authority: TestAuthority
    let peers: [Peer: PythonServer]

    init() throws {
      self.authority = try TestAuthority()
      let identity = try self.authority.issue()
      func start(_ arguments: String...) throws -> PythonServer {
        try PythonServer("interop/interop_peer.py", arguments)
      }
      self.peers = [
        .plaintext: try start(),
        .tls: try start("--certificate", identity.certificateFile, "--key", identity.keyFile),
        .gzip: try start("--compression", "gzip"),
        .deflate: try start("--compression", "deflate"),
      ]
    }
  }

  static let servers = Result { try Servers() }
  let servers: Servers

  init() throws { self.servers = try Self.servers.get() }

  func with<Result: Sendable>(
    _ peer: Peer, _ body: (TestClient) async throws -> Result
  ) async throws -> Result {
    let port = try #require(self.servers.peers[peer]).port
    return try await withClient(
      port: port, host: "localhost",
      security: peer == .tls ? .tls(caFile: self.servers.authority.certificateFile) : .plaintext
    ) { try await body($0) }
  }

  @Test("The case empty_unary of gRPC interoperability passes", arguments: Peer.allCases)
  func emptyUnary(peer: Peer) async throws {
    let response = try await self.with(peer) { try await $0.interop("EmptyCall", []).message }
    #expect(response.isEmpty)
  }

  @Test("The case large_unary passes", arguments: Peer.allCases)
  func largeUnary(peer: Peer) async throws {
    let response = try await self.with(peer) {
      let request = InteropMessages.simpleRequest(responseSize: 314_159, payload: 271_828)
      return try await $0.interop("UnaryCall", request).message
    }
    #expect(InteropMessages.payloadByteCount(of: response) == 314_159)
  }

  @Test("The case client_streaming passes", arguments: Peer.allCases)
  func clientStreaming(peer: Peer) async throws {
    let response = try await self.with(peer) { client in
      try await client.interopInput([27_182, 8, 1828, 45_904])
    }
    #expect(InteropMessages.aggregatedByteCount(of: response) == 74_922)
  }

  @Test("The case server_streaming passes", arguments: Peer.allCases)
  func serverStreaming(peer: Peer) async throws {
    let sizes = [31_415, 9, 2653, 58_979]
    let received = try await self.with(peer) {
      try await $0.interopOutput(InteropMessages.outputRequest(sizes.map { ($0, nil) }))
    }
    #expect(received == sizes)
  }

  @Test("The case ping_pong passes", arguments: Peer.allCases)
  func pingPong(peer: Peer) async throws {
    let sizes = [(31_415, 27_182), (9, 8), (2653, 1828), (58_979, 45_904)]
    let received = try await self.with(peer) { client in
      try await client.interopDuplex { send, response in
        for (answer, request) in sizes {
          send.yield(InteropMessages.outputRequest(size: answer, payload: request))
          let received = try await response.next()
          #expect(received == answer)
        }
        send.finish()
        return try await response.next()
      }
    }
    #expect(received == nil)
  }

  @Test("The case empty_stream passes", arguments: Peer.allCases)
  func emptyStream(peer: Peer) async throws {
    let received = try await self.with(peer) { client in
      try await client.interopDuplex { send, response in
        send.finish()
        return try await response.next()
      }
    }
    #expect(received == nil)
  }

  @Test("Responses of a half-duplex call arrive after the last request", arguments: Peer.allCases)
  func halfDuplex(peer: Peer) async throws {
    let received = try await self.with(peer) { client in
      try await client.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          for size in [1, 2, 3] {
            try await writer.write(InteropMessages.outputRequest(size: size))
          }
        }, descriptor: interopMethod("HalfDuplexCall"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        var received: [Int?] = []
        for try await message in response.messages {
          received.append(InteropMessages.payloadByteCount(of: message))
        }
        return received
      }
    }
    #expect(received == [1, 2, 3])
  }

  @Test("The case cancel_after_begin passes", arguments: Peer.allCases)
  func cancelAfterBegin(peer: Peer) async throws {
    try await self.with(peer) { client in
      let (begun, hasBegun) = AsyncStream<Void>.makeStream()
      let task = Task {
        try await client.clientStreaming(
          request: StreamingClientRequest { _ in
            hasBegun.yield()
            for await _ in AsyncStream<Void>.makeStream().stream {}  // until cancelled
          }, descriptor: interopMethod("StreamingInputCall"), serializer: IdentitySerializer(),
          deserializer: IdentityDeserializer(), options: .defaults
        ) { try $0.message }
      }
      var iterator = begun.makeAsyncIterator()
      _ = await iterator.next()
      task.cancel()
      let error = await #expect(throws: RPCError.self) { _ = try await task.value }
      #expect(error?.code == .cancelled)
      let after = try await client.interop("EmptyCall", []).message
      #expect(after.isEmpty)
    }
  }

  @Test("The case cancel_after_first_response passes", arguments: Peer.allCases)
  func cancelAfterFirstResponse(peer: Peer) async throws {
    try await self.with(peer) { client in
      let task = Task {
        try await client.interopDuplex { send, response in
          send.yield(InteropMessages.outputRequest(size: 31_415, payload: 27_182))
          let first = try await response.next()
          #expect(first == 31_415)
          withUnsafeCurrentTask { $0?.cancel() }
          return try await response.next()
        }
      }
      let error = await #expect(throws: RPCError.self) { _ = try await task.value }
      #expect(error?.code == .cancelled)
      let after = try await client.interop("EmptyCall", []).message
      #expect(after.isEmpty)
    }
  }

  @Test("The case timeout_on_sleeping_server passes", arguments: Peer.allCases)
  func timeoutOnSleepingServer(peer: Peer) async throws {
    try await self.with(peer) { client in
      var options = CallOptions.defaults
      options.timeout = .milliseconds(1)
      let error = try await rpcError {
        try await client.interopDuplex(options: options) { send, response in
          send.yield(
            InteropMessages.outputRequest(
              size: 31_415, payload: 27_182, intervalMicroseconds: 60_000_000))
          return try await response.next()
        }
      }
      #expect(error.code == .deadlineExceeded)
    }
  }

  @Test("The case status_code_and_message passes", arguments: Peer.allCases)
  func statusCodeAndMessage(peer: Peer) async throws {
    try await self.with(peer) { client in
      let status = (code: 2, message: "test status message")
      let unary = try await rpcError {
        try await client.interop("UnaryCall", InteropMessages.simpleRequest(status: status)).message
      }
      let duplex = try await rpcError {
        try await client.interopDuplex { send, response in
          send.yield(InteropMessages.outputRequest([], status: status))
          send.finish()
          return try await response.next()
        }
      }
      for error in [unary, duplex] {
        #expect(error.code == .unknown)
        #expect(error.message == status.message)
      }
    }
  }

  @Test("The case special_status_message passes", arguments: Peer.allCases)
  func specialStatusMessage(peer: Peer) async throws {
    let message =
      "\t\ntest with whitespace\r\nand Unicode BMP \u{263A} and non-BMP \u{1F608}\t\n"
    try await self.with(peer) { client in
      let error = try await rpcError {
        let request = InteropMessages.simpleRequest(status: (2, message))
        return try await client.interop("UnaryCall", request).message
      }
      #expect(error.code == .unknown)
      #expect(error.message == message)
    }
  }

  @Test("The case unimplemented_method passes", arguments: Peer.allCases)
  func unimplementedMethod(peer: Peer) async throws {
    try await self.with(peer) { client in
      let error = try await rpcError {
        try await client.interop("UnimplementedCall", []).message
      }
      #expect(error.code == .unimplemented)
    }
  }

  @Test("The case unimplemented_service passes", arguments: Peer.allCases)
  func unimplementedService(peer: Peer) async throws {
    try await self.with(peer) { client in
      let error = try await rpcError {
        try await client.interop(
          "UnimplementedCall", [], service: "grpc.testing.UnimplementedService"
        ).message
      }
      #expect(error.code == .unimplemented)
    }
  }

  @Test("The case custom_metadata passes", arguments: Peer.allCases)
  func customMetadata(peer: Peer) async throws {
    let (initial, trailing) = ("x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin")
    var metadata = Metadata()
    metadata.addString("test_initial_metadata_value", forKey: initial)
    metadata.addBinary([0xab, 0xab, 0xab], forKey: trailing)
    let sent = metadata
    try await self.with(peer) { client in
      let unary = try await client.interop(
        "UnaryCall", InteropMessages.simpleRequest(responseSize: 314_159, payload: 271_828),
        metadata: sent)
      #expect(Array(unary.metadata[stringValues: initial]) == ["test_initial_metadata_value"])
      #expect(Array(unary.trailingMetadata[binaryValues: trailing]) == [[0xab, 0xab, 0xab]])

      try await client.bidirectionalStreaming(
        request: StreamingClientRequest(metadata: sent) { writer in
          try await writer.write(InteropMessages.outputRequest(size: 314_159, payload: 271_828))
        }, descriptor: interopMethod("FullDuplexCall"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        #expect(Array(response.metadata[stringValues: initial]) == ["test_initial_metadata_value"])
        var found: [[UInt8]] = []
        for try await part in response.bodyParts {
          if case .trailingMetadata(let metadata) = part {
            found = Array(metadata[binaryValues: trailing])
          }
        }
        #expect(found == [[0xab, 0xab, 0xab]])
      }
    }
  }

  /// The server cannot tell whether a message came compressed (grpcio hides it), so the probe of the
  /// description is left out; that the flag is set is tested at the framer.
  @Test(
    "The case client_compressed_unary passes", arguments: Peer.allCases,
    [CompressionAlgorithm.gzip, .deflate])
  func clientCompressedUnary(peer: Peer, algorithm: CompressionAlgorithm) async throws {
    try await self.with(peer) { client in
      var options = CallOptions.defaults
      options.compression = algorithm
      let request = InteropMessages.simpleRequest(responseSize: 314_159, payload: 271_828)
      let response = try await client.interop("UnaryCall", request, options: options).message
      #expect(InteropMessages.payloadByteCount(of: response) == 314_159)
    }
  }

  @Test("The case client_compressed_streaming passes", arguments: Peer.allCases)
  func clientCompressedStreaming(peer: Peer) async throws {
    try await self.with(peer) { client in
      var options = CallOptions.defaults
      options.compression = .gzip
      let response = try await client.interopInput([27_182, 45_904], options: options)
      #expect(InteropMessages.aggregatedByteCount(of: response) == 73_086)
    }
  }

  /// Through a tunnel that is cut when as many bytes pass as the messages have uncompressed.
  @Test("The case server_compressed_unary passes", arguments: [Peer.gzip, .deflate])
  func serverCompressedUnary(peer: Peer) async throws {
    try await self.through(limit: 20_000, to: peer) { client in
      let request = InteropMessages.simpleRequest(responseSize: 314_159, payload: 271_828)
      let response = try await client.interop("UnaryCall", request).message
      #expect(InteropMessages.payloadByteCount(of: response) == 314_159)
    }
    let error = try await rpcError {
      try await self.through(limit: 20_000, to: .plaintext) { client in
        let request = InteropMessages.simpleRequest(responseSize: 314_159, payload: 271_828)
        return try await client.interop("UnaryCall", request).message
      }
    }
    #expect(error.code == .unavailable)
  }

  @Test("The case server_compressed_streaming passes", arguments: [Peer.gzip, .deflate])
  func serverCompressedStreaming(peer: Peer) async throws {
    // The first compressed, the second not, by the flag of each message.
    try await self.through(limit: 110_000, to: peer) { client in
      let received = try await client.interopOutput(
        InteropMessages.outputRequest([(31_415, true), (92_653, false)]))
      #expect(received == [31_415, 92_653])
    }
  }

  func through<Result: Sendable>(
    limit: Int, to peer: Peer, _ body: (TestClient) async throws -> Result
  ) async throws -> Result {
    let port = try #require(self.servers.peers[peer]).port
    let proxy = try PythonServer("proxy_peer.py", ["\(port)", "limit:\(limit)"])
    let configuration = configuration(port: 1, host: "service.invalid") {
      $0.proxy = .init(host: "127.0.0.1", port: proxy.port)
    }
    return try await withClient(configuration) { try await body($0) }
  }

  /// A stream with two answers, `between` them; returns the size of the first.
  func exchangeTwice(
    _ client: TestClient, size: Int, between: @Sendable @escaping () async -> Void
  ) async throws -> Int {
    try await client.interopDuplex { send, response in
      send.yield(InteropMessages.outputRequest(size: size))
      let first = try await response.next()
      await between()
      send.yield(InteropMessages.outputRequest(size: 1))
      let second = try await response.next()
      send.finish()
      let end = try await response.next()
      #expect(first == size && second == 1 && end == nil)
      return first ?? -1
    }
  }

  @Test("1,000 concurrent streams share one connection", arguments: [Peer.plaintext, .tls, .gzip])
  func concurrentStreams(peer: Peer) async throws {
    let count = 1000
    let (answered, hasAnswered) = AsyncStream<Void>.makeStream()
    let gate = Gate()
    let sum = try await self.with(peer) { client in
      try await withThrowingTaskGroup(of: Int.self) { group in
        for index in 0..<count {
          group.addTask {
            do {
              return try await self.exchangeTwice(client, size: index) {
                hasAnswered.yield()
                // No stream ends before all are open.
                await gate.wait()
              }
            } catch {
              // The others are not to wait for ever.
              hasAnswered.yield()
              gate.open()
              throw error
            }
          }
        }
        var iterator = answered.makeAsyncIterator()
        for _ in 0..<count { _ = await iterator.next() }
        gate.open()
        return try await group.reduce(0, +)
      }
    }
    #expect(sum == count * (count - 1) / 2)
  }
}
