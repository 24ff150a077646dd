import HTTPClient
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Logins by client credentials")
struct ClientCredentialsFlowTests {
  static let secret = "s3cretWord&=+ é%"
  let peer: PythonServer
  init() throws { self.peer = try PythonServer("login_peer.py", [Self.secret]) }

  var url: String { "http://127.0.0.1:\(self.peer.port)" }

  func flow(
    _ loginURL: String? = nil, secret: String = Self.secret, organizationID: String? = nil
  ) -> ClientCredentialsFlow {
    ClientCredentialsFlow(
      loginURL: loginURL ?? self.url, clientID: "app", clientSecret: secret,
      organizationID: organizationID, client: HTTPClient())
  }

  /// The error of a login whose answer is this one.
  func error(_ status: Int, _ body: String) async throws -> AuthError {
    let escaped = body.utf8.map { byte in
      let digits = String(byte, radix: 16)
      return "%" + (digits.count < 2 ? "0" : "") + digits
    }.joined()
    let flow = self.flow("\(self.url)/answer/\(status)/-\(escaped)")
    return try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
  }

  @Test("A login returns a token and the server's clock") func obtains() async throws {
    let (token, date) = try await self.flow().obtain()
    #expect(token.value == "001Dp00000JJkkH!secret.1_x")
    #expect(token.instanceURL == self.url)
    #expect(token.organizationID == "00DXX0000000001AAA")
    #expect(date == 784_111_777)
  }

  @Test("A trailing slash of the host is dropped") func trailingSlash() async throws {
    let (token, _) = try await self.flow("\(self.url)/").obtain()
    #expect(!token.value.isEmpty)
  }

  @Test("A configured organization ID takes precedence") func configuredOrg() async throws {
    let (token, _) = try await self.flow(organizationID: "001Dp00000JJkkH").obtain()
    #expect(token.organizationID == "001Dp00000JJkkHIAT")
  }

  @Test(
    "A wrong secret is refused, and the error does not quote it",
    arguments: ["wr0ngSecret/ä", "a", "%%%", "+"])
  func wrongSecret(_ secret: String) async throws {
    let flow = self.flow(secret: secret)
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .refused)
    #expect(error.message.contains("check client_id and client_secret"))
    #expect(!error.message.contains("wr0ngSecret"))
  }

  @Test("A refusal names the service's words and says what to do") func refusal() async throws {
    let error = try await self.error(
      401, #"{"error":"invalid_grant","error_description":"no client credentials user enabled"}"#)
    #expect(error.code == .refused)
    #expect(error.message.contains("HTTP 401, invalid_grant: no client credentials user enabled"))
    #expect(error.message.contains("run-as user"))
  }

  @Test(
    "A response that does not come from a login service makes it unavailable",
    arguments: [
      (503, "<html>maintenance</html>"), (500, ""), (403, ""), (400, "{}"), (400, "[]"),
      (200, ""), (200, "<html>maintenance</html>"), (200, "[]"), (200, "{}"),
      (200, #"{"access_token":"","instance_url":"https://a.b"}"#),
      (200, #"{"access_token":"00DXX0000000001!x","instance_url":""}"#),
      (200, #"{"access_token":"00DXX0000000001!x"}"#),
      (200, #"{"access_token":7,"instance_url":"https://a.b"}"#),
      (200, #"{"access_token":"00DXX0000000001!x\r\ny","instance_url":"https://a.b"}"#),
      (200, #"{"access_token":"00DXX0000000001!x","instance_url":"https://a.b""#),
    ])
  func unavailable(status: Int, body: String) async throws {
    let error = try await self.error(status, body)
    #expect(error.code == .unavailable)
    #expect(!error.message.contains("!x"))
  }

  @Test("An instance URL without TLS is a configuration error")
  func configuration() async throws {
    let answer = #"{"access_token":"00DXX0000000001!x","instance_url":"http://example.com"}"#
    #expect(try await self.error(200, answer).code == .configuration)
  }

  @Test("The server's text is shown on one line and shortened") func serverText() async throws {
    let detail = #"a\n\u001b[31m"# + String(repeating: "b", count: 5000)
    let error = try await self.error(
      400, #"{"error":"invalid_grant","error_description":"\#(detail)"}"#)
    let answer = try #require(error.message.firstRange(of: "HTTP 400"))
    #expect(error.message[answer.lowerBound...].utf8.count < 600)
    #expect(error.message.utf8.allSatisfy { (0x20...0x7e).contains($0) })
  }

  @Test("A server that does not answer is unavailable") func noAnswer() async throws {
    // Nobody listens on port 1.
    let flow = self.flow("http://127.0.0.1:1")
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .unavailable)
  }

  @Test(
    "An unusable login URL is refused",
    arguments: ["http://example.com", "", "login.salesforce.com", "https://a:hidden@b.c"])
  func badURLs(_ url: String) async throws {
    let flow = self.flow(url)
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .configuration)
    #expect(!error.message.contains("hidden"))
  }

  @Test("A server without a trusted certificate is reported as untrusted") func untrusted()
    async throws
  {
    let authority = try TestAuthority()
    let server = try authority.issue()
    let peer = try PythonServer("http_peer.py", [server.certificateFile, server.keyFile])
    let flow = self.flow("https://localhost:\(peer.port)")
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .untrusted)
  }
}
