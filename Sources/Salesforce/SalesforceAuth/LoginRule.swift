/// One kind of answer that the token endpoint gives instead of a token, and what it means.
///
/// The table is on the page ServiceLogins.md#refusals, which a test compares with this file. The service's
/// descriptions are texts for people, in no fixed wording, so a rule looks for words in them.
struct LoginRule: Sendable {
  enum Disposition: Sendable {
    /// The same login may succeed later.
    case again
    /// The service refused the login; only a change in the org or in the settings helps.
    case refused
    /// The answer is not one of the login service: the address is wrong, or something in between.
    case settings
  }

  /// Nil for every status.
  var statuses: [ClosedRange<Int>]?
  /// Values of `error`, in lower case; "" for an answer without one; nil for all.
  var errors: [String]?
  /// Texts of which one must occur in `error_description`, in lower case; nil for no such condition.
  var words: [String]?
  /// The logins that the rule is for.
  var grants = TokenEndpoint.Grant.allCases
  var disposition = Disposition.refused
  var advice: String
  /// Whether this machine's clock may be the reason.
  var concernsClock = false

  /// The first rule for an answer. The last rules fit every answer.
  static func first(
    status: Int, error: String, detail: String, grant: TokenEndpoint.Grant
  ) -> LoginRule? {
    let (error, detail) = (error.lowercased(), detail.lowercased())
    return Self.table.first { rule in
      rule.grants.contains(grant) && rule.statuses?.contains { $0.contains(status) } ?? true
        && rule.says(error: error, detail: detail)
    }
  }

  /// - Parameters: in lower case.
  private func says(error: String, detail: String) -> Bool {
    let isError = self.errors?.contains(error)
    let isText = self.words?.contains { detail.contains($0) }
    // The service uses a code of its own, or the general `invalid_grant` with a text.
    if let isError, let isText { return isError || isText }
    return isError ?? isText ?? true
  }

  /// The rule for a momentary answer that is quoted in a text, such as the Salesforce CLI prints.
  static func momentary(quotedIn text: String) -> LoginRule? {
    let text = text.lowercased()
    return Self.momentary.first { rule in
      rule.words?.contains { text.contains($0) } ?? false
        || rule.errors?.contains { text.contains($0) } ?? false
    }
  }

  static let table = Self.byStatus + Self.momentary + Self.refusals + Self.rest

  private static let byStatus = [
    LoginRule(
      statuses: [300...399], disposition: .settings,
      advice: "the host has moved: set login_url to the org's My Domain URL"),
    LoginRule(
      statuses: [407...407], disposition: .settings,
      advice: "a proxy requires another user and password; put them into the proxy's URL"),
    LoginRule(statuses: [429...429], disposition: .again, advice: Self.tooOften),
    LoginRule(
      statuses: [501...501, 505...505], disposition: .settings, advice: Self.noLoginService),
    LoginRule(
      statuses: [408...408, 420...421, 425...425, 500...599], disposition: .again,
      advice: "the login service is not available; try again later"),
    LoginRule(
      statuses: [404...405, 410...410], errors: [""], disposition: .settings,
      advice: Self.noLoginService),
    LoginRule(
      errors: [""], disposition: .again,
      advice: "this is not a login service's response; check login_url and any proxy in between"),
  ]

  private static let momentary = [
    LoginRule(
      words: ["being processed", "already in progress"], disposition: .again,
      advice: "the service handles another login with the same credentials; if this lasts, find "
        + "the other program that uses them, and give each program its own"),
    LoginRule(
      errors: [
        "rate_limit_exceeded", "login_rate_exceeded", "request_limit_exceeded",
        "too_many_requests", "slow_down",
      ],
      words: [
        "login rate", "rate exceeded", "rate limit", "request limit", "logins exceeded",
        "too many login", "too many request", "login limit",
      ], disposition: .again, advice: Self.tooOften),
    LoginRule(
      errors: [
        "unknown_error", "server_error", "temporarily_unavailable", "internal_error",
        "internal_server_error", "service_unavailable", "server_unavailable",
        "unknown_exception", "unable_to_lock_row",
      ],
      words: [
        "retry your request", "retry the request", "please retry", "retry later", "try again later",
        "try later", "temporarily unavailable", "currently unavailable", "service unavailable",
        "not available at this time", "maintenance", "unable to process", "too busy", "overloaded",
        "internal server error", "unexpected error", "timed out", "exclusive access",
      ], disposition: .again,
      advice: "the login service could not handle the request; if this lasts, look at "
        + "https://status.salesforce.com"),
  ]

  private static let refusals =
    Self.ofUser + Self.ofClientCredentials + Self.ofJWT + Self.ofRefreshToken + Self.ofApp

  private static let ofUser = [
    LoginRule(
      words: [
        "ip restricted", "restricted ip", "ip range", "ip address", "ip not allowed",
        "login hours", "restricted country",
      ],
      advice: "the app or profile restricts IP addresses or login hours; allow this machine's "
        + "address, and the hours in which runs take place"),
    LoginRule(
      words: ["password"],
      advice: "set a new password for the user, or give it the permission Password Never Expires"),
    LoginRule(
      words: [
        "identity verification", "challenge", "multi-factor", "two-factor", "high assurance",
        "high_assurance",
      ],
      advice: "the org asks for an identity verification, which a program cannot do: relax it for "
        + "this user, or use an integration user"),
  ]

