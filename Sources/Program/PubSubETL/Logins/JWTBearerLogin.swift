import Cryptography
import HTTPClient
import JSON
import SalesforceAuth

/// An app that knows the certificate of a key.
struct JWTBearerLogin: Login {
  static let type = "jwt_bearer"
  static let schemaDescription = "An app that knows the certificate of a private key."

  var loginURL = ServiceAddress.unset
  var clientID = ""
  var username = ""
  private var claim: String?
  /// Nil only if that has been reported.
  private(set) var key: RSASigningKey?

  /// The claim `aud`, according to the host unless the file has it.
  var audience: String {
    self.claim ?? JWTAudience.audience(loginURL: self.loginURL.url, host: self.loginURL.host)
  }

  var server: ServiceAddress? { self.loginURL }
  var summary: String {
    "JWT bearer as \(self.username) at \(self.loginURL.url), audience \(self.audience)"
  }
  var app: OrgMetadata.App? { .jwtBearer }

  func flow(_ context: LoginContext) -> any AccessTokenFlow {
    guard let key else {
      preconditionFailure("a login without a key is reported when the file is loaded")
    }
    return JWTBearerFlow(
      JWTBearerFlow.Identity(
        loginURL: self.loginURL.url, clientID: self.clientID, username: self.username,
        audience: self.audience),
      key: key, organizationID: context.organizationID, client: context.client,
      onNotice: context.onNotice)
  }

  static var keys: [Key<Self>] {
    [
      .loginURL(\.loginURL, "URL of the org's My Domain, or of the login host."),
      .clientID(\.clientID),
      .required(
        "username", \.username, .text, "Username of the user to log in as.",
        example: "etl@example.com"),
      .key(
        "private_key_file", \.key, .keyFile,
        "PEM file of the RSA key, PKCS#1 or PKCS#8, without passphrase; or private_key.",
        example: "salesforce.pem"),
      .key(
        "private_key", \.key, .keyText, "The key itself, from a variable.",
        example: "${SF_PRIVATE_KEY}", secrecy: .secret),
      .key(
        "audience", \.claim, .audience,
        "By default https://login.salesforce.com or, for sandboxes, https://test.salesforce.com; for "
          + "other hosts login_url.", example: "https://test.salesforce.com"),
    ]
  }

  func check(_ reader: JSONReader) {
    self.checkOne(reader, of: "private_key_file", or: "private_key")
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
