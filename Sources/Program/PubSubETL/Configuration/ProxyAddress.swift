import Bytes
import HTTPClient

/// An HTTP proxy: host, port and what it asks for, from a URL.
struct ProxyAddress: Sendable, Equatable {
  struct ParseError: Error, CustomStringConvertible {
    /// Says what is accepted. Never repeats the text, which may hold a password.
    var description: String
  }

  struct Authorization: Sendable, Equatable {
    var user: String
    var password: Secret
  }

  /// A name or an address; IPv6 without brackets.
  var host: String
  var port: Int
  var authorization: Authorization?

  /// - Parameter text: `[http://][user[:password]@]host[:port][/]`; user and password with `%XX`
  ///   for what would end them. Port 80 unless said otherwise.
  init(parsing text: String) throws(ParseError) {
    var rest = text[...]
    if let end = text.firstRange(of: "://") {
      guard text[..<end.lowerBound].lowercased() == "http" else {
        throw ParseError(
          description: "only http:// proxies are supported, not https:// or SOCKS"
        )
      }
      rest = text[end.upperBound...]
    }
    var user: Substring?
    if let at = rest.lastIndex(of: "@") {
      user = rest[..<at]
      rest = rest[rest.index(after: at)...]
    }
    do throws(ServiceAddress.ParseError) {
      // The scheme that accepts any host; a proxy needs none.
      let address = try ServiceAddress(parsing: "https://\(rest)")
      let isDefault = address.port == 443 && !Self.endsWithPort(rest)
      (self.host, self.port) = (address.host, isDefault ? 80 : address.port)
    } catch {
      throw ParseError(description: error.description)
    }
    self.authorization = try user.map { user throws(ParseError) in try Self.authorization(user) }
  }

  private static func endsWithPort(_ authority: Substring) -> Bool {
    let text = authority.hasSuffix("/") ? authority.dropLast() : authority
    return text.hasSuffix(":443")
  }

  private static func authorization(_ text: Substring) throws(ParseError) -> Authorization {
    let colon = text.firstIndex(of: ":") ?? text.endIndex
    guard let user = Self.percentDecoded(text[..<colon]),
      let password = Self.percentDecoded(text[colon...].dropFirst())
    else {
      throw ParseError(
        description: "the user or password contains a '%' that is not followed by two "
          + "hexadecimal digits")
    }
    // RFC 7617 section 2.
    guard !user.contains(":") else {
      throw ParseError(description: "the user name of a proxy cannot contain a colon")
    }
    return Authorization(user: user, password: Secret(password))
  }

  private static func percentDecoded(_ text: Substring) -> String? {
    let (bytes, isValid) = PercentEncoding.decoded(text)
    return isValid ? String(validating: bytes, as: UTF8.self) : nil
  }

  /// `host:port`, without user and password.
  var endpoint: String {
    self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
  }
}
