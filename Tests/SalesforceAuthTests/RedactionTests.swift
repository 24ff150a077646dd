import HTTPClient
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Redaction of secrets")
struct RedactionTests {
  /// Every way in which a value becomes text.
  func printed(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    dump([value], to: &dumped)
    let children = Mirror(reflecting: value).children.map { "\($0)" }
    return "\(value) \(String(describing: value)) \(String(reflecting: value)) \([value]) "
      + "\(Optional(value) as Any) \(children) \(dumped)"
  }

  @Test("No type prints a secret") func types() async throws {
    let peer = try PythonServer("login_peer.py", ["hushhush"])
    let flow = ClientCredentialsFlow(
      loginURL: "http://127.0.0.1:\(peer.port)", clientID: "app", clientSecret: "hushhush",
      organizationID: nil, client: HTTPClient())
    let given = StaticTokenFlow(
      token: { "001Dp00000JJkkH!secret" }, instanceURL: "https://a.example", organizationID: nil)
    let refreshPeer = try PythonServer("refresh_peer.py", ["hushhush", "keep", "hushhush"])
    let refreshing = RefreshTokenFlow(
      .init(
        loginURL: "http://127.0.0.1:\(refreshPeer.port)", clientID: "app",
        clientSecret: "hushhush"), source: .value("hushhush"), organizationID: nil,
      client: HTTPClient())
    for flow: any AccessTokenFlow in [flow, given, refreshing] {
      let provider = AccessTokenProvider(flow)
      let token = try await provider.token()
      #expect(token.value.contains("secret"))
      let whileKept = self.printed(provider)
      await provider.refused(token.value)
      let text =
        whileKept + self.printed(provider) + self.printed(flow) + self.printed(token)
        + self.printed(try await flow.obtain())
      #expect(!text.contains("secret."))
      #expect(!text.contains("!secret"))
      #expect(!text.contains("hushhush"))
    }
  }

  @Test("No error holds a secret", arguments: ["quietquiet", "quietquiet/+& é", "+quietquiet%"])
  func errors(_ secret: String) async throws {
    // The peer knows another secret, and repeats the form it was sent.
    let peer = try PythonServer("login_peer.py", ["hushhush"])
    let provider = AccessTokenProvider(
      ClientCredentialsFlow(
        loginURL: "http://127.0.0.1:\(peer.port)", clientID: "app", clientSecret: secret,
        organizationID: nil, client: HTTPClient()))
    for _ in 0..<4 {
      let error = try await #require(throws: AuthError.self) { _ = try await provider.token() }
      #expect(!self.printed(error).contains("quiet"))
    }
    for token in ["001Dp00000JJkkH!quiet quiet", "quietquiet"] {
      let flow = StaticTokenFlow(
        token: { token }, instanceURL: "https://a.example", organizationID: nil)
      let error = try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
      #expect(!self.printed(error).contains("quiet"))
    }
  }
}
