internal import Clocks
package import Cryptography
internal import EventLoop
package import HTTPClient

/// OAuth 2.0 JWT bearer (RFC 7523): every login is a new assertion, signed with the key whose
/// certificate the app knows. The answer has no refresh token.
package struct JWTBearerFlow: AccessTokenFlow {
  /// Who logs in, and where.
  package struct Identity: Sendable {
    /// Origin of the login host.
    package var loginURL: String
    /// Consumer key of the app.
    package var clientID: String
    package var username: String
    /// The audience by `JWTAudience`, unless the configuration has one.
    package var audience: String

    package init(loginURL: String, clientID: String, username: String, audience: String) {
      self.loginURL = loginURL
      self.clientID = clientID
      self.username = username
      self.audience = audience
    }
  }

  /// Salesforce accepts three minutes at most; the rest is for clocks that are ahead of it.
  static let lifetime: Int64 = 120
  /// A clock that differs less explains no refusal.
  static let harmlessSkew: Int64 = 30

  private let identity: Identity
  private let key: RSASigningKey
  private let endpoint: TokenEndpoint
  private let now: @Sendable () -> Int64
  private let onNotice: @Sendable (String) -> Void
  /// Seconds to add to this machine's clock, learned from a refusal.
  private let correction = Lock<Int64>(0)

  /// - Parameters:
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  ///   - now: this machine's clock, in seconds since 1970; nil: the one of `client`.
  ///   - onNotice: receives, in a sentence, what the user should correct though the login worked.
  package init(
    _ identity: Identity, key: RSASigningKey, organizationID: String?, client: HTTPClient,
    now: (@Sendable () -> Int64)? = nil,
    onNotice: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.identity = identity
    self.key = key
    self.endpoint = TokenEndpoint(
      loginURL: identity.loginURL, grant: .jwtBearer, organizationID: organizationID,
      client: client)
    let clock = client.clock
    self.now = now ?? { clock.wallTime / 1000 }
    self.onNotice = onNotice
  }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    let used = self.correction.withLock { $0 }
    let reply = try await self.ask(correction: used)
    guard case .failure(var refusal) = reply.result, refusal.code == .refused
    else { return (try self.endpoint.token(reply.result.get()), reply.date) }
    guard let date = reply.date else {
      if refusal.concernsClock { refusal.message += "; check this machine's clock (timedatectl)" }
      throw refusal
    }
    let difference = date - self.now()
    guard abs(difference - used) > Self.harmlessSkew else {
      if refusal.concernsClock {
        refusal.message +=
          "; the login server's clock differs from the one used here by only \(abs(difference - used)) "
          + "s; look for what delays or repeats requests, such as a proxy"
      }
      throw refusal
    }
    // The clock may be the only reason, or one of several: the second response shows which.
    let second = try await self.ask(correction: difference)
    switch second.result {
    case .success(let answer):
      self.correction.withLock { $0 = difference }
      self.onNotice(
        "\(Self.explanation(difference)); the login worked with the server's time; synchronise this "
          + "machine's clock (timedatectl set-ntp true)")
      return (try self.endpoint.token(answer), second.date)
    case .failure(var error):
      if error.code == .refused {
        error.message +=
          "; also, \(Self.explanation(difference)): synchronise it (timedatectl set-ntp true)"
      }
      throw error
    }
  }

  private func ask(correction: Int64) async throws -> TokenEndpoint.Reply {
    let assertion = JWTAssertion(
      issuer: self.identity.clientID, subject: self.identity.username,
      audience: self.identity.audience, expiry: self.now() + correction + Self.lifetime
    ).signed(by: self.key)
    return try await self.endpoint.ask(
      [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", assertion),
      ], secrets: [assertion])
  }

  /// - Parameter difference: the server's clock less this machine's, in seconds.
  private static func explanation(_ difference: Int64) -> String {
    "this machine's clock is \(abs(difference)) s \(difference > 0 ? "behind" : "ahead of") the "
      + "login server's, and assertions are valid for minutes only"
  }
}

extension JWTBearerFlow: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "JWT bearer (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
