import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

@Suite("TLS connections")
struct TLSTests {
  let authority: TestAuthority

  init() throws { self.authority = try TestAuthority() }

  func peer(names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2) throws -> PythonServer {
    let server = try self.authority.issue(names, days: days)
    return try PythonServer(
      "grpcio_peer.py", ["--certificate", server.certificateFile, "--key", server.keyFile])
  }

  @Test(
    "A call over TLS works by host name and by IP address", arguments: ["localhost", "127.0.0.1"])
  func nameAndAddress(host: String) async throws {
    let peer = try self.peer()
    try await withClient(
      port: peer.port, host: host, security: .tls(caFile: self.authority.certificateFile)
    ) { client in
      let large = [UInt8](repeating: 3, count: 15 << 20)
      let echoed = try await client.call("Unary", large).message
      #expect(echoed == large)
      let count = try await client.stream("Blast", #"{"count": 300, "size": 40000}"#) { response in
        try await response.messages.reduce(into: 0) { count, _ in count += 1 }
      }
      #expect(count == 300)
    }
  }

  @Test("The client shows its certificate to a server that asks for it") func clientCertificate()
    async throws
  {
    let (server, client) = (try self.authority.issue(), try self.authority.issue("DNS:client"))
    let otherAuthority = try TestAuthority()
    let foreign = try otherAuthority.issue("DNS:client")
    let peer = try PythonServer(
      "grpcio_peer.py",
      [
        "--certificate", server.certificateFile, "--key", server.keyFile, "--client-authority",
        self.authority.certificateFile,
      ])
    for (identity, isRight) in [(client, true), (foreign, false), (nil, false)] {
      let certificate = identity.map {
        HTTP2ClientTransport.Configuration.ClientCertificate(
          certificateFile: $0.certificateFile, keyFile: $0.keyFile)
      }
      let security = HTTP2ClientTransport.Configuration.Security.tls(
        caFile: self.authority.certificateFile, certificate: certificate)
      try await withClient(port: peer.port, security: security) { client in
        if isRight {
          #expect(try await client.text("Unary", "x") == "x")
        } else {
          let error = try await rpcError { try await client.text("Unary") }
          #expect(error.code == .unavailable)
          // C-core closes the connection without saying why.
          #expect(error.message.contains("closed"), "\(error)")
        }
      }
    }
  }

  /// Also waiting streams fail: trying again would not help.
  @Test("The error says that the server refused the client certificate") func refusedCertificate()
    async throws
  {
    let server = try self.authority.issue()
    let otherAuthority = try TestAuthority()
    let foreign = try otherAuthority.issue("DNS:client")
    let trusted = self.authority.certificateFile
    let peer = try PythonServer(
      "tls_peer.py", [server.certificateFile, server.keyFile, trusted])
    for certificate in [
      nil, .init(certificateFile: foreign.certificateFile, keyFile: foreign.keyFile),
    ] as [HTTP2ClientTransport.Configuration.ClientCertificate?] {
      try await withClient(
        port: peer.port, security: .tls(caFile: trusted, certificate: certificate)
      ) { client in
        var options = CallOptions.defaults
        options.waitForReady = true
        let error = try await rpcError { try await client.call("Unary", options: options).message }
        let cause = try #require(error.cause as? TLSError, "\(error)")
        #expect(cause.code == .clientCertificateRefused)
        #expect(cause.needsIntervention && !cause.isIdentityError)
        #expect(error.message.contains("client certificate"))
      }
    }
  }

