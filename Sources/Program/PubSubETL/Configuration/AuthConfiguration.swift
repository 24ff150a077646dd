import Cryptography
import HTTPClient
import JSON
import SalesforceAuth

/// How an access token is obtained (Logins.md).
enum AuthConfiguration: Sendable {
  /// The org's My Domain, and an app with a run-as user.
  case clientCredentials(ClientCredentialsLogin)
  /// An app that knows the certificate of a key.
  case jwtBearer(JWTBearerLogin)
  /// An app that a user has authorized.
  case refreshToken(RefreshTokenLogin)
  /// An org that the Salesforce CLI knows.
  case salesforceCLI(SalesforceCLILogin)
  /// A token that somebody else obtains and renews.
  case token(TokenLogin)

  /// The kinds that `auth` can have. To add one, add its line.
  fileprivate static var logins: [any Login.Type] {
    [
      ClientCredentialsLogin.self, JWTBearerLogin.self, RefreshTokenLogin.self,
      SalesforceCLILogin.self, TokenLogin.self,
    ]
  }

  /// The host that HTTP requests go to; nil when only the login tells.
  var server: ServiceAddress? {
    switch self {
    case .clientCredentials(let login): login.loginURL
    case .jwtBearer(let login): login.loginURL
    case .refreshToken(let login): login.loginURL
    case .salesforceCLI: nil
    case .token(let login): login.instanceURL
    }
  }

  enum TokenSource: Sendable, Equatable {
    case value(Secret)
    /// Absolute path; read again when the service refuses the token.
    case file(String)
  }
}

/// The member `auth` of an org, as one of its kinds means it.
protocol Login: KeyedObject, Sendable {
  /// The value of `type` in the file.
  static var type: String { get }
  /// What is logged in with, in a sentence.
  static var schemaDescription: String { get }
  var auth: AuthConfiguration { get }
}

extension Login {
  fileprivate static var allKeys: [Key<Self>] {
    [.type(Self.type, called: "login", Self.schemaDescription)] + Self.keys
  }

  fileprivate static var allDeclarations: [KeyDeclaration] { Self.allKeys.declarations() }

  fileprivate static func read(_ reader: JSONReader) -> AuthConfiguration? {
    reader.read(Self.allKeys)?.auth
  }
}

extension Kind<AuthConfiguration> {
  static var login: Self {
    let types = AuthConfiguration.logins
    return Self(
      .oneOf(types.map { .object($0.allDeclarations) }), objects: types.map { $0.allDeclarations },
      example: { _ in
        [
          "type": "client_credentials", "login_url": "https://acme.my.salesforce.com",
          "client_id": "${SF_CLIENT_ID}", "client_secret": "${SF_CLIENT_SECRET}",
        ]
      },
      read: { reader, name, isRequired in
        guard let object = reader.object(name, required: isRequired),
          let word = object.string("type", required: true)
        else { return nil }
        guard let type = types.first(where: { $0.type == word }) else {
          object.reportUnknown("type", word, called: "login", known: types.map { $0.type })
          return nil
        }
        return type.read(object)
      })
  }
}

extension Kind<ServiceAddress> {
  fileprivate static var loginURL: Self {
    .address { reader, text in
      // Whoever sets the audience logs in a user of the site.
      if SalesforceHost.isSite(text), reader.has("audience") { return nil }
      return SalesforceHost.loginAdvice(for: text)
    }
  }
}

extension Key where Object: Login {
  fileprivate static func loginURL(
    _ property: WritableKeyPath<Object, ServiceAddress>, _ description: String
  ) -> Self {
    .required(
      "login_url", property, .loginURL, description, example: "https://acme.my.salesforce.com",
      secrecy: .address)
  }

  fileprivate static func clientID(_ property: WritableKeyPath<Object, String>) -> Self {
    .required(
      "client_id", property, .text, "Consumer key of the app.", example: "${SF_CLIENT_ID}")
  }
}

struct ClientCredentialsLogin: Login {
  static let type = "client_credentials"
  static let schemaDescription = "An app of the org with a run-as user."

  var loginURL = ServiceAddress.unset
  /// Consumer key of the app.
  var clientID = ""
  var clientSecret = Secret("")

