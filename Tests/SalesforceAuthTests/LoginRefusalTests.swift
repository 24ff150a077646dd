import FoundationEssentials
import HTTPClient
import JSON
import Testing

@testable import SalesforceAuth

@Suite("Answers of the token endpoint without a token")
struct LoginRefusalTests {
  private typealias Grant = TokenEndpoint.Grant

  /// The error for an answer.
  private static func error(
    _ status: Int, _ body: String, _ grant: TokenEndpoint.Grant = .clientCredentials,
    location: String? = nil, host: String = "acme.example"
  ) -> AuthError {
    let response = HTTPResponse(
      status: status, headers: location.map { [("location", $0)] } ?? [], body: Array(body.utf8))
    return LoginRefusal.error(
      response, try? JSONValue(parsing: response.body),
      request: HTTPRequest(.post, "https://\(host)/services/oauth2/token"), grant: grant,
      secrets: [])
  }

  private static func body(_ error: String, _ description: String) -> String {
    #"{"error":"\#(error)","error_description":"\#(description)"}"#
  }

  @Test(
    "An answer that may change in a moment is transient for every login",
    arguments: [
      ("invalid_grant", "token request is already being processed", "other program"),
      ("invalid_request", "Token request is already being processed", "other program"),
      ("unknown_error", "retry your request", "status.salesforce.com"),
      ("invalid_grant", "Retry your request.", "status.salesforce.com"),
      ("server_error", "", "status.salesforce.com"),
      ("temporarily_unavailable", "", "status.salesforce.com"),
      ("SERVER_UNAVAILABLE", "", "status.salesforce.com"),
      ("invalid_grant", "please try again later", "status.salesforce.com"),
      ("invalid_grant", "Unable to process your login request", "status.salesforce.com"),
      ("invalid_request", "refresh is already in progress", "other program"),
      ("invalid_request", "the service is temporarily unavailable", "status.salesforce.com"),
    ])
  func momentary(name: String, detail: String, advice: String) {
    for grant in Grant.allCases {
      for status in [400, 401, 403] {
        let error = Self.error(status, Self.body(name, detail), grant)
        #expect(error.code == .unavailable && error.isTransient, "\(error)")
        #expect(error.message.contains(advice), "\(error)")
        #expect(!error.message.contains("authorize the app"), "\(error)")
      }
    }
  }

  @Test(
    "Too many logins are transient, and the login history is named",
    arguments: [
      (400, "invalid_grant", "login rate exceeded"), (400, "rate_limit_exceeded", ""),
      (403, "LOGIN_RATE_EXCEEDED", ""), (400, "invalid_request", "Rate limit reached"),
      (400, "invalid_grant", "number of logins exceeded"), (429, "invalid_client", ""),
    ])
  func limits(status: Int, name: String, detail: String) {
    for grant in Grant.allCases {
      let error = Self.error(status, Self.body(name, detail), grant)
      #expect(error.code == .unavailable && error.isTransient, "\(error)")
      #expect(error.message.contains("Login History"))
    }
  }

  @Test(
    "A status of the 500s, 408, 420 or 429 is transient whatever the body says",
    arguments: [408, 420, 421, 429, 500, 502, 503, 504, 520])
  func statuses(status: Int) {
    for body in ["", "<html>maintenance</html>", Self.body("invalid_client", "no")] {
      #expect(Self.error(status, body).isTransient)
    }
  }

  @Test(
    "A response that cannot come from a login service is a configuration error",
    arguments: [404, 405, 407, 410, 501, 505])
  func otherServices(status: Int) {
    let error = Self.error(status, "<html>Not Found</html>")
    #expect(error.code == .configuration && !error.isTransient)
    #expect(error.message.contains("proxy"))
  }

  @Test(
    "Advice about a refusal depends on the login",
    arguments: [
      (.clientCredentials, "invalid_grant", "request not supported on this domain", "My Domain"),
      (.clientCredentials, "invalid_grant", "no client credentials user enabled", "run-as user"),
      (.clientCredentials, "invalid_client", "invalid client credentials", "client_secret"),
      (.clientCredentials, "invalid_client_id", "client identifier invalid", "and that login_url"),
      (.clientCredentials, "unsupported_grant_type", "not supported", "client credentials flow"),
      (.clientCredentials, "inactive_user", "user is inactive", "run-as user of the app"),
      (.clientCredentials, "invalid_grant", "expired access/refresh token", "Login History"),
      (.jwtBearer, "invalid_grant", "expired authorization code", "assertion was too old"),
      (.jwtBearer, "invalid_grant", "assertion is expired", "assertion was too old"),
      (.jwtBearer, "invalid_app_access", "user is not admin approved", "pre-authorise the user"),
      (.jwtBearer, "invalid_app_access", "", "pre-authorise the user"),
      (.jwtBearer, "invalid_grant", "user hasn't approved this consumer", "permission set"),
      (.jwtBearer, "invalid_grant", "invalid assertion", "certificate in the app"),
      (.jwtBearer, "invalid_grant", "Audience validation failed", "remove audience"),
      (.jwtBearer, "invalid_grant", "authentication failure", "check username"),
      (.jwtBearer, "invalid_client", "", "check client_id, and that login_url"),
      (.jwtBearer, "unsupported_grant_type", "", "JWT bearer flow"),
      (.refreshToken, "invalid_grant", "expired authorization code", "authorize the app again"),
      (.refreshToken, "invalid_grant", "expired access/refresh token", "authorize the app again"),
      (.refreshToken, "invalid_app_access", "", "or authorize the app again"),
      (.refreshToken, "unsupported_grant_type", "", "scope refresh_token"),
      (.refreshToken, "invalid_client", "invalid client credentials", "client_secret"),
    ] as [(TokenEndpoint.Grant, String, String, String)])
  func adviceByGrant(
    grant: TokenEndpoint.Grant, name: String, detail: String, advice: String
  ) {
    let error = Self.error(400, Self.body(name, detail), grant)
    #expect(error.code == .refused, "\(error)")
    #expect(error.message.contains(advice), "\(error)")
    if grant != .refreshToken {
      #expect(!error.message.contains("refresh token was"), "\(error)")
    }
    #expect(error.concernsClock == advice.contains("too old"))
  }

