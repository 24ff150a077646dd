import EventLoop
import TestSupport
import Testing

@testable import HTTPClient

@Suite("HTTP client")
struct HTTPClientTests {
  let peer: PythonServer
  init() throws { self.peer = try PythonServer("http_peer.py") }

  func url(_ path: String) -> String { "http://127.0.0.1:\(self.peer.port)\(path)" }

  func error(
    of request: HTTPRequest, _ configuration: HTTPClient.Configuration = .init()
  ) async throws -> HTTPError {
    try await #require(throws: HTTPError.self) {
      _ = try await HTTPClient(configuration).send(request)
    }
  }

  @Test("A form is posted, and its response is returned") func form() async throws {
    let response = try await HTTPClient().send(
      .form(self.url("/form"), fields: [("a b", "c&d=é+"), ("empty", "")]))
    #expect(response.status == 200)
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(text.contains(#""body": "a%20b=c%26d%3D%C3%A9%2B&empty=""#))
    #expect(text.contains(#""content-type": "application/x-www-form-urlencoded""#))
    #expect(!text.contains(#""expect""#))
    #expect(response.header("x-padded") == "padded")
    let date = try #require(response.date)
    #expect(date > 1_700_000_000)
  }

  @Test("Headers are sent with and without a value") func headers() async throws {
    let response = try await HTTPClient().send(
      HTTPRequest(.get, self.url("/"), headers: [("X-One", "1"), ("X-None", "")]))
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(text.contains(#""x-one": "1""#))
    #expect(text.contains(#""x-none": """#))
    #expect(text.contains(#""accept-encoding": "gzip""#))
  }

  @Test("An empty body is posted") func emptyBody() async throws {
    let response = try await HTTPClient().send(HTTPRequest(.post, self.url("/")))
    #expect(String(decoding: response.body, as: UTF8.self).contains(#""content-length": "0""#))
  }

  @Test("A body is sent", arguments: [HTTPRequest.Method.post, .patch])
  func body(method: HTTPRequest.Method) async throws {
    let response = try await HTTPClient().send(
      HTTPRequest(method, self.url("/"), body: Array("{}".utf8)))
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(text.contains(#""method": "\#(method.rawValue)""#))
    #expect(text.contains(#""body": "{}""#))
    #expect(text.contains(#""content-length": "2""#))
  }

  @Test("DELETE sends no body") func delete() async throws {
    let response = try await HTTPClient().send(
      HTTPRequest(.delete, self.url("/jobs/1"), body: Array("not sent".utf8)))
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(text.contains(#""method": "DELETE""#))
    #expect(text.contains(#""path": "/jobs/1""#))
    #expect(text.contains(#""body": """#))
  }

  @Test(
    "Any status is returned, and redirects are not followed",
    arguments: [204, 301, 302, 400, 401, 404, 500, 503])
  func statuses(status: Int) async throws {
    let response = try await HTTPClient().send(HTTPRequest(.get, self.url("/status/\(status)")))
    #expect(response.status == status)
  }

  @Test("Each exchange is reported without its query and body") func exchanges() async throws {
    let told = Lock<[HTTPExchange]>([])
    var configuration = HTTPClient.Configuration(maxBodyBytes: 100_000)
    configuration.onExchange = { exchange in told.withLock { $0.append(exchange) } }
    let client = HTTPClient(configuration)
    _ = try await client.send(HTTPRequest(.get, self.url("/bytes/100000?q=secret")))
    _ = try? await client.send(HTTPRequest(.get, self.url("/bytes/100001")))
    _ = try await client.send(HTTPRequest(.get, self.url("/status/503")))
    _ = try await client.send(.form(self.url("/form"), fields: [("password", "secret")]))
    let exchanges = told.withLock { $0 }
    #expect(
      exchanges.map(\.url)
        == ["/bytes/100000", "/bytes/100001", "/status/503", "/form"].map(self.url))
    #expect(exchanges.map(\.status) == [200, 200, 503, 200])
    #expect(exchanges.map { $0.failure == nil } == [true, false, true, true])
    #expect(exchanges[0].bodyByteCount == 100_000)
    #expect(exchanges[3].method == .post)
  }

  @Test("The size limit applies after decompression") func limit() async throws {
    let configuration = HTTPClient.Configuration(maxBodyBytes: 100_000)
    let fits = try await HTTPClient(configuration).send(
      HTTPRequest(.get, self.url("/bytes/100000")))
    #expect(fits.body.count == 100_000)
    let error = try await self.error(
      of: HTTPRequest(.get, self.url("/bytes/100001")), configuration)
    #expect(error.code == .limitExceeded)
  }

  @Test("A silent server is a timeout") func silentServer() async throws {
    let error = try await self.error(
      of: HTTPRequest(.get, self.url("/hang")), .init(timeout: .milliseconds(200)))
    #expect(error.code == .timeout)
    #expect(error.isTransient)
  }

  @Test("Cancelling the task ends its request") func cancelledTask() async throws {
    let request = HTTPRequest(.get, self.url("/hang"))
    let task = Task { try await HTTPClient().send(request) }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  @Test("A truncated or non-HTTP response is a connection error", arguments: ["/cut", "/garbage"])
  func brokenAnswers(path: String) async throws {
    let error = try await self.error(of: HTTPRequest(.get, self.url(path)))
    #expect(error.code == .connection)
    #expect(error.isTransient)
  }

  @Test(
    "An unusable URL is refused",
    arguments: [
      "http://example.com/", "http://127.0.0.1.example.com/", "http://10.0.0.1/",
      "ftp://localhost/",
      "file:///etc/passwd", "", "no url", "//localhost/", "https://user:hidden@localhost/",
      "https://user:hid/den@localhost/", "http://[::2]/", "http://localhost.example.com/",
      "https://local\u{0}host/", "https://localhost/ x",
    ])
  func unusableURLs(_ url: String) async throws {
    let error = try await self.error(of: HTTPRequest(.get, url))
    #expect(error.code == .invalidRequest)
    #expect(!error.message.contains("hid"))
  }

  @Test(
    "Usable URLs are accepted",
    arguments: ["http://127.0.0.1:1/", "http://localhost/", "http://[::1]:80/x", "https://a.b"])
  func usableURLs(_ url: String) throws {
    try HTTPRequest(.get, url).checkURL()
  }

  @Test(
    "A request prints no part of a password, whatever its characters",
    arguments: ["hid/den", "hid@den", "hid?den", "hid#den", "hid/den@hid?den#hid"])
  func passwords(_ password: String) {
    let text = "\(HTTPRequest(.get, "https://etl:\(password)@example.test/path?hid"))"
    #expect(text == "GET https://<redacted>@example.test/path")
  }

  @Test("Headers with line ends are refused") func lineEnds() async throws {
    for value in ["a\r\nX: y", "a\nb", "a\u{0}b"] {
      let error = try await self.error(
        of: HTTPRequest(.get, self.url("/"), headers: [("X-One", value)]))
      #expect(error.code == .invalidRequest)
    }
  }

  @Test("A request prints without query, headers and body") func redaction() async throws {
    let request = HTTPRequest(
      .post, self.url("/status/x?q=hidden"), headers: [("Authorization", "hidden")],
      body: Array("hidden".utf8))
    var dumped = ""
    dump(request, to: &dumped)
    let response = HTTPResponse(status: 200, headers: [("a", "hidden")], body: [104, 105])
    dump(response, to: &dumped)
    #expect(!"\(request) \(String(reflecting: request)) \(response) \(dumped)".contains("hidden"))
  }
}

@Suite("HTTP client over TLS")
struct HTTPClientTLSTests {
  let authority: TestAuthority
  init() throws { self.authority = try TestAuthority() }

  func send(
    _ server: TestAuthority.Server, caFile: String?, host: String = "localhost"
  ) async throws -> HTTPResponse {
    let peer = try PythonServer("http_peer.py", [server.certificateFile, server.keyFile])
    return try await HTTPClient(.init(caFile: caFile)).send(
      HTTPRequest(.get, "https://\(host):\(peer.port)/"))
  }

  @Test("A server with a certificate of a trusted authority is accepted") func trustedAuthority()
    async throws
  {
    let response = try await self.send(
      try self.authority.issue(), caFile: self.authority.certificateFile)
    #expect(response.status == 200)
  }

  @Test("A certificate of another authority is refused") func otherAuthority() async throws {
    let other = try TestAuthority()
    for caFile in [nil, other.certificateFile] {
      let error = try await #require(throws: HTTPError.self) {
        _ = try await self.send(try self.authority.issue(), caFile: caFile)
      }
      #expect(error.code == .untrusted)
      #expect(!error.isTransient)
    }
  }

  @Test("Without certificates, the message says so and does not advise to check tls.ca_file")
  func emptyStore() async throws {
    for directory in [nil, "/no/such", "/etc/ssl/certs"] {
      let environment = EnvironmentOverride([
        "SSL_CERT_FILE": "/no/such.pem", "SSL_CERT_DIR": directory,
      ])
      defer { environment.restore() }
      let error = try await #require(throws: HTTPError.self) {
        _ = try await self.send(try self.authority.issue(), caFile: nil)
      }
      #expect([.untrusted, .trustStore].contains(error.code))
      #expect(error.message.contains("has no CA certificates, so this program trusts no server"))
      #expect(!error.message.contains("check tls.ca_file"), "\(error)")
    }
  }

  @Test(
    "A certificate for another name, or an expired one, is refused",
    arguments: [
      ("DNS:other.example", 2, "check the host name"),
      ("DNS:localhost", -1, "check this machine's clock"),
    ])
  func otherName(names: String, days: Int, advice: String) async throws {
    let error = try await #require(throws: HTTPError.self) {
      _ = try await self.send(
        try self.authority.issue(names, days: days), caFile: self.authority.certificateFile)
    }
    #expect(error.code == .untrusted)
    #expect(error.message.hasSuffix(advice), "\(error)")
  }

  /// The name is one that only the proxy can resolve.
  func send(
    through mode: String, user: String? = nil, password: String? = nil, port: UInt16 = 1
  ) async throws -> HTTPResponse {
    let proxy = try PythonServer("proxy_peer.py", ["\(port)", mode])
    var configuration = HTTPClient.Configuration(caFile: self.authority.certificateFile)
    configuration.proxy = .server(
      .init(host: "127.0.0.1", port: Int(proxy.port), user: user, password: password))
    return try await HTTPClient(configuration).send(
      HTTPRequest(.get, "https://service.invalid:7443/"))
  }

  @Test(
    "A request goes through the proxy",
    arguments: [
      ("open", nil, nil), ("drip", nil, nil), ("auth:me:s3:cret", "me", "s3:cret"),
      ("auth:me:", "me", nil),
    ])
  func proxy(mode: String, user: String?, password: String?) async throws {
    let server = try self.authority.issue("DNS:service.invalid")
    let peer = try PythonServer("http_peer.py", [server.certificateFile, server.keyFile])
    let response = try await self.send(
      through: mode, user: user, password: password, port: peer.port)
    #expect(response.status == 200)
    // The server sees no password that is the proxy's.
    #expect(!String(decoding: response.body, as: UTF8.self).contains("proxy-authorization"))
  }

  @Test(
    "A proxy that opens no tunnel is an error",
    arguments: [
      ("auth:me:other", HTTPError.Code.proxyRefused), ("status:403", .proxyRefused),
      ("status:502", .connection), ("hang_up", .connection),
    ])
  func refusingProxy(mode: String, code: HTTPError.Code) async throws {
    let error = try await #require(throws: HTTPError.self) {
      _ = try await self.send(through: mode, user: "me", password: "s3cret")
    }
    #expect(error.code == code, "\(error)")
    #expect(error.isTransient == (code == .connection))
    #expect(!error.message.contains("s3cret"))
  }

  @Test("Requests over plain HTTP bypass the proxy") func plainRequests() async throws {
    let peer = try PythonServer("http_peer.py")
    let proxy = try PythonServer("proxy_peer.py", ["1", "hang_up"])
    var configuration = HTTPClient.Configuration()
    configuration.proxy = .server(.init(host: "127.0.0.1", port: Int(proxy.port)))
    let response = try await HTTPClient(configuration).send(
      HTTPRequest(.get, "http://127.0.0.1:\(peer.port)/"))
    #expect(response.status == 200)
  }

  @Test("The client shows its own certificate") func clientCertificate() async throws {
    let (server, client) = (try self.authority.issue(), try self.authority.issue("DNS:client"))
    let peer = try PythonServer(
      "http_peer.py",
      [server.certificateFile, server.keyFile, self.authority.certificateFile])
    func send(_ certificate: HTTPClient.Configuration.Certificate?) async throws -> Int {
      var configuration = HTTPClient.Configuration(caFile: self.authority.certificateFile)
      configuration.certificate = certificate
      return try await HTTPClient(configuration).send(
        HTTPRequest(.get, "https://localhost:\(peer.port)/")
      ).status
    }
    let status = try await send(.init(file: client.certificateFile, keyFile: client.keyFile))
    #expect(status == 200)
    let none = try await #require(throws: HTTPError.self) { _ = try await send(nil) }
    #expect(none.code == .connection)
    let wrong = try await #require(throws: HTTPError.self) {
      _ = try await send(.init(file: client.certificateFile, keyFile: server.keyFile))
    }
    #expect(wrong.code == .certificate)
  }

  @Test("The error says that the CA file is missing") func missingCAFile() async throws {
    let error = try await #require(throws: HTTPError.self) {
      _ = try await self.send(try self.authority.issue(), caFile: "/nonexistent/ca.pem")
    }
    #expect(error.code == .trustStore)
  }
}
