/// What a request is signed with. Prints without its secrets.
package struct StoreCredentials: Sendable, Equatable {
  package var accessKeyID: String
  var secretAccessKey: String
  /// Of temporary credentials.
  var sessionToken: String?
  /// In milliseconds since 1970; nil when that is not known.
  package var expiresAt: Int64?

  package init(
    accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil,
    expiresAt: Int64? = nil
  ) {
    self.accessKeyID = accessKeyID
    self.secretAccessKey = secretAccessKey
    self.sessionToken = sessionToken
    self.expiresAt = expiresAt
  }

  /// Whether they can be sent in headers: one line of visible ASCII characters.
  var isUsable: Bool {
    let parts = [self.accessKeyID, self.secretAccessKey] + (self.sessionToken.map { [$0] } ?? [])
    return parts.allSatisfy { part in
      !part.isEmpty && part.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
  }
}

extension StoreCredentials: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package var description: String { "credentials with the access key \(self.accessKeyID)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: ["credentials": self.description]) }
}
