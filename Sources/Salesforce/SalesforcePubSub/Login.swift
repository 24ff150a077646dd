internal import Cryptography
internal import EventLoop
internal import HTTPClient
public import PubSubAPI
internal import SalesforceAuth

/// How a client obtains its access tokens. Prints without secrets.
///
/// A token is obtained with the first call, shared by all calls, and replaced when the service refuses
/// it. After three refused logins in a row no more are attempted, since Salesforce locks users out.
public struct Login: Sendable {
  enum Method: Sendable {
    case clientCredentials(url: String, clientID: String, clientSecret: String)
    case jwtBearer(
      url: String, clientID: String, username: String, privateKey: [UInt8], audience: String?)
    case refreshToken(url: String, clientID: String, clientSecret: String?, token: String)
    case refreshTokenFile(url: String, clientID: String, clientSecret: String?, path: String)
    case accessToken(@Sendable () throws -> String, instanceURL: String)
    case credentials(any CredentialsSource)
  }

  let method: Method

  /// OAuth 2.0 client credentials (RFC 6749 section 4.4).
  ///
  /// - Parameters:
  ///   - loginURL: My Domain of the org, such as `https://acme.my.salesforce.com`.
  ///   - clientID: consumer key of the app.
  ///   - clientSecret: consumer secret of the app.
  public static func clientCredentials(
    loginURL: String, clientID: String, clientSecret: String
  ) -> Login {
    Login(
      method: .clientCredentials(url: loginURL, clientID: clientID, clientSecret: clientSecret))
  }

  /// OAuth 2.0 JWT bearer (RFC 7523): each login is an assertion signed with the app's key.
  ///
  /// - Parameters:
  ///   - loginURL: `https://login.salesforce.com`, `https://test.salesforce.com` or a My Domain.
  ///   - clientID: consumer key of the app.
  ///   - username: the user to log in as.
  ///   - privateKey: RSA key of 2,048 to 8,192 bits as PEM text (PKCS#1 or PKCS#8), unencrypted.
  ///   - audience: nil to derive it from the kind of org.
  public static func jwtBearer(
    loginURL: String, clientID: String, username: String, privateKey: [UInt8],
    audience: String? = nil
  ) -> Login {
    Login(
      method: .jwtBearer(
        url: loginURL, clientID: clientID, username: username, privateKey: privateKey,
        audience: audience))
  }

  /// OAuth 2.0 refresh token (RFC 6749 section 6), for apps that do not replace it with each use.
  ///
  /// - Parameters:
  ///   - loginURL: origin of the login host.
  ///   - clientID: consumer key of the app.
  ///   - clientSecret: nil for apps that do not require it.
  ///   - token: the refresh token.
  public static func refreshToken(
    loginURL: String, clientID: String, clientSecret: String? = nil, token: String
  ) -> Login {
    Login(
      method: .refreshToken(
        url: loginURL, clientID: clientID, clientSecret: clientSecret, token: token))
  }

  /// As `refreshToken(loginURL:clientID:clientSecret:token:)`, for apps that replace the token with
  /// each use: the new one is durable in the file before it is needed. Several processes may share
  /// the file.
  ///
  /// - Parameters:
  ///   - loginURL: origin of the login host.
  ///   - clientID: consumer key of the app.
  ///   - clientSecret: nil for apps that do not require it.
  ///   - file: path of a file that holds the refresh token alone.
  public static func refreshToken(
    loginURL: String, clientID: String, clientSecret: String? = nil, file: String
  ) -> Login {
    Login(
      method: .refreshTokenFile(
        url: loginURL, clientID: clientID, clientSecret: clientSecret, path: file))
  }

  /// An access token that somebody else obtains and renews.
  ///
  /// - Parameters:
  ///   - token: read again when the service refuses the last one. What it throws ends the call.
  ///   - instanceURL: origin of the org, such as `https://acme.my.salesforce.com`.
  public static func accessToken(
    _ token: @escaping @Sendable () throws -> String, instanceURL: String
  ) -> Login {
    Login(method: .accessToken(token, instanceURL: instanceURL))
  }

