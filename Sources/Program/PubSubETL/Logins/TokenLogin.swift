import HTTPClient
import JSON
import SalesforceAuth

/// A token that somebody else obtains and renews.
struct TokenLogin: Login {
  static let type = "token"
  static let schemaDescription = "A token that is obtained and renewed elsewhere."

  var instanceURL = ServiceAddress.unset
  private(set) var value = Secret("")
  /// Absolute path; replaces the value.
  private(set) var file: String?

  var server: ServiceAddress? { self.instanceURL }
  var summary: String {
    "token\(self.file.map { " in \($0)" } ?? "") for \(self.instanceURL.url)"
  }

  func flow(_ context: LoginContext) -> any AccessTokenFlow {
    StaticTokenFlow(
      token: { try self.file.map { try Self.token(inFile: $0) } ?? self.value.value },
      instanceURL: self.instanceURL.url, organizationID: context.organizationID)
  }

  private static func token(inFile path: String) throws(AuthError) -> String {
    do {
      let text = String(decoding: try TextFile.read(path), as: UTF8.self)
      return String(text.prefix { !$0.isWhitespace })
    } catch {
      throw AuthError(
        error.isTemporary ? .exhausted : .configuration, "the access_token file \(path) \(error)")
    }
  }

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
    self.checkOne(reader, of: "access_token", or: "access_token_file")
  }
}
