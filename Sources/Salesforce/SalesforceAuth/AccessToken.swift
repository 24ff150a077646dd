internal import Bytes
internal import HTTPClient

/// What the Pub/Sub API is called with. Prints without its value.
package struct AccessToken: Sendable, Hashable {
  /// The secret itself: visible ASCII, never empty, at most 16 KiB.
  package let value: String
  /// Origin of the org, such as `https://acme.my.salesforce.com`, without a slash at its end.
  package let instanceURL: String
  /// 18 characters, case-insensitive by their last three.
  package let organizationID: String
  /// The user that logged in, 15 or 18 characters; nil where the login does not say.
  package let userID: String?

  /// Throws `AuthError` of code `unavailable` for an empty or unusable value, of code
  /// `configuration` when the instance URL is not usable.
  init(
    value: String, instanceURL: String, organizationID: OrganizationID, identityURL: String? = nil
  ) throws(AuthError) {
    guard Self.isUsable(value) else {
      throw AuthError(
        .unavailable,
        "the login returned no usable access token (it is empty, longer than 16 KiB or not "
          + "printable ASCII)")
    }
    guard !instanceURL.isEmpty else {
      throw AuthError(.unavailable, "the login returned no instance URL")
    }
    guard instanceURL.utf8.count <= Self.maxURLLength, Self.isUsable(instanceURL) else {
      throw AuthError(
        .configuration,
        "the instance URL cannot be used: it is longer than 1,024 bytes or not printable ASCII")
    }
    do {
      try HTTPRequest(.get, instanceURL).checkURL()
    } catch {
      throw AuthError(.configuration, "the instance URL cannot be used: \(error.message)")
    }
    self.value = value
    self.instanceURL = instanceURL.withoutTrailingSlashes
    self.organizationID = organizationID.text
    self.userID = identityURL.flatMap { Self.userID(inIdentityURL: $0) }
  }

  /// The last segment of the identity URL `https://<host>/id/<org id>/<user id>`.
  private static func userID(inIdentityURL url: String) -> String? {
    let segments = url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
    guard let id = segments.last, id.hasPrefix("005"), [15, 18].contains(id.utf8.count),
      id.utf8.allSatisfy(\.isAlphanumeric)
    else { return nil }
    return String(id)
  }

  private static let maxLength = 16 << 10
  private static let maxURLLength = 1024

  /// Whether a text can be sent as a header's value and is one word.
  static func isUsable(_ value: String) -> Bool {
    !value.isEmpty && value.utf8.count <= Self.maxLength
      && value.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "access token of \(self.organizationID) (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension String {
  var withoutTrailingSlashes: String {
    var text = self[...]
    while text.last == "/" { text = text.dropLast() }
    return String(text)
  }
}

extension AccessToken {
  /// Words of a text that may be access tokens: an org's ID, an exclamation mark and more, or the three
  /// parts of a JWT.
  static func resemblances(in text: String) -> [String] {
    let words = text.split { !($0.isLetter || $0.isNumber || "!._-".contains($0)) }
    return words.filter { word in
      let isSession = word.hasPrefix("00D") && word.contains("!")
      let isJWT = word.hasPrefix("eyJ") && word.count { $0 == "." } == 2
      return isSession || isJWT
    }.map(String.init)
  }
}
