import Cryptography
import HTTPClient

/// How an access token is obtained (Logins.md).
enum AuthConfiguration: Sendable {
  /// The org's My Domain, and an app with a run-as user.
  case clientCredentials(loginURL: ServiceAddress, clientID: String, clientSecret: Secret)
  /// An app that knows the certificate of a key.
  case jwtBearer(JWTBearerConfiguration)
  /// An app that a user has authorized.
  case refreshToken(RefreshTokenConfiguration)
  /// An org that the Salesforce CLI knows.
  case salesforceCLI(program: String, targetOrg: String)
  /// A token that somebody else obtains and renews.
  case token(TokenSource, instanceURL: ServiceAddress)

  /// The host that HTTP requests go to; nil when only the login tells.
  var server: ServiceAddress? {
    switch self {
    case .clientCredentials(let loginURL, _, _): loginURL
    case .jwtBearer(let login): login.loginURL
    case .refreshToken(let login): login.loginURL
    case .salesforceCLI: nil
    case .token(_, let instanceURL): instanceURL
    }
  }

  enum TokenSource: Sendable, Equatable {
    case value(Secret)
    /// Absolute path; read again when the service refuses the token.
    case file(String)
  }
}

struct JWTBearerConfiguration: Sendable {
  var loginURL: ServiceAddress
  /// Consumer key of the app.
  var clientID: String
  var username: String
  /// The claim `aud`, by the host if the file does not say.
  var audience: String
  var key: RSASigningKey
}

struct RefreshTokenConfiguration: Sendable {
  var loginURL: ServiceAddress
  /// Consumer key of the app.
  var clientID: String
  /// Nil for apps that do not require it.
  var clientSecret: Secret?
  /// A file is replaced when the service replaces the token.
  var token: AuthConfiguration.TokenSource
}
