import HTTPClient
import JSON
import SalesforceAuth

/// An app that a user has authorized.
struct RefreshTokenLogin: Login {
  static let type = "refresh_token"
  static let schemaDescription = "An app that a user has authorized once."

  var loginURL = ServiceAddress.unset
  var clientID = ""
  private var secret = Secret("")
  private var file: String?
  private var value = Secret("")

  /// Nil for apps that do not require it. Empty means unset, so that a variable with a default can be
  /// used in every pipeline.
  var clientSecret: Secret? { self.secret.value.isEmpty ? nil : self.secret }

  var server: ServiceAddress? { self.loginURL }
  var summary: String {
    "refresh token\(self.file.map { " in \($0)" } ?? "") at \(self.loginURL.url)"
  }
  var app: OrgMetadata.App? { .refreshToken }

  func localWarnings() -> [String] {
    guard let file,
      let reason = LocalCheck.obstacle(to: FilePath.directory(of: FilePath.real(file) ?? file))
    else { return [] }
    return [
      "attention: if the login service replaces the refresh token, the new one cannot be stored "
        + "in \(file): \(reason)"
    ]
  }

  func flow(_ context: LoginContext) -> any AccessTokenFlow {
    RefreshTokenFlow(
      RefreshTokenFlow.App(
        loginURL: self.loginURL.url, clientID: self.clientID,
        clientSecret: self.clientSecret?.value),
      source: self.file.map { .file(RefreshTokenFile($0, clock: context.client.clock)) }
        ?? .value(self.value.value),
      organizationID: context.organizationID, client: context.client,
      onToken: { context.secrets.add($0) }, onNotice: context.onNotice)
  }

  static var keys: [Key<Self>] {
    [
      .loginURL(\.loginURL, "URL of the host where the token was issued."), .clientID(\.clientID),
      .key(
        "client_secret", \.secret, Kind<String>.string().map { Secret($2) },
        "Consumer secret, if the app requires it.",
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
    self.checkOne(reader, of: "refresh_token_file", or: "refresh_token")
    if let file, !FilePath.isReadable(file) {
      reader.report("refresh_token_file", FilePath.unreadable(file))
    }
  }
}
