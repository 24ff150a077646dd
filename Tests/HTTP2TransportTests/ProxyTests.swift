import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// Through a proxy to a server whose name only the proxy can resolve.
@Suite("Connections through a proxy")
struct ProxyTests {
  static let host = "service.invalid"

  func configuration(
    through proxy: PythonServer, authorization: (String, String)? = nil,
    security: HTTP2ClientTransport.Configuration.Security = .plaintext
  ) -> HTTP2ClientTransport.Configuration {
    HTTP2TransportTests.configuration(port: 7443, host: Self.host, security: security) {
      $0.proxy = .init(
        host: "127.0.0.1", port: proxy.port,
        authorization: authorization.map { .init(user: $0.0, password: $0.1) })
      $0.connectTimeout = .seconds(10)
    }
  }

  func proxy(_ mode: String, to port: UInt16 = 1) throws -> PythonServer {
    try PythonServer("proxy_peer.py", ["\(port)", mode])
  }

  @Test(
    "A proxy opens a tunnel to the server",
    arguments: ["open", "drip", "interim", "eager", "auth:me:s3:cret"])
  func tunnel(mode: String) async throws {
    let server = try PythonServer("grpcio_peer.py")
    let proxy = try self.proxy(mode, to: server.port)
    let authorization = mode.hasPrefix("auth") ? ("me", "s3:cret") : nil
    try await withClient(self.configuration(through: proxy, authorization: authorization)) {
      client in
      let small = try await client.text("Unary", "x")
      #expect(small == "x")
      let large = [UInt8](repeating: 3, count: 5 << 20)
      let echoed = try await client.call("Unary", large).message
      #expect(echoed == large)
    }
  }

  @Test("The server proves its name inside the tunnel", arguments: ["open", "drip"])
  func serverName(mode: String) async throws {
    let authority = try TestAuthority()
    for (names, isRight) in [("DNS:\(Self.host)", true), ("DNS:127.0.0.1,IP:127.0.0.1", false)] {
      let identity = try authority.issue(names)
      let server = try PythonServer(
        "grpcio_peer.py", ["--certificate", identity.certificateFile, "--key", identity.keyFile])
      let proxy = try self.proxy(mode, to: server.port)
      let security = HTTP2ClientTransport.Configuration.Security.tls(
        caFile: authority.certificateFile)
      try await withClient(self.configuration(through: proxy, security: security)) { client in
        if isRight {
          #expect(try await client.text("Unary", "x") == "x")
        } else {
          let error = try await rpcError { try await client.text("Unary") }
          #expect((error.cause as? TLSError)?.code == .hostNameMismatch)
        }
      }
    }
  }

  @Test(
    "The error names a proxy that opens no tunnel",
    arguments: [
      ("auth:me:other", TLSError.Code.proxyRefused, "user and password"),
      ("status:403", .proxyRefused, "403 Not today"), ("status:302", .proxyRefused, "302"),
      ("status:502", .connectFailed, "502"), ("status:503", .connectFailed, "503"),
      ("hang_up", .connectFailed, "closed"), ("garbage", .connectFailed, "HTTP"),
      ("endless", .connectFailed, "longer"), ("silent", .timedOut, "CONNECT"),
    ])
  func refusingProxy(mode: String, code: TLSError.Code, text: String) async throws {
    let proxy = try self.proxy(mode)
    var configuration = self.configuration(through: proxy, authorization: ("me", "s3cret"))
    if mode == "silent" { configuration.connectTimeout = .milliseconds(200) }
    try await withClient(configuration) { client in
      let error = try await rpcError { try await client.text("Unary") }
      let cause = try #require(error.cause as? TLSError)
      #expect(cause.code == code)
      #expect(cause.message.contains(text), "\(cause)")
      #expect(cause.message.contains("proxy 127.0.0.1:\(proxy.port)"))
      #expect(!"\(error)".contains("s3cret"))
    }
  }

  /// A refusal does not go away by itself, and passwords tried again lock accounts.
  @Test("A proxy's refusal also ends streams that wait for a connection") func waitingStreams()
    async throws
  {
    let proxy = try self.proxy("auth:me:other")
    try await withClient(self.configuration(through: proxy, authorization: ("me", "wrong"))) {
      client in
      var options = CallOptions.defaults
      options.waitForReady = true
      let error = try await rpcError { try await client.call("Unary", options: options).message }
      #expect((error.cause as? TLSError)?.needsIntervention == true)
    }
  }

  @Test("The error names a proxy that cannot be reached") func missingProxy() async throws {
    let port = try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
    var configuration = HTTP2TransportTests.configuration(port: 1, host: Self.host)
    configuration.proxy = .init(host: "127.0.0.1", port: port)
    try await withClient(configuration) { client in
      let error = try await rpcError { try await client.text("Unary") }
      #expect(error.message.contains("proxy 127.0.0.1:\(port)"))
      #expect(error.message.contains("Connection refused"))
    }
  }

  @Test(
    "A host name that would break the CONNECT request is refused",
    arguments: ["a\r\nX: y", "", "a b", "ä"]) func unsafeName(
      host: String
    )
  {
    var configuration = HTTP2TransportTests.configuration(port: 1, host: host)
    configuration.proxy = .init(host: "127.0.0.1", port: 1)
    let error = #expect(throws: TLSError.self) {
      try HTTP2ClientTransport(configuration: configuration)
    }
    #expect(error?.code == .badConfiguration)
  }
}
