import Cryptography
import Glibc
import HTTPClient
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Logins by JWT bearer")
struct JWTBearerFlowTests {
  let files: SigningKeyFiles
  let key: RSASigningKey
  init() throws {
    self.files = try SigningKeyFiles()
    self.key = try RSASigningKey(
      pem: SigningKeyFiles.content(self.files.privateKey), file: nil)
  }

  /// A flow at a peer whose clock is some seconds ahead, and what the flow noticed.
  private func flow(
    ahead: Int = 0, clientID: String = "app", username: String = "user@example.com",
    audience: String? = nil, key: RSASigningKey? = nil
  ) throws -> (flow: JWTBearerFlow, notices: NoticeLog, peer: PythonServer) {
    let peer = try PythonServer("assertion_peer.py", [self.files.publicKey, "\(ahead)"])
    let url = "http://127.0.0.1:\(peer.port)"
    let notices = NoticeLog()
    let flow = JWTBearerFlow(
      .init(
        loginURL: "\(url)/", clientID: clientID, username: username, audience: audience ?? url),
      key: key ?? self.key, organizationID: nil, client: HTTPClient(),
      onNotice: { notices.add($0) })
    return (flow, notices, peer)
  }

  @Test(
    "PyJWT accepts assertions, whatever characters the claims have",
    arguments: [
      ("3MVG9.app_ID-1", "user@example.com"), ("a\"b\\c", "zoë+日本@example.com"),
      (String(repeating: "x", count: 500), "u@e"),
    ])
  func assertions(issuer: String, subject: String) throws {
    let now = Int64(1_900_000_000)
    let texts = (0..<40).map { index in
      JWTAssertion(
        issuer: issuer, subject: subject, audience: "https://login.salesforce.com",
        expiry: now + 100 + Int64(index)
      ).signed(by: self.key)
    }
    let lines = try PythonScript.run(
      "verify_assertions.py",
      ["verify", self.files.publicKey, "https://login.salesforce.com", issuer, subject, "\(now)"]
        + texts
    ).split(separator: "\n")
    #expect(lines.count == texts.count)
    #expect(lines.allSatisfy { $0.contains(#""alg": "RS256""#) })
  }

  @Test("A server that verifies with PyJWT grants a token for each assertion")
  func obtains() async throws {
    let (flow, notices, peer) = try self.flow()
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.1")
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.2")
    #expect(notices.all.isEmpty)
    withExtendedLifetime(peer) {}
  }

  @Test(
    "With a wrong clock, the server's time is tried once, explained and kept",
    arguments: [
      (3600, "behind"), (-3600, "ahead of"),
    ])
  func skew(ahead: Int, word: String) async throws {
    let (flow, notices, peer) = try self.flow(ahead: ahead)
    // The first request was refused.
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.2")
    #expect(notices.all.count == 1)
    #expect(notices.all.first?.contains("s \(word) the login server's") == true)
    #expect(notices.all.first?.contains("timedatectl") == true)
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.3")
    #expect(notices.all.count == 1)
    withExtendedLifetime(peer) {}
  }

  @Test("A wrong clock is named in addition to another mistake")
  func skewAndMistake() async throws {
    let (flow, _, peer) = try self.flow(ahead: 3600, username: "other@example.com")
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .refused)
    #expect(error.message.contains("approved this consumer"))
    #expect(error.message.contains("also, this machine's clock is"))
    withExtendedLifetime(peer) {}
  }

  @Test("An assertion that is called expired although the clocks agree is not blamed on the clock")
  func agreeingClocks() async throws {
    let peer = try PythonServer("login_peer.py", ["unused"])
    let answer = #"{"error":"invalid_grant","error_description":"expired authorization code"}"#
    let escaped = answer.utf8.map { "%" + String($0, radix: 16) }.joined()
    let flow = JWTBearerFlow(
      .init(
        loginURL: "http://127.0.0.1:\(peer.port)/answer/400/-\(escaped)", clientID: "app",
        username: "user@example.com", audience: "https://login.salesforce.com"),
      key: self.key, organizationID: nil, client: HTTPClient(),
      // The peer's date, less a second.
      now: { 784_111_776 })
    let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
    #expect(error.code == .refused)
    #expect(error.message.contains("assertion was too old"))
    #expect(error.message.contains("differs from the one used here by only 1 s"), "\(error)")
    #expect(!error.message.contains("refresh token"))
    withExtendedLifetime(peer) {}
  }

  @Test("Each mistake has its advice")
  func refusals() async throws {
    let strange = try SigningKeyFiles()
    let otherKey = try RSASigningKey(
      pem: SigningKeyFiles.content(strange.privateKey), file: nil)
    for (made, words) in [
      (try self.flow(clientID: "another"), "check client_id, and that login_url"),
      (try self.flow(username: "other@example.com"), "pre-authorise the user"),
      (try self.flow(audience: "https://test.salesforce.com"), "remove audience, or set it to"),
      (try self.flow(key: otherKey), "the certificate in the app belongs to this private key"),
    ] {
      let error = try await #require(throws: AuthError.self) { _ = try await made.flow.obtain() }
      #expect(error.code == .refused)
      #expect(error.message.contains(words), "\(error)")
      #expect(!error.message.contains("clock is"))
      // The header of every assertion.
      #expect(!error.message.contains("eyJhbGciOiJSUzI1NiJ9"))
    }
  }

  @Test(
    "The audience follows the kind of org",
    arguments: [
      ("login.salesforce.com", JWTAudience.production),
      ("test.salesforce.com", JWTAudience.sandbox),
      ("acme.my.salesforce.com", JWTAudience.production),
      ("acme-2.my.salesforce.com", JWTAudience.production),
      ("acme--uat.sandbox.my.salesforce.com", JWTAudience.sandbox),
      ("acme--uat.my.salesforce.com", JWTAudience.sandbox),
      ("power-ability-1234.scratch.my.salesforce.com", JWTAudience.sandbox),
      ("acme-dev-ed.develop.my.salesforce.com", JWTAudience.production),
      ("acme.my.site.com", nil), ("localhost", nil), ("evilmy.salesforce.com", nil),
      ("acme.my.salesforce.com.example", nil),
    ] as [(String, String?)])
  func audience(host: String, expected: String?) {
    let url = "https://\(host)"
    #expect(JWTAudience.audience(loginURL: url, host: host) == expected ?? url)
  }
}
