import GRPCCore
import HTTP2Transport
import Synchronization
import TLSStream
import TestSupport
import Testing

/// Connections that come and go under the streams.
@Suite("Life cycle of the transport")
struct LifecycleTests {
  @Test("Streams requested before connect() wait for it") func beforeConnect() async throws {
    let peer = try PythonServer("grpcio_peer.py")
    let transport = try HTTP2ClientTransport(
      configuration: .init(host: "127.0.0.1", port: peer.port, security: .plaintext))
    try await transport.withStream(descriptor: method("Bidi"), options: .defaults) { stream, _ in
      try await stream.outbound.write(.metadata([:]))
      let connecting = Task { try await transport.connect() }
      // Waits until there is a connection that takes it.
      try await stream.outbound.write(.message([1, 2]))
      var parts = stream.inbound.makeAsyncIterator()
      guard case .metadata = try await parts.next() else { throw ProgramFailure(message: "part") }
      guard case .message([1, 2]) = try await parts.next() else {
        throw ProgramFailure(message: "part")
      }
      await stream.outbound.finish()
      guard case .status(let status, _) = try await parts.next() else {
        throw ProgramFailure(message: "part")
      }
      #expect(status.code == .ok)
      let end = try await parts.next()
      #expect(end == nil)
      transport.beginGracefulShutdown()
      // The stream is open until the closure returns, so `connect` is too.
      connecting.cancel()
      try await connecting.value
    }
    let error = await #expect(throws: RPCError.self) {
      try await transport.withStream(descriptor: method("Bidi"), options: .defaults) { _, _ in }
    }
    #expect(error?.code == .failedPrecondition)
  }

  @Test("Graceful shutdown lets open streams finish") func gracefulShutdown() async throws {
    let peer = try PythonServer("grpcio_peer.py")
    try await withClient(port: peer.port) { client in
      let count = try await client.stream("Blast", #"{"count": 1000, "size": 10000}"#) {
        response in
        var count = 0
        for try await _ in response.messages {
          if count == 0 { client.beginGracefulShutdown() }
          count += 1
        }
        return count
      }
      #expect(count == 1000)
      await #expect(throws: (any Error).self) { _ = try await client.text("Unary") }
    }
  }

  @Test("Cancelling connect() ends open streams") func cancelledConnect() async throws {
    let peer = try PythonServer("grpcio_peer.py")
    let transport = try HTTP2ClientTransport(
      configuration: .init(host: "127.0.0.1", port: peer.port, security: .plaintext))
    let client = GRPCClient(transport: transport)
    let running = Task { try await client.runConnections() }
    let error = try await rpcError {
      try await client.stream("Wait") { response in
        for try await _ in response.messages { running.cancel() }
      }
    }
    #expect(error.code == .cancelled)
    try? await running.value
  }

  @Test("A killed server fails its streams, and the next call connects again") func killedServer()
    async throws
  {
    let peer = try PythonServer("grpcio_peer.py")
    try await withClient(port: peer.port) { client in
      let error = try await rpcError {
        try await client.stream("Wait") { response in
          for try await _ in response.messages { peer.kill() }
        }
      }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("lost"))
      let refused = try await rpcError { try await client.text("Unary") }
      #expect(refused.code == .unavailable)
      let successor = try PythonServer("grpcio_peer.py", ["--port", "\(peer.port)"])
      #expect(successor.port == peer.port)
      let echoed = try await client.text("Unary", "again")
      #expect(echoed == "again")
    }
  }

  @Test("A message counts as written only once a connection has taken it")
  func writesOnConnectionsOnly() async throws {
    let port = try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
    let written = Mutex(false)
    func call(_ client: TestClient) async throws {
      _ = try await client.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          try await writer.write([1])
          written.withLock { $0 = true }
        },
        descriptor: method("Bidi"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        for try await _ in response.messages {}
      }
    }
    try await withClient(port: port) { client in
      let error = try await rpcError { try await call(client) }
      #expect(error.code == .unavailable)
      let wasWritten = written.withLock { $0 }
      #expect(!wasWritten)
      let peer = try PythonServer("grpcio_peer.py", ["--port", "\(port)"])
      try await call(client)
      let isWritten = written.withLock { $0 }
      #expect(isWritten)
      _ = peer
    }
  }

  @Test("A call with waitForReady survives failed connection attempts") func waitForReady()
    async throws
  {
    let port = try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
    try await withClient(configuration(port: port) { $0.backoff.maximum = .milliseconds(50) }) {
      client in
      async let echoed = {
        var options = CallOptions.defaults
        options.waitForReady = true
        return try await client.call("Unary", [9], options: options).message
      }()
      let refused = try await rpcError { try await client.text("Unary") }
      #expect(refused.code == .unavailable)
      let peer = try PythonServer("grpcio_peer.py", ["--port", "\(port)"])
      let message = try await echoed
      #expect(message == [9])
      _ = peer
    }
  }

  @Test("A server that stops gracefully finishes its streams") func gracefulServer() async throws {
    let peer = try PythonServer("grpcio_peer.py")
    try await withClient(port: peer.port) { client in
      let (echoes, gate) = AsyncStream<Void>.makeStream()
      let count = try await client.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          try await writer.write([1])
          var iterator = echoes.makeAsyncIterator()
          _ = await iterator.next()
          for _ in 0..<100 { try await writer.write([2]) }
        }, descriptor: method("Bidi"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        var count = 0
        for try await _ in response.messages {
          if count == 0 {
            try peer.tell("stop 10")
            gate.yield()
          }
          count += 1
        }
        return count
      }
      #expect(count == 101)
    }
  }

  @Test("Streams above the server's limit wait for their turn") func streamLimit() async throws {
    let peer = try PythonServer("grpcio_peer.py", ["--max-streams", "2"])
    try await withClient(port: peer.port) { client in
      try await withThrowingTaskGroup(of: String.self) { group in
        for index in 0..<50 { group.addTask { try await client.text("Unary", "\(index)") } }
        let echoed = try await group.reduce(into: Set<String>()) { $0.insert($1) }
        #expect(echoed.count == 50)
      }
    }
  }

  @Test("A failing request producer ends the RPC") func failingProducer() async throws {
    struct ProducerError: Error {}
    let peer = try PythonServer("grpcio_peer.py")
    try await withClient(port: peer.port) { client in
      let error = try await rpcError {
        try await client.clientStreaming(
          request: StreamingClientRequest<[UInt8]> { writer in
            try await writer.write([1])
            throw ProducerError()
          }, descriptor: method("Collect"), serializer: IdentitySerializer(),
          deserializer: IdentityDeserializer(), options: .defaults
        ) { try $0.message }
      }
      #expect(error.cause is ProducerError)
    }
  }
}
