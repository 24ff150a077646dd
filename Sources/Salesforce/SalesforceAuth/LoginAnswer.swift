internal import HTTPClient
internal import JSON

/// What the token endpoint says when it gives a token.
struct LoginAnswer {
  var accessToken: String
  var instanceURL: String
  /// `https://<host>/id/<org id>/<user id>`.
  var identityURL: String?
  /// The new refresh token of a response that may lack the rest: the one before is used up all the same.
  static func refreshToken(of response: HTTPResponse) -> String? {
    guard (200..<300).contains(response.status) else { return nil }
    return (try? JSONValue(parsing: response.body))?["refresh_token"]?.string
  }

  /// Throws `AuthError` for any other answer.
  /// - Parameter secrets: texts of the request that a server might repeat.
  init(
    _ response: HTTPResponse, from request: HTTPRequest, grant: TokenEndpoint.Grant,
    secrets: [String]
  ) throws(AuthError) {
    let json = try? JSONValue(parsing: response.body)
    guard (200..<300).contains(response.status) else {
      throw LoginRefusal.error(response, json, request: request, grant: grant, secrets: secrets)
    }
    guard let json, json.members != nil else {
      throw AuthError(
        .unavailable,
        "\(request): the response is not JSON; it may come from a proxy or a maintenance page")
    }
    guard let accessToken = json["access_token"]?.string, !accessToken.isEmpty else {
      throw AuthError(.unavailable, "\(request): the response has no access_token")
    }
    guard let instanceURL = json["instance_url"]?.string, !instanceURL.isEmpty else {
      throw AuthError(.unavailable, "\(request): the response has no instance_url")
    }
    self.accessToken = accessToken
    self.instanceURL = instanceURL
    self.identityURL = json["id"]?.string
  }
}