  /// One access token, which is not renewed.
  ///
  /// - Parameters:
  ///   - token: such as `sf org display --json` shows.
  ///   - instanceURL: origin of the org, such as `https://acme.my.salesforce.com`.
  public static func accessToken(_ token: String, instanceURL: String) -> Login {
    .accessToken({ token }, instanceURL: instanceURL)
  }

  /// A login of the caller's own.
  ///
  /// - Parameter source: asked before each call; shared by all of them.
  public static func credentials(_ source: any CredentialsSource) -> Login {
    Login(method: .credentials(source))
  }
}

extension Login: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    switch self.method {
    case .clientCredentials: "client credentials (redacted)"
    case .jwtBearer: "JWT bearer (redacted)"
    case .refreshToken, .refreshTokenFile: "refresh token (redacted)"
    case .accessToken: "access token (redacted)"
    case .credentials: "credentials (redacted)"
    }
  }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Login {
  /// What makes the login: the provider of tokens, or the caller's own source.
  enum Source: Sendable {
    case provider(AccessTokenProvider)
    case other(any CredentialsSource)

    var credentials: any CredentialsSource {
      switch self {
      case .provider(let provider): LoginCredentials(provider)
      case .other(let source): source
      }
    }
  }

  /// - Parameters:
  ///   - organizationID: 15 or 18 characters; nil to take it from the login's answer.
  ///   - onNotice: receives what the user should correct though a login worked.
  func source(
    _ client: HTTPClient, organizationID: String?, onNotice: @escaping @Sendable (String) -> Void
  ) throws(ConfigurationError) -> Source {
    func provider(_ flow: some AccessTokenFlow) -> Source {
      .provider(AccessTokenProvider(SameOrgFlow(flow)))
    }
    switch self.method {
    case .clientCredentials(let url, let clientID, let clientSecret):
      return provider(
        ClientCredentialsFlow(
          loginURL: try ConfigurationError.loginAddress(url).url, clientID: clientID,
          clientSecret: clientSecret, organizationID: organizationID, client: client))
    case .jwtBearer(let url, let clientID, let username, let privateKey, let audience):
      let address = try ConfigurationError.loginAddress(url, audience: audience)
      let key: RSASigningKey
      do throws(SigningKeyError) {
        key = try RSASigningKey(pem: privateKey, file: nil)
      } catch {
        throw ConfigurationError("privateKey \(error)")
      }
      return provider(
        JWTBearerFlow(
          JWTBearerFlow.Identity(
            loginURL: address.url, clientID: clientID, username: username,
            audience: audience
              ?? JWTAudience.audience(loginURL: address.url, host: address.host)),
          key: key, organizationID: organizationID, client: client, onNotice: onNotice))
    case .refreshToken(let url, let clientID, let clientSecret, let token):
      return provider(
        RefreshTokenFlow(
          RefreshTokenFlow.App(
            loginURL: try ConfigurationError.loginAddress(url).url, clientID: clientID,
            clientSecret: clientSecret),
          source: .value(token), organizationID: organizationID, client: client,
          onNotice: onNotice))
    case .refreshTokenFile(let url, let clientID, let clientSecret, let path):
      return provider(
        RefreshTokenFlow(
          RefreshTokenFlow.App(
            loginURL: try ConfigurationError.loginAddress(url).url, clientID: clientID,
            clientSecret: clientSecret),
          source: .file(RefreshTokenFile(path)), organizationID: organizationID, client: client,
          onNotice: onNotice))
    case .accessToken(let token, let instanceURL):
      return provider(
        StaticTokenFlow(
          token: token,
          instanceURL: try ConfigurationError.address(instanceURL, "instanceURL").url,
          organizationID: organizationID))
    case .credentials(let source): return .other(source)
    }
  }
}
