/// A token that another program obtains and renews.
package struct StaticTokenFlow: AccessTokenFlow {
  private let token: @Sendable () throws -> String
  private let instanceURL: String
  private let organizationID: String?

  /// - Parameters:
  ///   - token: reads the token from its place each time; white space around it is dropped.
  ///     What it throws is thrown by `obtain`.
  ///   - organizationID: 15 or 18 characters; nil to take it from the token.
  package init(
    token: @escaping @Sendable () throws -> String, instanceURL: String, organizationID: String?
  ) {
    self.token = token
    self.instanceURL = instanceURL
    self.organizationID = organizationID
  }

  package var isRenewedElsewhere: Bool { true }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    let text = try self.token()
    let value = String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    guard !value.isEmpty else {
      throw AuthError(
        .configuration,
        "access_token is empty; set a token, or use access_token_file")
    }
    guard AccessToken.isUsable(value) else {
      throw AuthError(
        .configuration,
        "access_token must be a single word of printable ASCII; remove anything else")
    }
    guard !self.instanceURL.isEmpty else {
      throw AuthError(.configuration, "access_token also needs instance_url")
    }
    let organizationID = try OrganizationID.choose(
      configured: self.organizationID, identityURL: nil, accessToken: value)
    let token = try AccessToken(
      value: value, instanceURL: self.instanceURL, organizationID: organizationID)
    return (token, nil)
  }
}

extension StaticTokenFlow: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  package var description: String { "given access token (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
