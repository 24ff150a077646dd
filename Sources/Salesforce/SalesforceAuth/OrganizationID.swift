internal import Bytes

/// The ID of an org, in its form of 18 characters.
struct OrganizationID: Sendable, Hashable {
  let text: String

  /// Takes 15 or 18 ASCII letters and digits; nil for anything else.
  init?(_ text: some StringProtocol) {
    let characters = Array(text.utf8)
    guard characters.allSatisfy(\.isAlphanumeric) else { return nil }
    switch characters.count {
    case 18: self.text = String(text)
    case 15: self.text = String(text) + Self.suffix(of: characters)
    default: return nil
    }
  }

  /// From the identity URL `https://<host>/id/<org id>/<user id>`: the last segment but one.
  init?(identityURL: String) {
    let path = identityURL.prefix { $0 != "?" && $0 != "#" }
    let segments = path.split(separator: "/")
    guard segments.count >= 2 else { return nil }
    self.init(segments[segments.count - 2])
  }

  /// From an access token `<15-character org id>!<rest>`.
  init?(accessToken: String) {
    guard let end = accessToken.firstIndex(of: "!") else { return nil }
    self.init(accessToken[..<end])
  }

  /// One character per group of five, whose bits say which of them are upper-case letters, so that
  /// the long form can be compared without case.
  private static func suffix(of characters: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345".utf8)
    let suffix = stride(from: 0, to: characters.count, by: 5).map { start in
      let bits = (0..<5).reduce(0) { bits, index in
        characters[start + index].isUpperCaseLetter ? bits | 1 << index : bits
      }
      return alphabet[bits]
    }
    return String(decoding: suffix, as: UTF8.self)
  }

  /// The configured ID if there is one, else the first of the others that is known.
  /// Throws `AuthError` of code `configuration` when the configured one is malformed or none is
  /// known.
  static func choose(
    configured: String?, identityURL: String?, accessToken: String
  ) throws(AuthError) -> OrganizationID {
    if let configured {
      guard let id = OrganizationID(configured) else {
        throw AuthError(
          .configuration,
          "org_id is not an organization ID: expected 15 or 18 letters and digits")
      }
      return id
    }
    if let id = identityURL.flatMap({ OrganizationID(identityURL: $0) }) { return id }
    if let id = OrganizationID(accessToken: accessToken) { return id }
    throw AuthError(
      .configuration, "neither the login nor its token contains the organization ID; set org_id")
  }
}
