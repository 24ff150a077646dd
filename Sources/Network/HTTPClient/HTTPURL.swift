internal import CCurl
internal import Glibc

/// The parts of a URL that decide whether it is called, as curl itself reads them.
struct HTTPURL {
  var isSecure: Bool
  var host: String

  /// Throws `HTTPError` for what is not called.
  init(checking request: HTTPRequest) throws(HTTPError) {
    guard let handle = curl_url() else { preconditionFailure("curl: out of memory") }
    defer { curl_url_cleanup(handle) }
    guard !request.url.utf8.contains(0),
      curl_url_set(handle, CURLUPART_URL, request.url, 0) == CURLUE_OK,
      let scheme = Self.part(CURLUPART_SCHEME, of: handle),
      let host = Self.part(CURLUPART_HOST, of: handle), !host.isEmpty
    else { throw HTTPError(.invalidRequest, "\(request): not a valid URL") }
    guard Self.part(CURLUPART_USER, of: handle) == nil,
      Self.part(CURLUPART_PASSWORD, of: handle) == nil
    else {
      throw HTTPError(
        .invalidRequest,
        "\(request): the URL must not contain a user or password")
    }
    switch scheme {
    case "https": self.isSecure = true
    case "http":
      guard request.allowsPlaintext || Self.isLoopback(host) else {
        throw HTTPError(
          .invalidRequest,
          "\(request): plain http is allowed only for loopback addresses; use https")
      }
      self.isSecure = false
    default: throw HTTPError(.invalidRequest, "\(request): the scheme is neither https nor http")
    }
    self.host = host
  }

  private static func part(_ part: CURLUPart, of handle: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, part, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// `localhost`, 127.0.0.0/8 or ::1. A name that merely resolves to loopback is not: names can be
  /// made to resolve to anything.
  static func isLoopback(_ host: String) -> Bool {
    if host.lowercased() == "localhost" { return true }
    var ipv4 = in_addr()
    if inet_pton(AF_INET, host, &ipv4) == 1 { return UInt32(bigEndian: ipv4.s_addr) >> 24 == 127 }
    let bare =
      host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    var ipv6 = in6_addr()
    guard inet_pton(AF_INET6, bare, &ipv6) == 1 else { return false }
    return withUnsafeBytes(of: &ipv6) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
  }

  /// For messages: neither query nor fragment nor a user with password.
  static func withoutQuery(_ url: String) -> String {
    guard let scheme = url.firstRange(of: "://") else { return "(malformed URL)" }
    let rest = url[scheme.upperBound...]
    // Anywhere: an unescaped password may hold the characters that end an authority or a path.
    let at = rest.lastIndex(of: "@")
    let shown = rest[(at ?? rest.startIndex)...].prefix { $0 != "?" && $0 != "#" }
    return "\(url[..<scheme.upperBound])\(at == nil ? "" : "<redacted>")\(shown)"
  }
}
