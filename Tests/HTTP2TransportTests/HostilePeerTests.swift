import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// Peers that break the rules, or speak something else. Each ends in a clear error, soon.
@Suite("Hostile peers")
struct HostilePeerTests {
  func peer(_ scenario: String) throws -> PythonServer {
    try PythonServer("raw_peer.py", [scenario])
  }

  func outcome(_ scenario: String) async throws -> ([[UInt8]], RPCError) {
    let peer = try self.peer(scenario)
    let (messages, error) = try await withClient(port: peer.port) {
      try await $0.messages("Any")
    }
    return (messages, try #require(error))
  }

  @Test(
    "A broken response is an error",
    arguments: [
      ("no_trailers", RPCError.Code.internalError, "without a status", 1),
      ("no_trailers_empty_data", .internalError, "without a status", 1),
      ("inside_message", .internalError, "inside a message", 0),
      ("status_inside_message", .internalError, "inside a message", 0),
      ("rst:0", .internalError, "NO_ERROR", 0),
      ("rst:2", .internalError, "INTERNAL_ERROR", 0),
      ("rst:8", .cancelled, "CANCEL", 0),
      ("rst:11", .unavailable, "ENHANCE_YOUR_CALM", 0),
      ("rst:12", .unavailable, "INADEQUATE_SECURITY", 0),
      ("rst:99", .unknown, "99", 0),
      ("oversized", .resourceExhausted, "2147483647", 0),
      ("compressed", .internalError, "compressed", 0),
      ("garbage", .unavailable, "lost", 0),
      ("die", .unavailable, "closed", 1),
    ])
  func brokenResponses(
    scenario: String, code: RPCError.Code, text: String, count: Int
  ) async throws {
    let peer = try self.peer(scenario)
    let (messages, error) = try await withClient(
      configuration(port: peer.port) { $0.maxMessageBytes = 1 << 20 }
    ) {
      try await $0.messages("Any")
    }
    #expect(error?.code == code)
    #expect(error?.message.contains(text) == true, "\(String(describing: error))")
    #expect(messages.count == count)
  }

  @Test(
    "A response that is not gRPC is an error",
    arguments: [
      ("http_status:400", RPCError.Code.internalError), ("http_status:401", .unauthenticated),
      ("http_status:403", .permissionDenied), ("http_status:404", .unimplemented),
      ("http_status:429", .unavailable), ("http_status:502", .unavailable),
      ("http_status:503", .unavailable), ("http_status:504", .unavailable),
      ("http_status:500", .unknown), ("html", .unknown), ("data_first", .unavailable),
      ("header_flood", .unavailable), ("goodbye_at_once", .unavailable),
      ("long_headers", .resourceExhausted),
      ("refuse_always", .unavailable),
    ])
  func notGRPC(scenario: String, code: RPCError.Code) async throws {
    let peer = try self.peer(scenario)
    try await withClient(port: peer.port) { client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == code, "\(error)")
    }
  }

  @Test("A response may consist of trailers only") func trailersOnly() async throws {
    let peer = try self.peer("trailers_only")
    try await withClient(port: peer.port) { client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == .notFound)
      #expect(error.message == "ä 100% %zz%")
      #expect(Array(error.metadata[binaryValues: "x-detail-bin"]) == [[1, 2], [3, 4]])
    }
  }

  @Test("Long trailers within the limit are read") func longTrailers() async throws {
    let peer = try self.peer("long_trailers")
    let (messages, error) = try await withClient(port: peer.port) { try await $0.messages("Any") }
    #expect(messages.isEmpty)
    #expect(error == nil)
  }

  @Test("Padding does not use up the flow-control window") func padding() async throws {
    let peer = try self.peer("padded")
    let (messages, error) = try await withClient(
      configuration(port: peer.port) {
        ($0.streamWindowBytes, $0.connectionWindowBytes) = (400_000, 400_000)
      }
    ) { try await $0.messages("Any") }
    #expect(messages.count == 1000)
    #expect(error == nil)
  }

  @Test(
    "A request that the server has not processed is sent again",
    arguments: [("refuse_once", 1), ("goaway_once", 2)])
  func unprocessedRequest(scenario: String, connection: Int) async throws {
    let peer = try self.peer(scenario)
    let answer = try await withClient(port: peer.port) { try await $0.text("Any", "request") }
    #expect(answer == "served on connection \(connection)")
  }

  @Test("A request that is refused twice fails") func refusedTwice() async throws {
    let peer = try self.peer("refuse_twice")
    try await withClient(port: peer.port) { client in
      let refusal = try await rpcError { try await client.text("Any") }
      #expect(refusal.code == .unavailable)
      let answer = try await client.text("Any")
      #expect(answer == "served on connection 1")
    }
  }

  @Test("GOAWAY lets open streams finish, and new ones use another connection") func goaway()
    async throws
  {
    let peer = try self.peer("goaway_finishing")
    try await withClient(port: peer.port) { client in
      let first = try await client.text("Any")
      let second = try await client.text("Any")
      #expect((first, second) == ("finished on connection 1", "served on connection 2"))
    }
  }

  @Test("A connection that does not answer a ping is closed") func silence() async throws {
    let peer = try self.peer("mute")
    try await withClient(
      configuration(port: peer.port) {
        $0.keepalive.interval = .milliseconds(20)
        $0.keepalive.timeout = .milliseconds(20)
      }
    ) { client in
      let (_, error) = try await client.messages("Any")
      #expect(error?.code == .unavailable)
      #expect(error?.message.contains("PING") == true)
    }
  }

  @Test(
    "The error names a peer that is not an HTTP/2 server",
    arguments: [
      ("http1", "HTTP/1"), ("chatter", "HTTP/2"), ("hang_up", "closed"), ("silent", "in time"),
    ])
  func notHTTP2(scenario: String, text: String) async throws {
    let peer = try self.peer(scenario)
    try await withClient(configuration(port: peer.port) { $0.connectTimeout = .milliseconds(300) })
    { client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("127.0.0.1:\(peer.port)"))
      #expect(error.message.contains(text), "\(error)")
      #expect((error.cause as? TLSError)?.isIdentityError == false)
    }
  }

  @Test("The error names a server without TLS at a TLS endpoint") func plainServer() async throws {
    let (peer, authority) = (try self.peer("http1"), try TestAuthority())
    try await withClient(port: peer.port, security: .tls(caFile: authority.certificateFile)) {
      client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("TLS handshake"))
    }
  }

  @Test("A connection to an unused port is refused") func unusedPort() async throws {
    let port = try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
    try await withClient(port: port) { client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("Connection refused"))
    }
  }

  @Test("The error names a host without an address") func unknownHost() async throws {
    try await withClient(port: 1, host: "no-such-host.invalid") { client in
      let error = try await rpcError { try await client.text("Any") }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("no-such-host.invalid"))
    }
  }
}
