internal import HTTPClient
internal import JSON

/// An answer of the token endpoint without a token, and what it means.
struct LoginRefusal {
  private let status: Int
  /// The `error` member (RFC 6749 section 5.2); empty when there is none.
  private let name: String
  /// `name` as it can be shown.
  private let shownName: String
  /// The `error_description` member; empty when there is none.
  private let detail: String
  private let request: String

  init(_ response: HTTPResponse, _ json: JSONValue?, request: HTTPRequest, secrets: [String]) {
    self.status = response.status
    self.name = json?["error"]?.string ?? ""
    self.shownName = Self.printable(self.name, without: secrets)
    self.detail = Self.printable(json?["error_description"]?.string ?? "", without: secrets)
    self.request = request.description
  }

  var error: AuthError {
    let answer = [self.shownName, self.detail].filter { !$0.isEmpty }.joined(separator: ": ")
    let said = "\(self.request): HTTP \(self.status)\(answer.isEmpty ? "" : ", \(answer)")"
    switch self.status {
    case 301, 308:
      return AuthError(
        .configuration, "\(said); the host has moved: set login_url to the org's My Domain URL")
    case 408, 429, ..<400, 500...:
      return AuthError(.unavailable, "\(said); the login service is not available; try again later")
    default: break
    }
    switch self.name {
    case "":
      return AuthError(
        .unavailable,
        "\(said), which is not a login service's response; check login_url and any proxy in "
          + "between")
    case "rate_limit_exceeded", "temporarily_unavailable", "server_error":
      return AuthError(.unavailable, "\(said); try again later, and less often")
    default:
      return AuthError(.refused, "\(said); \(self.advice)")
    }
  }

  private var advice: String {
    switch self.name {
    case "invalid_grant": self.adviceForInvalidGrant
    case "invalid_client_id", "invalid_client":
      "check client_id and client_secret; a new app can take ten minutes to become available"
    case "unsupported_grant_type", "unauthorized_client":
      "enable the client credentials flow in the app's settings"
    case "inactive_user": "the run-as user of the app is inactive"
    case "inactive_org": "the org is inactive or locked"
    default: "check the app's settings and the login section of the pipeline file"
    }
  }

  private var adviceForInvalidGrant: String {
    let detail = self.detail.lowercased()
    func says(_ words: String...) -> Bool { words.contains { detail.contains($0) } }
    return if says("not supported on this domain") {
      "client credentials work only with My Domain; set login_url to "
        + "https://<name>.my.salesforce.com"
    } else if says("no client credentials user") {
      "choose a run-as user in the app's client credentials policy"
    } else if says("approved", "consumer") {
      "pre-authorise the user in the app's policies"
    } else if says("ip restricted", "ip ") {
      "the app or profile restricts IP addresses; allow this machine's address"
    } else if says("audience", "assertion") {
      "check the claims and the key of the assertion, and this machine's clock"
    } else if says("inactive") {
      "activate the user"
    } else {
      "check the credentials and the app's policies"
    }
  }

  /// A server's text as far as it can be shown: printable ASCII of one line, and nothing of it when
  /// it repeats what it was sent.
  private static func printable(_ text: String, without secrets: [String]) -> String {
    guard !secrets.contains(where: { Self.repeats(text, $0) }) else { return "(redacted)" }
    let bytes = text.utf8.map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: " ") }
    return String(decoding: bytes.prefix(200), as: UTF8.self)
  }

  /// Looks for the longest run of letters and digits too, which no way of escaping changes.
  private static func repeats(_ text: String, _ secret: String) -> Bool {
    let pieces = secret.utf8.split { !Self.isAlphanumeric($0) }
    guard let longest = pieces.max(by: { $0.count < $1.count }) else {
      return text.contains(secret)
    }
    return text.contains(secret)
      || longest.count >= 4 && text.contains(String(decoding: longest, as: UTF8.self))
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte | 0x20 {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): true
    default: (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
  }
}
