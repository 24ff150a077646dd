internal import Bytes

/// Scheme, host and port of a server, from a URL without path, query and user.
package struct ServiceAddress: Sendable, Equatable {
  package struct ParseError: Error, CustomStringConvertible {
    /// Says what is accepted. Never repeats the text, which may hold a password.
    package var description: String
  }

  /// True for `https`.
  package var isSecure: Bool
  /// A name or an address; IPv6 without brackets.
  package var host: String
  package var port: Int

  /// - Parameter host: in lower case, IPv6 without brackets.
  package init(isSecure: Bool, host: String, port: Int) {
    (self.isSecure, self.host, self.port) = (isSecure, host, port)
  }

  /// - Parameters:
  ///   - text: `https://host[:port][/]`; `http` for loopback hosts only, because tokens and
  ///     secrets would travel in plain text.
  ///   - allowsPlaintext: whether `http` may go to another machine.
  package init(parsing text: String, allowsPlaintext: Bool = false) throws(ParseError) {
    let rest: Substring
    if text.hasPrefix("https://") {
      self.isSecure = true
      rest = text.dropFirst(8)
    } else if text.hasPrefix("http://") {
      self.isSecure = false
      rest = text.dropFirst(7)
    } else {
      throw ParseError(description: "expected a URL that begins with https://")
    }
    let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
    guard !authority.contains("@") else {
      throw ParseError(description: "the URL must not contain a user or password")
    }
    guard !authority.contains(where: { "/?#".contains($0) }) else {
      throw ParseError(
        description: "expected a URL of scheme, host and port, without path and query")
    }
    let host: Substring
    var port: Substring?
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else {
        throw ParseError(description: "the address has a '[' without a ']'")
      }
      host = authority[authority.index(after: authority.startIndex)..<end]
      let tail = authority[authority.index(after: end)...]
      guard tail.isEmpty || tail.hasPrefix(":") else {
        throw ParseError(description: "only a port may follow the ']' of the address")
      }
      port = tail.isEmpty ? nil : tail.dropFirst()
      guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
      else { throw ParseError(description: "the address in brackets is not an IPv6 address") }
    } else {
      let colon = authority.firstIndex(of: ":")
      host = authority[..<(colon ?? authority.endIndex)]
      port = colon.map { authority[authority.index(after: $0)...] }
      guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else {
        throw ParseError(description: "the URL has no valid host name")
      }
    }
    self.host = String(host).lowercased()
    if let port {
      guard port.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = Int(port),
        (1...65535).contains(number)
      else { throw ParseError(description: "the port of the URL is not a number from 1 to 65535") }
      self.port = number
    } else {
      self.port = self.isSecure ? 443 : 80
    }
    if !self.isSecure, !self.isLoopback, !allowsPlaintext {
      throw ParseError(
        description:
          "http:// is accepted only for loopback addresses, because secrets would be sent "
          + "unencrypted; use https://"
      )
    }
  }

  /// localhost, 127.0.0.0/8, ::1.
  package var isLoopback: Bool {
    if self.host == "localhost" || self.host == "::1" { return true }
    let parts = self.host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127"
      && parts.allSatisfy { part in part.utf8.first != 0x2B && UInt8(part) != nil }
  }

  /// `https://host:port`, without a port that is the scheme's own.
  package var url: String {
    let host = self.host.contains(":") ? "[\(self.host)]" : self.host
    let scheme = self.isSecure ? "https" : "http"
    let isDefault = self.port == (self.isSecure ? 443 : 80)
    return "\(scheme)://\(host)\(isDefault ? "" : ":\(self.port)")"
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    byte.isWordCharacter || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }
}
