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
  /// `detail` as it can be shown.
  private let shownDetail: String
  private let request: String
  private let grant: TokenEndpoint.Grant

  init(
    _ response: HTTPResponse, _ json: JSONValue?, request: HTTPRequest,
    grant: TokenEndpoint.Grant, secrets: [String]
  ) {
    self.grant = grant
    self.status = response.status
    self.name = json?["error"]?.string ?? ""
    self.shownName = Self.printable(self.name, without: secrets)
    self.detail = json?["error_description"]?.string ?? ""
    self.shownDetail = Self.printable(self.detail, without: secrets)
    self.request = request.description
  }

  var error: AuthError {
    let answer = [self.shownName, self.shownDetail].filter { !$0.isEmpty }.joined(separator: ": ")
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
      let advice = LoginAdvice(error: self.name, detail: self.detail, grant: self.grant).text
      return AuthError(.refused, "\(said); \(advice)")
    }
  }

  /// A server's text as far as it can be shown: printable ASCII of one line, and nothing of it when
  /// it repeats what it was sent.
  static func printable(_ text: String, without secrets: [String]) -> String {
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