  var auth: AuthConfiguration { .clientCredentials(self) }

  static var keys: [Key<Self>] {
    [
      .loginURL(\.loginURL, "URL of the org's My Domain."), .clientID(\.clientID),
      .required(
        "client_secret", \.clientSecret, .secret, "Consumer secret of the app.",
        example: "${SF_CLIENT_SECRET}", secrecy: .secret),
    ]
  }

  func check(_ reader: JSONReader) {
    // ServiceLogins.md#refusals: these hosts answer `invalid_grant`.
    guard ["login.salesforce.com", "test.salesforce.com"].contains(self.loginURL.host) else {
      return
    }
    reader.report(
      "login_url",
      "client credentials work only with the org's My Domain URL: "
        + "https://<name>.my.salesforce.com")
  }
}

struct JWTBearerLogin: Login {
  static let type = "jwt_bearer"
  static let schemaDescription = "An app that knows the certificate of a private key."

  var loginURL = ServiceAddress.unset
  /// Consumer key of the app.
  var clientID = ""
  var username = ""
  private var claim: String?
  private var fileKey: RSASigningKey?
  private var textKey: RSASigningKey?

  /// The claim `aud`, by the host if the file does not say.
  var audience: String {
    self.claim ?? JWTAudience.audience(loginURL: self.loginURL.url, host: self.loginURL.host)
  }

  /// Nil only if that has been reported.
  var key: RSASigningKey? { self.fileKey ?? self.textKey }

  var auth: AuthConfiguration { .jwtBearer(self) }

  static var keys: [Key<Self>] {
    [
      .loginURL(\.loginURL, "URL of the org's My Domain, or of the login host."),
      .clientID(\.clientID),
      .required(
        "username", \.username, .text, "Username of the user to log in as.",
        example: "etl@example.com"),
      .key(
        "private_key_file", \.fileKey, .keyFile,
        "PEM file of the RSA key, PKCS#1 or PKCS#8, without passphrase; or private_key.",
        example: "salesforce.pem"),
      .key(
        "private_key", \.textKey, .keyText, "The key itself, from a variable.",
        example: "${SF_PRIVATE_KEY}", secrecy: .secret),
      .key(
        "audience", \.claim, .audience,
        "By default https://login.salesforce.com or, for sandboxes, https://test.salesforce.com; for "
          + "other hosts login_url.", example: "https://test.salesforce.com"),
    ]
  }

  func check(_ reader: JSONReader) {
    if reader.has("private_key") == reader.has("private_key_file") {
      reader.report("private_key_file", "either private_key_file or private_key is required")
    }
  }
}

extension Kind<String> {
  /// A claim, and no address: it is sent to nobody as such.
  fileprivate static var audience: Self {
    Self.text.checked { text in
      guard text.hasPrefix("https://") || text.hasPrefix("http://"),
        text.utf8.count <= 1024, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
      else {
        return "expected a URL such as \(JWTAudience.production) or \(JWTAudience.sandbox)"
      }
      return nil
    }
  }
}

extension Kind<RSASigningKey> {
  fileprivate static var keyFile: Self {
    Kind<String>.secretFile.map { reader, name, file in
      reader.configuration.content(reader, name, ofFile: file).flatMap {
        Self.key(reader, name, called: "the file \(file)", $0, file: file)
      }
    }
  }

  fileprivate static var keyText: Self {
    Kind<String>.text.map { reader, name, text in
      // In variables of build servers, line ends often arrive as the two characters \\n.
      let pem = text.contains("\n") ? text : text.replacing("\\n", with: "\n")
      return Self.key(reader, name, called: "the key", Array(pem.utf8), file: nil)
    }
  }

  private static func key(
    _ reader: JSONReader, _ name: String, called noun: String, _ pem: [UInt8], file: String?
  ) -> RSASigningKey? {
    // A message of a service or library could quote a line; the first and last are those of PEM.
    for line in pem.split(separator: 0x0A) where line.count > 16 && line[line.startIndex] != 0x2D {
      reader.configuration.secrets.add(String(decoding: line, as: UTF8.self))
    }
    do throws(SigningKeyError) {
      return try RSASigningKey(pem: pem, file: file)
    } catch {
      reader.report(name, "\(noun) \(error.message)")
      return nil
    }
  }
}

