/// What a failure of the Salesforce CLI is about.
///
/// The CLI's name for it does not decide: a `RefreshTokenAuthError` may come from the network, and what the
/// service refused may mention a socket.
enum CLIFailure {
  /// The CLI has no login for the org.
  case unknownOrg
  /// The login service said so, and may say otherwise in a moment.
  case momentary(LoginRule)
  case network
  /// Node.js does not trust the server's certificate.
  case certificate
  /// The login that the CLI keeps is no longer valid.
  case authorization
  case other

  init(name: String, message: String) {
    let text = "\(name): \(message)"
    let lowercased = text.lowercased()
    func says(_ words: [String]) -> Bool { words.contains { lowercased.contains($0) } }
    // Codes of Node.js are words in capitals; a name of a host or an org hardly is.
    let words = Set(text.split { !($0.isLetter || $0.isNumber || $0 == "_") })
    if says(Self.unknownOrgs) {
      self = .unknownOrg
    } else if let rule = LoginRule.momentary(quotedIn: message) {
      self = .momentary(rule)
    } else if says(Self.refusals) {
      self = .authorization
    } else if !words.isDisjoint(with: Self.certificates) || says(Self.certificateTexts) {
      self = .certificate
    } else if !words.isDisjoint(with: Self.networks) || says(Self.networkTexts) {
      self = .network
    } else if says(["expired", "refreshtoken", "jwtautherror", "inactive"]) {
      self = .authorization
    } else {
      self = .other
    }
  }

  private static let unknownOrgs = [
    "noauthinfo", "namedorgnotfound", "no authorization", "no org", "nodefaultenv",
  ]
  /// Codes and texts of the login service that are definite.
  private static let refusals = [
    "invalid_grant", "invalid_client", "invalid_app_access", "unauthorized_client",
    "inactive_user", "inactive_org", "expired access/refresh token", "authentication failure",
    "inactive user", "inactive org", "admin approved", "approved this consumer", "ip restricted",
    "app is blocked",
  ]
  private static let networks: Set<Substring> = [
    "ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EAI_AGAIN",
    "EHOSTUNREACH", "ENETUNREACH", "ENETDOWN", "EPIPE", "ERR_NETWORK", "UND_ERR_CONNECT_TIMEOUT",
    "UND_ERR_SOCKET", "UND_ERR_HEADERS_TIMEOUT", "ERR_SOCKET_CONNECTION_TIMEOUT",
  ]
  private static let networkTexts = ["socket hang up", "fetch failed", "network timeout"]
  private static let certificates: Set<Substring> = [
    "SELF_SIGNED_CERT_IN_CHAIN", "DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "CERT_HAS_EXPIRED",
  ]
  private static let certificateTexts = [
    "self signed certificate", "self-signed certificate", "local issuer certificate",
    "verify the first certificate",
  ]
}
