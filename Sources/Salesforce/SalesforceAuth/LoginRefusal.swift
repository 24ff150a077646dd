internal import Bytes
internal import HTTPClient
internal import JSON

/// An answer of the token endpoint without a token, as an error.
enum LoginRefusal {
  /// - Parameter secrets: texts of the request that a server might repeat.
  static func error(
    _ response: HTTPResponse, _ json: JSONValue?, request: HTTPRequest,
    grant: TokenEndpoint.Grant, secrets: [String]
  ) -> AuthError {
    // `error` as in RFC 6749 section 5.2, or an array of errors as of the REST API.
    let object = json?.array?.first ?? json
    let name = (object?["error"] ?? object?["errorCode"])?.string ?? ""
    let detail = (object?["error_description"] ?? object?["message"])?.string ?? ""
    let answer = [name, detail].map { Self.printable($0, without: secrets) }
      .filter { !$0.isEmpty }.joined(separator: ": ")
    let said = "\(request): HTTP \(response.status)\(answer.isEmpty ? "" : ", \(answer)")"
    // The last rule of the table fits every answer.
    let rule = LoginRule.first(
      status: response.status, error: name, detail: detail, grant: grant)
    var advice = rule?.advice ?? ""
    if (300..<400).contains(response.status), let location = response.header("Location"),
      ["//", "http://", "https://"].contains(where: location.lowercased().hasPrefix),
      let target = SalesforceHost.host(of: location)
    {
      advice += SalesforceHost.redirectAdvice(from: request.url, to: target)
    }
    var error = AuthError(Self.code(rule?.disposition ?? .refused), "\(said); \(advice)")
    error.concernsClock = rule?.concernsClock ?? false
    return error
  }

  private static func code(_ disposition: LoginRule.Disposition) -> AuthError.Code {
    switch disposition {
    case .again: .unavailable
    case .refused: .refused
    case .settings: .configuration
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
    let pieces = secret.utf8.split { !$0.isAlphanumeric }
    guard let longest = pieces.max(by: { $0.count < $1.count }) else {
      return text.contains(secret)
    }
    return text.contains(secret)
      || longest.count >= 4 && text.contains(String(decoding: longest, as: UTF8.self))
  }
}