struct RefreshTokenLogin: Login {
  static let type = "refresh_token"
  static let schemaDescription = "An app that a user has authorized once."

  var loginURL = ServiceAddress.unset
  /// Consumer key of the app.
  var clientID = ""
  private var secret = ""
  private var file: String?
  private var value = Secret("")

  /// Nil for apps that do not require it. Empty means unset, so that a variable with a default can be
  /// used in every pipeline.
  var clientSecret: Secret? { self.secret.isEmpty ? nil : Secret(self.secret) }

  /// A file is replaced when the service replaces the token.
  var token: AuthConfiguration.TokenSource { self.file.map { .file($0) } ?? .value(self.value) }

  var auth: AuthConfiguration { .refreshToken(self) }

  static var keys: [Key<Self>] {
    [
      .loginURL(\.loginURL, "URL of the host where the token was issued."), .clientID(\.clientID),
      .key(
        "client_secret", \.secret, .string(), "Consumer secret, if the app requires it.",
        default: "", example: "${SF_CLIENT_SECRET:-}", secrecy: .secret),
      .key(
        "refresh_token_file", \.file, .secretFile,
        "File with the token, replaced when the service replaces the token; or refresh_token.",
        example: "/var/lib/pubsub-etl/refresh-token"),
      .key(
        "refresh_token", \.value, .secret, "The token, for apps that do not replace it.",
        example: "${SF_REFRESH_TOKEN}", secrecy: .secret),
    ]
  }

  func check(_ reader: JSONReader) {
    if reader.has("refresh_token") == reader.has("refresh_token_file") {
      reader.report("refresh_token_file", "either refresh_token_file or refresh_token is required")
    }
    if let file, !FilePath.isReadable(file) {
      reader.report("refresh_token_file", FilePath.unreadable(file))
    }
  }
}

struct SalesforceCLILogin: Login {
  static let type = "sf_cli"
  static let schemaDescription = "An org that the Salesforce CLI is logged in to."

  var program = "sf"
  var targetOrg = ""

  var auth: AuthConfiguration { .salesforceCLI(self) }

  static var keys: [Key<Self>] {
    [
      .required(
        "target_org", \.targetOrg,
        .text.checked {
          SalesforceCLIFlow.isTargetOrg($0)
            ? nil
            : "expected an alias or username of the Salesforce CLI: no blanks, not beginning with '-'"
        }, "Alias or username, as the CLI knows it.", example: "my-sandbox"),
      .key(
        "program", \.program,
        // A bare name is looked up in PATH; anything else is a path like all others.
        .text.map(write: { .string($0) }) { reader, name, text in
          text.utf8.contains(UInt8(ascii: "/")) ? Kind<String>.path.read(reader, name, false) : text
        }, "Name or path of the program.", example: "/opt/sf/bin/sf"),
    ]
  }
}

struct TokenLogin: Login {
  static let type = "token"
  static let schemaDescription = "A token that is obtained and renewed elsewhere."

  var instanceURL = ServiceAddress.unset
  private var value = Secret("")
  private var file: String?

  var source: AuthConfiguration.TokenSource { self.file.map { .file($0) } ?? .value(self.value) }

  var auth: AuthConfiguration { .token(self) }

  static var keys: [Key<Self>] {
    [
      .required(
        "instance_url", \.instanceURL, .address { SalesforceHost.instanceAdvice(for: $1) },
        "URL of the org.", example: "https://acme.my.salesforce.com",
        secrecy: .address),
      .key(
        "access_token", \.value, .secret, "The token; or access_token_file.",
        example: "${SF_ACCESS_TOKEN}", secrecy: .secret),
      .key(
        "access_token_file", \.file, .secretFile,
        "File with the token, read again when the service refuses it.",
        example: "/run/secrets/access-token"),
    ]
  }

  func check(_ reader: JSONReader) {
    if reader.has("access_token") == reader.has("access_token_file") {
      reader.report("access_token", "either access_token or access_token_file is required")
    }
  }
}