  @Test("The error names a client certificate that cannot be used") func unusableCertificate()
    throws
  {
    let (one, other) = (try self.authority.issue(), try self.authority.issue())
    let encrypted = "\(one.keyFile).encrypted"
    try runProgram(
      "openssl", "ec", "-in", one.keyFile, "-aes256", "-passout", "pass:x", "-out", encrypted)
    for (certificate, key, text) in [
      (one.certificateFile, other.keyFile, "does not belong"),
      ("/no/own.pem", one.keyFile, "/no/own"),
      (one.certificateFile, "/no/own.key", "/no/own.key"),
      (one.certificateFile, encrypted, "without passphrase"),
    ] {
      let error = #expect(throws: TLSError.self) {
        try HTTP2ClientTransport(
          configuration: .init(
            host: "localhost", port: 1,
            security: .tls(
              caFile: nil, certificate: .init(certificateFile: certificate, keyFile: key))))
      }
      #expect(error?.code == .badConfiguration)
      #expect(error?.message.contains(text) == true, "\(String(describing: error))")
    }
  }

  @Test("A proxy that inspects TLS and speaks HTTP/1.1 only is suspected by name") func inspection()
    async throws
  {
    let server = try self.authority.issue()
    let peer = try PythonServer("http_peer.py", [server.certificateFile, server.keyFile])
    let trusted = self.authority.certificateFile
    try await withClient(port: peer.port, security: .tls(caFile: trusted)) { client in
      let error = try await rpcError { try await client.call("Unary").message }
      #expect(error.code == .unavailable)
      #expect((error.cause as? TLSError)?.code == .applicationProtocolMissing)
      #expect(error.message.contains("gRPC needs HTTP/2 from end to end"), "\(error)")
      #expect(error.message.contains("the certificate is issued by '"), "\(error)")
    }
  }

  /// Also waiting streams fail: trying again would not help.
  @Test("An error in the server's identity fails every call at once") func identityError()
    async throws
  {
    let other = try TestAuthority()
    let trusted = self.authority.certificateFile
    let cases: [(PythonServer, String, TLSError.Code)] = [
      (try self.peer(), other.certificateFile, .untrustedCertificate),
      (try self.peer(names: "DNS:elsewhere.example"), trusted, .hostNameMismatch),
      (try self.peer(days: -1), trusted, .certificateExpired),
    ]
    for (peer, caFile, code) in cases {
      try await withClient(port: peer.port, security: .tls(caFile: caFile)) { client in
        var options = CallOptions.defaults
        options.waitForReady = true
        let error = try await rpcError { try await client.call("Unary", options: options).message }
        let cause = try #require(error.cause as? TLSError)
        #expect(error.code == .unavailable)
        #expect(cause.code == code)
        #expect(cause.isIdentityError)
        #expect(error.message.contains("certificate"))
      }
    }
  }

  @Test(
    "Unsafe certificates and protocol versions are refused",
    arguments: [
      ("self-signed", TLSError.Code.untrustedCertificate, "self-signed"),
      ("weak key", .untrustedCertificate, "too weak"), ("TLS 1.1", .handshakeFailed, "handshake"),
    ])
  func unsafe(kind: String, code: TLSError.Code, text: String) async throws {
    let server = try self.authority.issue(
      key: kind == "weak key" ? "rsa:1024" : "ec", isSelfSigned: kind == "self-signed")
    let peer = try PythonServer(
      "tls_peer.py",
      [server.certificateFile, server.keyFile] + (kind == "TLS 1.1" ? ["1.1"] : []))
    try await withClient(port: peer.port, security: .tls(caFile: self.authority.certificateFile)) {
      client in
      let error = try await rpcError { try await client.text("Any") }
      let cause = try #require(error.cause as? TLSError)
      #expect(cause.code == code, "\(cause)")
      #expect(cause.message.contains(text), "\(cause)")
    }
  }

  @Test("A plaintext call to a TLS server fails as unavailable") func plaintext() async throws {
    let peer = try self.peer()
    try await withClient(port: peer.port) { client in
      let error = try await rpcError { try await client.text("Unary") }
      #expect(error.code == .unavailable)
    }
  }

  @Test("A missing CA file is reported before any connection") func missingCAFile() {
    let error = #expect(throws: TLSError.self) {
      try HTTP2ClientTransport(
        configuration: .init(host: "localhost", port: 1, security: .tls(caFile: "/no/ca.pem")))
    }
    #expect(error?.code == .badConfiguration)
  }
}
