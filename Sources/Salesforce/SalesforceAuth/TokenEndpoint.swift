internal import HTTPClient

/// Where an org gives access tokens for whatever proves the client (RFC 6749 section 3.2).
struct TokenEndpoint {
  /// What the client proves itself with; decides what a refusal means.
  enum Grant: CaseIterable { case clientCredentials, jwtBearer, refreshToken }

  /// What the endpoint said.
  struct Reply {
    var result: Result<LoginAnswer, AuthError>
    /// The server's clock, in seconds since 1970.
    var date: Int64?
    /// The one to use from now on, where the service replaces refresh tokens.
    var refreshToken: String?
  }

  private let url: String
  private let grant: Grant
  private let organizationID: String?
  private let client: HTTPClient

  /// - Parameters:
  ///   - loginURL: origin of the login host.
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  init(loginURL: String, grant: Grant, organizationID: String?, client: HTTPClient) {
    self.url = "\(loginURL.withoutTrailingSlashes)/services/oauth2/token"
    self.grant = grant
    self.organizationID = organizationID
    self.client = client
  }

  /// Asks once. Throws `AuthError` without an answer.
  /// - Parameter secrets: texts of the request that a server might repeat.
  func ask(
    _ fields: [(name: String, value: String)], secrets: [String]
  ) async throws -> Reply {
    let request = HTTPRequest.form(self.url, fields: fields)
    let response: HTTPResponse
    do {
      response = try await self.client.send(request)
    } catch let error as HTTPError {
      throw AuthError(error)
    }
    let result = Result { () throws(AuthError) in
      try LoginAnswer(response, from: request, grant: self.grant, secrets: secrets)
    }
    return Reply(
      result: result, date: response.date,
      refreshToken: LoginAnswer.refreshToken(of: response))
  }

  /// The token of an answer, with the org that it is for.
  func token(_ answer: LoginAnswer) throws(AuthError) -> AccessToken {
    let organizationID = try OrganizationID.choose(
      configured: self.organizationID, identityURL: answer.identityURL,
      accessToken: answer.accessToken)
    return try AccessToken(
      value: answer.accessToken, instanceURL: answer.instanceURL, organizationID: organizationID,
      identityURL: answer.identityURL)
  }
}
