public import HTTPClient

/// OAuth 2.0 client credentials (RFC 6749 section 4.4), which Salesforce offers on a My Domain host
/// only. There is no refresh token: one asks again.
public struct ClientCredentialsFlow: AccessTokenFlow {
  private let loginURL: String
  private let clientID: String
  private let clientSecret: String
  private let organizationID: String?
  private let client: HTTPClient

  /// - Parameters:
  ///   - loginURL: origin of the org, such as `https://acme.my.salesforce.com`.
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  public init(
    loginURL: String, clientID: String, clientSecret: String, organizationID: String?,
    client: HTTPClient
  ) {
    self.loginURL = loginURL.withoutTrailingSlashes
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.organizationID = organizationID
    self.client = client
  }

  public func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    guard !self.clientID.isEmpty, !self.clientSecret.isEmpty else {
      throw AuthError(.configuration, "client_id and client_secret must not be empty")
    }
    let request = HTTPRequest.form(
      "\(self.loginURL)/services/oauth2/token",
      fields: [
        ("grant_type", "client_credentials"), ("client_id", self.clientID),
        ("client_secret", self.clientSecret),
      ])
    let response: HTTPResponse
    do {
      response = try await self.client.send(request)
    } catch let error as HTTPError {
      throw AuthError(error)
    }
    let answer = try LoginAnswer(
      response, from: request, secrets: [self.clientSecret])
    let organizationID = try OrganizationID.choose(
      configured: self.organizationID, identityURL: answer.identityURL,
      accessToken: answer.accessToken)
    let token = try AccessToken(
      value: answer.accessToken, instanceURL: answer.instanceURL, organizationID: organizationID)
    return (token, response.date)
  }
}

extension ClientCredentialsFlow: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  public var description: String { "client credentials (redacted)" }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
