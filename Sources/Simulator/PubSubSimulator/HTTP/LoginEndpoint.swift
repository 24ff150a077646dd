internal import Foundation
internal import SimulatedOrg

/// `POST /services/oauth2/token` (client credentials, JWT bearer, refresh token) and
/// `GET /services/oauth2/userinfo`.
///
/// Source: ServiceLogins.md#token-endpoint.
struct LoginEndpoint: Sendable {
  let server: SimulatorServer
  /// `instance_url` of the answers; known once the endpoint listens.
  let instanceURL: @Sendable () -> String

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    let now = self.server.clock.now
    switch (request.method, request.path) {
    case ("POST", "/services/oauth2/token"):
      if let fault = await self.server.takeFault(method: "Login") {
        return Self.failure(fault, at: now)
      }
      let limit = self.server.configuration.org.loginLimit
      guard self.server.tokens.mayLogIn(limit: limit, at: now) else {
        return self.refuse("rate_limit_exceeded", "login rate exceeded", at: now)
      }
      return self.token(
        form: Self.form(request.body), authorization: request.headers["authorization"], at: now)
    case (_, "/services/oauth2/userinfo"):
      return self.userInfo(request.headers["authorization"], at: now)
    default:
      return .text("<html><body>Not Found</body></html>", status: 404)
    }
  }

  private func token(
    form: [String: String], authorization: String?, at now: Int64
  ) -> HTTPResponse {
    switch form["grant_type"] {
    case nil, "":
      return self.refuse("invalid_request", "missing required parameter: grant_type", at: now)
    case "client_credentials":
      return self.clientCredentials(form, authorization: authorization, at: now)
    case "urn:ietf:params:oauth:grant-type:jwt-bearer": return self.assertion(form, at: now)
    case "refresh_token":
      return self.refreshToken(form, authorization: authorization, at: now)
    default: return self.refuse("unsupported_grant_type", "grant type not supported", at: now)
    }
  }

  private func clientCredentials(
    _ form: [String: String], authorization: String?, at now: Int64
  ) -> HTTPResponse {
    let (id, secret) = Self.client(form, authorization)
    guard id == self.server.tokens.clientID else {
      return self.refuse("invalid_client_id", "client identifier invalid", at: now)
    }
    guard secret == self.server.tokens.clientSecret else {
      return self.refuse("invalid_client", "invalid client credentials", at: now)
    }
    return self.accept(at: now)
  }

  private func assertion(_ form: [String: String], at now: Int64) -> HTTPResponse {
    guard let verifier = self.server.assertions else {
      return self.refuse("unsupported_grant_type", "grant type not supported", at: now)
    }
    let org = self.server.configuration.org
    let expected = AssertionVerifier.Claims(
      issuer: org.clientID, subject: org.username,
      audience: org.jwtAudience ?? self.instanceURL())
    if let refusal = verifier.refusal(
      of: form["assertion"] ?? "", expecting: expected, at: now / 1000)
    {
      return self.refuse(refusal.error, refusal.description, at: now)
    }
    return self.accept(at: now)
  }

  private func refreshToken(
    _ form: [String: String], authorization: String?, at now: Int64
  ) -> HTTPResponse {
    let (id, secret) = Self.client(form, authorization)
    guard id == self.server.tokens.clientID else {
      return self.refuse("invalid_client_id", "client identifier invalid", at: now)
    }
    guard secret == nil || secret == self.server.tokens.clientSecret else {
      return self.refuse("invalid_client", "invalid client credentials", at: now)
    }
    switch self.server.refreshTokens.use(form["refresh_token"] ?? "") {
    case .refused:
      return self.refuse("invalid_grant", "expired access/refresh token", at: now)
    case .accepted: return self.accept(at: now)
    case .replaced(let token): return self.accept(refreshToken: token, at: now)
    }
  }

  private func accept(refreshToken: String? = nil, at now: Int64) -> HTTPResponse {
    let tokens = self.server.tokens
    let url = self.instanceURL()
    let identity = "\(url)/id/\(tokens.organizationID)/\(tokens.userID)"
    let issuedAt = String(now)
    let signature = Data(
      MessageDigest.sha256Hex(Array((identity + issuedAt + tokens.clientSecret).utf8)[...])
        .prefix(32)
    ).base64EncodedString()
    let replacement = refreshToken.map { "\"refresh_token\":\(JSONText.string($0))," } ?? ""
    return .json(
      "{\"access_token\":\(JSONText.string(tokens.issue(at: now)))," + replacement
        + "\"signature\":\"\(signature)\",\"scope\":\"api\","
        + "\"instance_url\":\(JSONText.string(url)),\"id\":\(JSONText.string(identity)),"
        + "\"token_type\":\"Bearer\",\"issued_at\":\"\(issuedAt)\"}", date: now)
  }

  private func refuse(_ error: String, _ description: String, at now: Int64) -> HTTPResponse {
    self.server.tokens.refused()
    return .json(
      "{\"error\":\"\(error)\",\"error_description\":\"\(description)\"}", status: 400,
      date: now)
  }

  /// A fault for `Login`: the status is that of HTTP; 5xx come as pages of HTML, as in maintenance.
  private static func failure(_ fault: Fault, at now: Int64) -> HTTPResponse {
    guard case .status(let status, let code, let message) = fault.action else {
      return .text("<html><body>Down for Maintenance</body></html>", status: 503)
    }
    if status >= 500 { return .text("<html><body>\(message)</body></html>", status: status) }
    return .json(
      "{\"error\":\(JSONText.string(code ?? "invalid_grant")),"
        + "\"error_description\":\(JSONText.string(message))}", status: status, date: now)
  }

  private func userInfo(_ authorization: String?, at now: Int64) -> HTTPResponse {
    let tokens = self.server.tokens
    guard let authorization, authorization.hasPrefix("Bearer ") else {
      return .text("Missing_OAuth_Token", status: 403)
    }
    guard tokens.isValid(String(authorization.dropFirst(7)), at: now) else {
      return .text("Bad_OAuth_Token", status: 403)
    }
    let url = self.instanceURL()
    return .json(
      "{\"sub\":\"\(url)/id/\(tokens.organizationID)/\(tokens.userID)\","
        + "\"user_id\":\"\(tokens.userID)\",\"organization_id\":\"\(tokens.organizationID)\","
        + "\"preferred_username\":\(JSONText.string(self.server.configuration.org.username)),"
        + "\"name\":\"Integration User\",\"email\":\"integration@example.com\"}", date: now)
  }

  /// The fields of an `application/x-www-form-urlencoded` body.
  static func form(_ body: Data) -> [String: String] {
    var fields: [String: String] = [:]
    for pair in String(decoding: body, as: UTF8.self).split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.replacing("+", with: " ").removingPercentEncoding ?? "" }
      fields[parts[0]] = parts.count > 1 ? parts[1] : ""
    }
    return fields
  }

  /// The app's ID and secret, from the form or from HTTP Basic.
  private static func client(
    _ form: [String: String], _ authorization: String?
  ) -> (id: String?, secret: String?) {
    if form["client_id"] == nil, let basic = Self.basicCredentials(authorization) { return basic }
    return (form["client_id"], form["client_secret"])
  }

  private static func basicCredentials(_ header: String?) -> (String, String)? {
    guard let header, header.hasPrefix("Basic "),
      let data = Data(base64Encoded: String(header.dropFirst(6))),
      let parts = String(data: data, encoding: .utf8)?.split(
        separator: ":", maxSplits: 1, omittingEmptySubsequences: false), parts.count == 2
    else { return nil }
    return (String(parts[0]), String(parts[1]))
  }
}
