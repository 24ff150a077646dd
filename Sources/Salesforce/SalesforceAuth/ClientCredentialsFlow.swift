package import HTTPClient

/// OAuth 2.0 client credentials (RFC 6749 section 4.4), which Salesforce offers on a My Domain host
/// only. The answer has no refresh token: one asks again.
package struct ClientCredentialsFlow: AccessTokenFlow {
  private let clientID: String
  private let clientSecret: String
  private let endpoint: TokenEndpoint

  /// - Parameters:
  ///   - loginURL: origin of the org, such as `https://acme.my.salesforce.com`.
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  package init(
    loginURL: String, clientID: String, clientSecret: String, organizationID: String?,
    client: HTTPClient
  ) {
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.endpoint = TokenEndpoint(
      loginURL: loginURL, grant: .clientCredentials, organizationID: organizationID,
      client: client)
  }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    guard !self.clientID.isEmpty, !self.clientSecret.isEmpty else {
      throw AuthError(.configuration, "client_id and client_secret must not be empty")
    }
    let reply = try await self.endpoint.ask(
      [
        ("grant_type", "client_credentials"), ("client_id", self.clientID),
        ("client_secret", self.clientSecret),
      ], secrets: [self.clientSecret])
    return (try self.endpoint.token(reply.result.get()), reply.date)
  }
}

extension ClientCredentialsFlow: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package var description: String { "client credentials (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