  private static let ofClientCredentials = [
    LoginRule(
      words: ["not supported on this domain"], grants: [.clientCredentials],
      advice: "client credentials work only with My Domain; set login_url to "
        + "https://<name>.my.salesforce.com"),
    LoginRule(
      words: ["no client credentials user"], grants: [.clientCredentials],
      advice: "choose a run-as user in the app's client credentials policy"),
    LoginRule(
      errors: ["invalid_app_access", "access_denied", "oauth_app_access_denied"],
      words: ["approved"], grants: [.clientCredentials],
      advice: "pre-authorise the user in the app's policies"),
    LoginRule(
      errors: ["unsupported_grant_type", "unauthorized_client"], grants: [.clientCredentials],
      advice: "enable the client credentials flow in the app's settings"),
    LoginRule(
      errors: ["invalid_client_id"], words: ["client identifier"], grants: [.clientCredentials],
      advice: Self.unknownClient),
  ]

  private static let ofJWT = [
    LoginRule(
      errors: ["invalid_app_access", "access_denied", "oauth_app_access_denied"],
      words: ["approved"], grants: [.jwtBearer], advice: Self.preauthorise),
    LoginRule(words: ["certificate"], grants: [.jwtBearer], advice: Self.assertion),
    LoginRule(
      words: ["expired", "exp "],
      grants: [.jwtBearer],
      advice: "the assertion was too old or too far ahead when it arrived (the service's text "
        + "speaks of a code)", concernsClock: true),
    LoginRule(
      words: ["audience"], grants: [.jwtBearer],
      advice: "the audience does not belong to this kind of org: remove audience, or set it to "
        + "\(JWTAudience.production), or \(JWTAudience.sandbox) for a sandbox; check login_url, "
        + "and this machine's clock"),
    LoginRule(
      errors: ["invalid_assertion", "invalid_assertion_type"], words: ["assertion", "signature"],
      grants: [.jwtBearer], advice: Self.assertion),
    LoginRule(
      errors: ["unsupported_grant_type", "unauthorized_client"], grants: [.jwtBearer],
      advice: "enable the JWT bearer flow in the app's settings, and upload the certificate there"),
    LoginRule(
      errors: ["invalid_client_id", "invalid_client", "invalid_client_credentials"],
      grants: [.jwtBearer], advice: Self.unknownClient),
  ]

  private static let ofRefreshToken = [
    LoginRule(
      errors: ["invalid_app_access", "access_denied", "oauth_app_access_denied"],
      words: ["approved"], grants: [.refreshToken],
      advice: "\(Self.preauthorise), or authorize the app again"),
    LoginRule(
      errors: ["token_expired"],
      words: [
        "refresh token", "expired access", "token expired", "invalid token", "revoked",
        "authorization code",
      ], grants: [.refreshToken],
      advice: "the refresh token was revoked, has expired, or was replaced by a newer one; "
        + "authorize the app again and store the new token"),
    LoginRule(
      errors: ["unsupported_grant_type", "unauthorized_client", "invalid_scope"],
      grants: [.refreshToken],
      advice: "add the scope refresh_token to the app, and authorize it again"),
    LoginRule(
      errors: ["invalid_client_id"], grants: [.refreshToken], advice: Self.unknownClient),
  ]

  private static let ofApp = [
    LoginRule(
      errors: ["oauth_app_blocked", "oauth_authorization_blocked"],
      words: ["blocked", "not installed", "must be installed"],
      advice: "an administrator has blocked the app, or it is not installed in this org: see "
        + "Setup > Connected Apps OAuth Usage"),
    LoginRule(
      errors: ["api_disabled_for_org", "api_currently_disabled"],
      words: ["api is disabled", "api is not enabled"],
      advice: "the org's edition or the user's permissions do not include the API; the user needs "
        + "API Enabled"),
    LoginRule(
      words: ["not supported on this domain", "my domain"],
      advice: "the org allows logins on its own host only: set login_url to "
        + "https://<name>.my.salesforce.com"),
    LoginRule(
      errors: ["inactive_org"],
      words: ["inactive org", "organization is inactive", "org is locked", "org locked"],
      advice: "the org is inactive or locked"),
    LoginRule(
      errors: ["inactive_user"], words: ["inactive"], grants: [.clientCredentials],
      advice: "the run-as user of the app is inactive; activate the user"),
    LoginRule(
      errors: ["inactive_user"], words: ["inactive", "frozen"], advice: "activate the user"),
    LoginRule(words: ["locked"], advice: "unlock the user, and see Setup > Login History"),
    LoginRule(
      errors: ["invalid_client_id", "invalid_client", "invalid_client_credentials"],
      words: ["client credentials"],
      advice: "check client_id and client_secret; a new app can take ten minutes to become "
        + "available"),
    LoginRule(
      errors: ["invalid_scope"], words: ["scope"], advice: "add the scope api to the app"),
  ]

  private static let rest = [
    LoginRule(
      errors: ["invalid_grant"], grants: [.jwtBearer],
      advice: "check username, and that login_url is a host of the org the user belongs to"),
    LoginRule(
      errors: ["invalid_grant"],
      advice: "check the credentials and the app's policies, and see Setup > Login History"),
    LoginRule(
      advice: "check the app's settings and the login section of the pipeline file"),
  ]

  private static let tooOften =
    "the user or the app logs in too often (3,600 times an hour are allowed); Setup > Login History "
    + "shows which program does"
  private static let noLoginService =
    "no login service is at this address; set login_url to the org's My Domain URL, and check any "
    + "proxy in between"
  private static let assertion =
    "check that the certificate in the app belongs to this private key and has not expired; also "
    + "check client_id, username and this machine's clock"
  private static let preauthorise =
    "pre-authorise the user: in the app's policies, set permitted users to admin-approved users, "
    + "select a permission set there, and assign it to the user"
  private static let unknownClient =
    "check client_id, and that login_url is a host of the org that has the app, production or "
    + "sandbox; a new app can take ten minutes to become available"
}
