/// The credentials of a call. Prints without the token.
package struct RESTSession: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  package var accessToken: String
  /// Scheme and host of the org, without a trailing slash.
  package var instanceURL: String

  package init(accessToken: String, instanceURL: String) {
    self.accessToken = accessToken
    self.instanceURL = instanceURL
  }

  package var description: String { "session at \(self.instanceURL)" }
  package var customMirror: Mirror { Mirror(self, children: ["instanceURL": self.instanceURL]) }
}

/// The source of sessions for calls; shared with everything else that logs in to the org.
package protocol RESTSessionSource: Sendable {
  /// The current session, obtained if there is none.
  ///
  /// Throws `RESTError` of disposition `login`, `retry` or `stop`.
  func session() async throws -> RESTSession

  /// Call this when the org has accepted the session.
  func worked(_ session: RESTSession) async

  /// Call this when the org has refused the session: the next call of `session()` obtains another.
  ///
  /// - Returns: false if another one would be refused as well.
  func refused(_ session: RESTSession) async -> Bool
}
