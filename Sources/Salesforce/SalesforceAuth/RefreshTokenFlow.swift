internal import EventLoop
package import HTTPClient

/// OAuth 2.0 refresh token (RFC 6749 section 6): a user has authorized the app once, and the token
/// from that time gives access tokens.
///
/// An app may replace the refresh token with every use. No login is attempted unless there is room
/// for a new one. It is durable in its file before the access token that came with it is used; if it
/// cannot be stored, it is kept in memory, and storing is tried again before anything else.
package struct RefreshTokenFlow: AccessTokenFlow {
  /// The app, and where it is known.
  package struct App: Sendable {
    /// Origin of the login host.
    package var loginURL: String
    package var clientID: String
    /// Nil for apps that do not require it.
    package var clientSecret: String?

    package init(loginURL: String, clientID: String, clientSecret: String?) {
      self.loginURL = loginURL
      self.clientID = clientID
      self.clientSecret = clientSecret
    }
  }

  package enum Source: Sendable {
    case value(String)
    case file(RefreshTokenFile)
  }

  private let app: App
  private let source: Source
  private let endpoint: TokenEndpoint
  private let onToken: @Sendable (String) -> Void
  private let onNotice: @Sendable (String) -> Void
  /// A token that the service has given, and that no file holds.
  private let unstored = Lock<String?>(nil)

  /// - Parameters:
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  ///   - onToken: learns every refresh token, to keep it out of outputs.
  ///   - onNotice: receives, in a sentence, what the user should correct though the login worked.
  package init(
    _ app: App, source: Source, organizationID: String?, client: HTTPClient,
    onToken: @escaping @Sendable (String) -> Void = { _ in },
    onNotice: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.app = app
    self.source = source
    self.endpoint = TokenEndpoint(
      loginURL: app.loginURL, grant: .refreshToken, organizationID: organizationID,
      client: client)
    self.onToken = onToken
    self.onNotice = onNotice
  }

  package var replacesSecrets: Bool { true }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    switch self.source {
    case .value(let token):
      let used = self.unstored.withLock { $0 } ?? token
      let reply = try await self.refresh(used)
      if let new = reply.refreshToken, new != used {
        self.unstored.withLock { $0 = new }
        self.onNotice(
          "the login service has replaced the refresh token, but this program cannot change "
            + "refresh_token, so the next run's login will be refused; authorize the app again, "
            + "store the token in a file, and name it with refresh_token_file")
      }
      return (try self.endpoint.token(reply.result.get()), reply.date)
    case .file(let file):
      return try await file.locked {
        let reply = try await PostponedSignals.during {
          try self.storeLate(in: file)
          let used = try file.read()
          let reservation = try file.reserve()
          defer { if reservation != nil { file.release() } }
          let reply = try await self.refresh(used)
          // Before the rest of the response is looked at: without the new token nobody can log in again.
          if let new = reply.refreshToken, new != used {
            self.unstored.withLock { $0 = new }
            try self.storeLate(in: file, reservation)
          }
          return reply
        }
        return (try self.endpoint.token(reply.result.get()), reply.date)
      }
    }
  }

  /// Stores what an earlier login could not.
  private func storeLate(
    in file: RefreshTokenFile, _ reservation: RefreshTokenFile.Reservation? = nil
  ) throws(AuthError) {
    guard let token = self.unstored.withLock({ $0 }) else { return }
    do throws(AuthError) {
      try file.write(token, to: reservation)
    } catch {
      // Not definite: the disk may have room in a moment, and ending now would lose the token.
      throw AuthError(
        .unavailable,
        "\(error.message). The service has replaced the refresh token; the new one is kept in "
          + "memory and lost when this run ends, so correct this at once")
    }
    self.unstored.withLock { $0 = nil }
  }

  private func refresh(_ token: String) async throws -> TokenEndpoint.Reply {
    self.onToken(token)
    var fields = [
      (name: "grant_type", value: "refresh_token"), ("client_id", self.app.clientID),
      ("refresh_token", token),
    ]
    if let secret = self.app.clientSecret { fields.append(("client_secret", secret)) }
    let reply = try await self.endpoint.ask(
      fields, secrets: [token] + (self.app.clientSecret.map { [$0] } ?? []))
    if let new = reply.refreshToken {
      guard AccessToken.isUsable(new) else {
        throw AuthError(
          .unavailable,
          "the login returned an unusable refresh token (it is empty, longer than 16 KiB or not "
            + "printable ASCII)")
      }
      self.onToken(new)
    }
    return reply
  }
}

extension RefreshTokenFlow: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package var description: String { "refresh token (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