  @Test(
    "Advice about user, org and app is the same for every login",
    arguments: [
      ("invalid_grant", "ip restricted", "login hours"),
      ("invalid_grant", "IP restricted or invalid login hours", "this machine's address"),
      ("invalid_grant", "invalid login hours", "login hours"),
      ("invalid_grant", "user password has expired", "Password Never Expires"),
      ("invalid_grant", "identity verification required", "integration user"),
      ("inactive_user", "", "activate the user"), ("inactive_org", "", "inactive or locked"),
      ("invalid_grant", "inactive organization", "inactive or locked"),
      ("invalid_grant", "user is locked", "unlock the user"),
      ("OAUTH_APP_BLOCKED", "this app is blocked by admin", "Connected Apps OAuth Usage"),
      ("API_DISABLED_FOR_ORG", "", "API Enabled"), ("something_new", "unheard of", "settings"),
    ])
  func adviceForAll(name: String, detail: String, advice: String) {
    for grant in Grant.allCases {
      let error = Self.error(403, Self.body(name, detail), grant)
      #expect(error.code == .refused, "\(error)")
      #expect(error.message.contains(advice), "\(error)")
    }
  }

  @Test("An array of errors, as of the REST API, is understood") func array() {
    let error = Self.error(403, #"[{"errorCode":"API_DISABLED_FOR_ORG","message":"not enabled"}]"#)
    #expect(error.code == .refused && error.message.contains("API_DISABLED_FOR_ORG: not enabled"))
  }

  @Test("A redirect is final and names where it leads", arguments: [301, 302, 303, 307, 308])
  func redirects(status: Int) {
    for (host, location, advice) in [
      (
        "old.my.salesforce.com", "https://new.my.salesforce.com/x?y=z",
        "https://new.my.salesforce.com"
      ),
      (
        "acme.lightning.force.com", "https://acme.lightning.force.com/one",
        "https://acme.my.salesforce.com (the answer redirects to acme.lightning.force.com"
      ),
      ("acme.example", "https://signin.example/?from=secret", "redirects to signin.example"),
      ("acme.example", "//signin.example/x", "redirects to signin.example"),
      ("acme.example", "/services?to=https://a.example/", "My Domain URL"),
      ("acme.example", nil, "My Domain URL"),
    ] as [(String, String?, String)] {
      let error = Self.error(status, "", location: location, host: host)
      #expect(error.code == .configuration && !error.isTransient)
      #expect(error.message.contains(advice), "\(error)")
      #expect(!error.message.contains("later") && !error.message.contains("secret"))
    }
  }

  /// A row of the page.
  private static func row(_ rule: LoginRule) -> String {
    func list(_ texts: [String], of none: String) -> String {
      texts.map { $0.isEmpty ? none : "`\($0)`" }.joined(separator: ", ")
    }
    let statuses = rule.statuses?.map {
      $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)"
    }.joined(separator: ", ")
    let grants = rule.grants.map { grant in
      switch grant {
      case .clientCredentials: "client credentials"
      case .jwtBearer: "JWT"
      case .refreshToken: "refresh token"
      }
    }
    let then =
      switch rule.disposition {
      case .again: "again"
      case .refused: "refused"
      case .settings: "settings"
      }
    let cells = [
      statuses ?? "", list(rule.errors ?? [], of: "none"), list(rule.words ?? [], of: ""),
      rule.grants.count == Grant.allCases.count ? "" : grants.joined(separator: ", "), then,
      rule.advice.replacing("<", with: "\\<"),
    ]
    return "| " + cells.joined(separator: " | ") + " |"
  }

  @Test("The page about logins has the table of the code") func page() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
      .appending(path: "Sources/Program/PubSubETL/PubSubETL.docc/ServiceLogins.md")
    let text = String(decoding: try Data(contentsOf: path), as: UTF8.self)
    let rows = LoginRule.table.map(Self.row).joined(separator: "\n")
    #expect(text.contains(rows), "the table should be:\n\(rows)")
  }
}
