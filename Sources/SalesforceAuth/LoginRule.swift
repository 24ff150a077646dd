/// What to do about a login that was refused, by the service's words and by what was sent.
///
/// Source: ServiceLogins.md#refusals. The service's descriptions are texts for people, in no fixed wording.
struct LoginAdvice {
  private let error: String
  private let detail: String
  private let grant: TokenEndpoint.Grant

  /// - Parameters:
  ///   - error: the `error` member of the answer.
  ///   - detail: its `error_description`.
  init(error: String, detail: String, grant: TokenEndpoint.Grant) {
    (self.error, self.detail, self.grant) = (error, detail.lowercased(), grant)
  }

  var text: String {
    switch self.error {
    case "invalid_grant": self.forInvalidGrant
    case "invalid_client_id": self.forUnknownClient
    case "invalid_client":
      self.grant == .jwtBearer
        ? self.forUnknownClient
        : "check client_id and client_secret; a new app can take ten minutes to become available"
    case "invalid_assertion": self.forAssertion
    case "unsupported_grant_type", "unauthorized_client": self.forDisabledFlow
    case "inactive_user": self.forInactiveUser
    case "inactive_org": "the org is inactive or locked"
    default: "check the app's settings and the login section of the pipeline file"
    }
  }

  private func says(_ words: String...) -> Bool { words.contains { self.detail.contains($0) } }

  private var forInvalidGrant: String {
    if says("not supported on this domain") {
      return "client credentials work only with My Domain; set login_url to "
        + "https://<name>.my.salesforce.com"
    }
    if says("no client credentials user") {
      return "choose a run-as user in the app's client credentials policy"
    }
    if says("approved this consumer", "approved", "consumer") { return self.forApproval }
    if says("ip restricted", "ip ") {
      return "the app or profile restricts IP addresses; allow this machine's address"
    }
    if says("audience") {
      return "the audience does not belong to this kind of org: remove audience, or set it to "
        + "\(JWTAudience.production), or \(JWTAudience.sandbox) for a sandbox; check login_url, "
        + "and this machine's clock"
    }
    if says("assertion") { return self.forAssertion }
    if says("expired", "token") {
      return
        "the refresh token was revoked, has expired, or was replaced by a newer one; authorize "
        + "the app again and store the new token"
    }
    if says("inactive") { return self.forInactiveUser }
    if self.grant == .jwtBearer {
      return "check username, and that login_url is a host of the org the user belongs to"
    }
    return "check the credentials and the app's policies"
  }

  private var forUnknownClient: String {
    switch self.grant {
    case .clientCredentials:
      "check client_id and client_secret; a new app can take ten minutes to become available"
    case .jwtBearer, .refreshToken:
      "check client_id, and that login_url is a host of the org that has the app; a new app can "
        + "take ten minutes to become available"
    }
  }

  private var forApproval: String {
    switch self.grant {
    case .clientCredentials: "pre-authorise the user in the app's policies"
    case .jwtBearer, .refreshToken:
      "pre-authorise the user: in the app's policies, set permitted users to admin-approved users, "
        + "select a permission set there, and assign it to the user"
    }
  }

  private var forAssertion: String {
    "check that the certificate in the app belongs to this private key, that client_id and username "
      + "are right, and this machine's clock"
  }

  private var forDisabledFlow: String {
    switch self.grant {
    case .clientCredentials: "enable the client credentials flow in the app's settings"
    case .jwtBearer:
      "enable the JWT bearer flow in the app's settings, and upload the certificate there"
    case .refreshToken: "add the scope refresh_token to the app, and authorize it again"
    }
  }

  private var forInactiveUser: String {
    self.grant == .clientCredentials
      ? "the run-as user of the app is inactive; activate the user" : "activate the user"
  }
}
