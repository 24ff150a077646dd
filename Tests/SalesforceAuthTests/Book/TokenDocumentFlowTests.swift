import EventLoop
import Testing

@testable import SalesforceAuth

/// The example of the page WritingALogin.
@Suite("Book: a login")
struct TokenDocumentFlowTests {
  private static func document(_ token: String) -> String {
    #"{"access_token": "\#(token)", "instance_url": "https://acme.my.salesforce.com/"}"#
  }

  private static func flow(_ text: String, organizationID: String? = nil) -> TokenDocumentFlow {
    TokenDocumentFlow(organizationID: organizationID) { Array(text.utf8) }
  }

  @Test("The document gives the token, its org and its URL")
  func obtain() async throws {
    let (token, date) = try await Self.flow(Self.document("001Dp00000JJkkH!abc")).obtain()
    #expect(token.value == "001Dp00000JJkkH!abc")
    #expect(token.instanceURL == "https://acme.my.salesforce.com")
    #expect(token.organizationID == "001Dp00000JJkkHIAT")
    #expect(date == nil)
  }

  @Test(
    "An unusable document is a configuration error that does not show its content",
    arguments: [
      "", "{", "[]", #"{"access_token": "001Dp00000JJkkH!secret"}"#,
      #"{"access_token": "secret", "instance_url": "https://acme.my.salesforce.com"}"#,
      #"{"access_token": "001Dp00000JJkkH!secret", "instance_url": "http://acme.example"}"#,
      #"{"access_token": 1, "instance_url": "https://acme.my.salesforce.com"}"#,
    ])
  func unusable(_ text: String) async throws {
    let error = try await #require(throws: AuthError.self) {
      _ = try await Self.flow(text).obtain()
    }
    #expect(error.code == .configuration)
    #expect(!error.message.contains("secret"))
  }

  @Test("After a refusal the document is read again and has to have another token")
  func refusal() async throws {
    let document = Lock(Self.document("001Dp00000JJkkH!old"))
    let provider = AccessTokenProvider(
      TokenDocumentFlow(organizationID: nil) { Array(document.withLock { $0 }.utf8) })
    await provider.refused(try await provider.token().value)
    let error = try await #require(throws: AuthError.self) { _ = try await provider.token() }
    #expect(error.code == .refused)
    document.withLock { $0 = Self.document("001Dp00000JJkkH!new") }
    #expect(try await provider.token().value == "001Dp00000JJkkH!new")
  }

  @Test("A flow prints without its secrets")
  func redaction() {
    let flow = Self.flow(Self.document("001Dp00000JJkkH!abc"))
    var dumped = ""
    dump(flow, to: &dumped)
    for text in ["\(flow)", String(reflecting: flow), dumped] {
      #expect(text.contains("redacted") && !text.contains("!abc"))
    }
  }
}
