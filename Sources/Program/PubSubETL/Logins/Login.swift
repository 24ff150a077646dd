import HTTPClient
import JSON
import SalesforceAuth

/// The member `auth` of an org, as one kind of login means it (Logins.md); a conforming type is
/// everything that the program knows of one kind. Its `keys` are those but `type`.
protocol Login: KeyedObject, Sendable {
  /// The value of `type` in the file.
  static var type: String { get }

  /// A sentence that says what logs in.
  static var schemaDescription: String { get }

  /// The host that HTTP requests go to; nil if it is unknown before the login.
  var server: ServiceAddress? { get }

  /// A description of the login for `check`.
  var summary: String { get }

  /// The app of the org that it needs; nil for none.
  var app: OrgMetadata.App? { get }

  /// Problems on this machine that do not stop a run, a sentence each.
  func localWarnings() -> [String]

  /// Obtains tokens.
  func flow(_ context: LoginContext) -> any AccessTokenFlow
}

/// What a flow has of its org and program.
struct LoginContext {
  /// 15 or 18 characters; nil to take it from the login.
  var organizationID: String?
  var client: HTTPClient
  /// Receives every secret that the login obtains.
  var secrets: SecretMask
  /// Receives what the user should correct although the login worked.
  var onNotice: @Sendable (String) -> Void
}

extension Login {
  var app: OrgMetadata.App? { nil }
  func localWarnings() -> [String] { [] }

  private static var allKeys: [Key<Self>] {
    [.type(Self.type, called: "login", Self.schemaDescription)] + Self.keys
  }

  static var allDeclarations: [KeyDeclaration] { Self.allKeys.map(\.declaration) }

  static func read(_ reader: JSONReader) -> Self? { reader.read(Self.allKeys) }

  /// Reports that of two keys for the same secret, none or both are set.
  func checkOne(_ reader: JSONReader, of name: String, or other: String) {
    guard reader.has(name) == reader.has(other) else { return }
    reader.report(name, "either \(name) or \(other) is required")
  }
}

extension Key where Object: Login {
  static func loginURL(
    _ property: WritableKeyPath<Object, ServiceAddress>, _ description: String
  ) -> Self {
    let kind = Kind<ServiceAddress>.address { reader, text in
      // Whoever sets the audience logs in a user of the site.
      if SalesforceHost.isSite(text), reader.has("audience") { return nil }
      return SalesforceHost.loginAdvice(for: text)
    }
    return .required(
      "login_url", property, kind, description, example: "https://acme.my.salesforce.com",
      secrecy: .address)
  }

  static func clientID(_ property: WritableKeyPath<Object, String>) -> Self {
    .required("client_id", property, .text, "Consumer key of the app.", example: "${SF_CLIENT_ID}")
  }
}
