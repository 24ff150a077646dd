import Glibc
import TLSStream
import TestSupport
import Testing

/// Both ends in one thread, over a socket pair, stepped in turn.
@Suite("TLS connections over memory")
struct TLSConnectionTests {
  let authority: TestAuthority
  init() throws { self.authority = try TestAuthority() }

  func connect(
    trust: TLSContext.Trust? = nil, hostName: String = "localhost",
    server: TestAuthority.Server? = nil, clientProtocols: [String] = ["h2"],
    serverProtocols: [String] = ["h2"]
  ) throws -> (client: TLSConnection, server: TLSConnection) {
    let server = try server ?? self.authority.issue()
    let clientContext = try TLSContext.client(
      trust: trust ?? .file(self.authority.certificateFile), applicationProtocols: clientProtocols)
    let serverContext = try TLSContext.server(
      identity: .files(certificateChain: server.certificateFile, privateKey: server.keyFile),
      applicationProtocols: serverProtocols)
    return try Socket.pair().take { first, second in
      (
        try .client(context: clientContext, socket: first, hostName: hostName),
        try .server(context: serverContext, socket: second)
      )
    }
  }

  /// Steps both handshakes; the client's error counts, the server's is its echo.
  func handshake(_ pair: (client: TLSConnection, server: TLSConnection)) throws {
    var (client, server) = (StreamStep.wantsWrite, StreamStep.wantsRead)
    for _ in 0..<20 {
      if client != .done(byteCount: 0) { client = try pair.client.handshake() }
      if server != .done(byteCount: 0) {
        do { server = try pair.server.handshake() } catch { _ = try pair.client.handshake() }
      }
      if client == .done(byteCount: 0), server == client { return }
    }
    Issue.record("handshake did not end: \(client), \(server)")
  }

  func handshakeError(_ pair: (client: TLSConnection, server: TLSConnection)) throws -> TLSError {
    try #require(throws: TLSError.self) { try self.handshake(pair) }
  }

  func write(_ bytes: [UInt8], to stream: some ByteStream) throws -> StreamStep {
    try bytes.withUnsafeBytes { try stream.write($0) }
  }

  func read(_ stream: some ByteStream, count: Int = 100) throws -> ([UInt8], StreamStep) {
    var buffer = [UInt8](repeating: 0, count: count)
    let step = try buffer.withUnsafeMutableBytes { try stream.read(into: $0) }
    if case .done(let byteCount) = step { return (Array(buffer.prefix(byteCount)), step) }
    return ([], step)
  }

  @Test("Bytes pass both ways, and both sides agree on a protocol") func bothWays() throws {
    let pair = try self.connect()
    #expect(pair.client.applicationProtocol == nil)
    try self.handshake(pair)
    #expect(pair.client.applicationProtocol == "h2")
    #expect(pair.server.applicationProtocol == "h2")
    #expect(try self.write([1, 2, 3], to: pair.client) == .done(byteCount: 3))
    #expect(try self.read(pair.server).0 == [1, 2, 3])
    #expect(try self.read(pair.server).1 == .wantsRead)
    #expect(try self.write([4], to: pair.server) == .done(byteCount: 1))
    #expect(try self.read(pair.client).0 == [4])
  }

  @Test("Bytes that exceed a small buffer are kept for the next read") func smallBuffer() throws {
    let pair = try self.connect()
    try self.handshake(pair)
    _ = try self.write([1, 2, 3], to: pair.server)
    #expect(try self.read(pair.client, count: 2).0 == [1, 2])
    #expect(pair.client.hasBufferedInput)
    #expect(try self.read(pair.client, count: 2).0 == [3])
    #expect(!pair.client.hasBufferedInput)
  }

  @Test("A write stops when the socket is full and continues later") func fullSocket() throws {
    let pair = try self.connect()
    try self.handshake(pair)
    let chunk = [UInt8](repeating: 7, count: 100_000)
    var (sent, received) = (0, 0)
    while case .done(let count) = try self.write(chunk, to: pair.client) { sent += count }
    #expect(try self.write(chunk, to: pair.client) == .wantsWrite)
    while case (let bytes, .done) = try self.read(pair.server, count: 65_536) {
      received += bytes.count
    }
    // The record that did not fit is finished by the next write, whose buffer may lie elsewhere.
    let again = [UInt8](repeating: 7, count: 100_000)
    if case .done(let count) = try self.write(again, to: pair.client) { sent += count }
    while case (let bytes, .done) = try self.read(pair.server, count: 65_536) {
      received += bytes.count
    }
    #expect(sent == received)
  }

  @Test("A close_notify alert closes only the other direction") func closeNotify() throws {
    let pair = try self.connect()
    try self.handshake(pair)
    #expect(try pair.server.shutdown() == .done(byteCount: 0))
    #expect(try self.read(pair.client).1 == .closed)
    #expect(try self.write([1], to: pair.client) == .done(byteCount: 1))
    #expect(try self.read(pair.server).0 == [1])
  }

  @Test("An end of stream without close_notify closes the connection") func noCloseNotify() throws {
    let server = try self.authority.issue()
    let clientContext = try TLSContext.client(trust: .file(self.authority.certificateFile))
    let serverContext = try TLSContext.server(
      identity: .files(certificateChain: server.certificateFile, privateKey: server.keyFile))
    var ends: (TLSConnection, TLSConnection)? = try Socket.pair().take { first, second in
      (
        try .client(context: clientContext, socket: first, hostName: "localhost"),
        try .server(context: serverContext, socket: second)
      )
    }
    let client = try #require(ends).0
    try self.handshake(try #require(ends))
    ends = nil
    #expect(try self.read(client).1 == .closed)
  }

  @Test("A client identity is read from memory") func identityFromMemory() throws {
    let server = try self.authority.issue()
    let context = try TLSContext.server(
      identity: .pem(
        certificateChain: try contents(server.certificateFile)
          + contents(authority.certificateFile),
        privateKey: try contents(server.keyFile)), applicationProtocols: ["h2"])
    let clientContext = try TLSContext.client(
      trust: .file(self.authority.certificateFile), applicationProtocols: ["h2"])
    try self.handshake(
      try Socket.pair().take { first, second in
        (
          try .client(context: clientContext, socket: first, hostName: "localhost"),
          try .server(context: context, socket: second)
        )
      })
  }

  @Test(
    "Host names and addresses of the certificate are accepted",
    arguments: ["127.0.0.1", "localhost", "localhost."])
  func certificateNames(hostName: String) throws {
    try self.handshake(try self.connect(hostName: hostName))
  }

  @Test("An unknown authority is refused") func unknownAuthority() throws {
    let other = try TestAuthority()
    let error = try self.handshakeError(
      try self.connect(trust: .file(other.certificateFile)))
    #expect(error.code == .untrustedCertificate)
    #expect(error.isIdentityError)
    #expect(error.message.contains("issuer certificate") || error.message.contains("signature"))
    #expect(
      error.message.contains("issued by '") && error.message.contains("tls.ca_file"), "\(error)")
  }

  @Test("An empty store of certificates is named before any CA file") func emptyStore() throws {
    let environment = EnvironmentOverride([
      "SSL_CERT_FILE": "/no/such.pem", "SSL_CERT_DIR": "/no/such",
    ])
    defer { environment.restore() }
    let error = try self.handshakeError(try self.connect(trust: .system))
    #expect(error.code == .untrustedCertificate)
    #expect(
      error.message.contains("SSL_CERT_FILE=/no/such.pem and SSL_CERT_DIR=/no/such has no CA"),
      "\(error)")
  }

  @Test(
    "A certificate for another host is refused",
    arguments: ["example.com", "127.0.0.2", "localhost.example.com"])
  func otherHost(hostName: String) throws {
    let error = try self.handshakeError(try self.connect(hostName: hostName))
    #expect(error.code == .hostNameMismatch)
    #expect(error.message.contains("mismatch"))
    #expect(error.message.contains(hostName))
  }

  @Test("An expired certificate is refused") func expired() throws {
    let server = try self.authority.issue(days: -1)
    let error = try self.handshakeError(try self.connect(server: server))
    #expect(error.code == .certificateExpired)
    #expect(error.message.contains("expired"))
    #expect(error.message.hasSuffix("check this machine's clock"))
  }

  @Test("A server without the application protocol is refused") func applicationProtocol() throws {
    let silent = try self.handshakeError(try self.connect(serverProtocols: []))
    #expect(silent.code == .applicationProtocolMissing)
    let other = try self.handshakeError(try self.connect(serverProtocols: ["http/1.1"]))
    #expect(other.code == .applicationProtocolMissing)
    #expect(!other.isIdentityError)
    for error in [silent, other] {
      #expect(error.message.contains("gRPC needs HTTP/2 from end to end"))
      #expect(error.message.contains("a proxy that inspects TLS is probably in between"))
    }
    #expect(silent.message.contains("is issued by '"), "\(silent)")
  }

  @Test("A peer that does not speak TLS is refused") func notTLS() throws {
    let context = try TLSContext.client(trust: .file(self.authority.certificateFile))
    let (client, plain) = try Socket.pair().take { first, second in
      (
        try TLSConnection.client(context: context, socket: first, hostName: "localhost"),
        PlaintextConnection(socket: second)
      )
    }
    #expect(try client.handshake() == .wantsRead)
    _ = try self.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), to: plain)
    let error = try #require(throws: TLSError.self) { try client.handshake() }
    #expect(error.code == .handshakeFailed)
    #expect(error.message.contains("wrong version number") || error.message.contains("record"))
  }

  @Test("The error names the file that cannot be read") func unreadableFile() throws {
    let missing = try #require(throws: TLSError.self) {
      try TLSContext.client(trust: .file("/nowhere/ca.pem"))
    }
    #expect(missing.code == .badConfiguration)
    #expect(missing.message.contains("/nowhere/ca.pem"))
    #expect(missing.message.contains("No such file"))
    let (first, second) = (try self.authority.issue(), try self.authority.issue())
    let mismatch = try #require(throws: TLSError.self) {
      try TLSContext.server(
        identity: .files(certificateChain: first.certificateFile, privateKey: second.keyFile))
    }
    #expect(mismatch.code == .badConfiguration)
  }

  @Test("The system's certificate store is trusted") func systemStore() throws {
    let error = try self.handshakeError(try self.connect(trust: .system))
    #expect(error.code == .untrustedCertificate)
  }

  @Test("A plaintext connection has the same interface") func plaintext() throws {
    let (first, second) = try Socket.pair().take {
      (PlaintextConnection(socket: $0), PlaintextConnection(socket: $1))
    }
    #expect(try first.handshake() == .done(byteCount: 0))
    #expect(try self.write([1, 2], to: first) == .done(byteCount: 2))
    #expect(try self.read(second).0 == [1, 2])
    #expect(try self.read(second).1 == .wantsRead)
    _ = try first.shutdown()
    #expect(try self.read(second).1 == .closed)
  }
}

func contents(_ path: String) throws -> [UInt8] {
  let file = try #require(fopen(path, "r"))
  defer { fclose(file) }
  var buffer = [UInt8](repeating: 0, count: 65_536)
  let count = fread(&buffer, 1, buffer.count, file)
  return Array(buffer.prefix(count))
}
