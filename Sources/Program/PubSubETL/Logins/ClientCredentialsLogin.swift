import HTTPClient
import JSON
import SalesforceAuth

/// The org's My Domain, and an app with a run-as user.
struct ClientCredentialsLogin: Login {
  static let type = "client_credentials"
  static let schemaDescription = "An app of the org with a run-as user."

  var loginURL = ServiceAddress.unset
  var clientID = ""
  var clientSecret = Secret("")

  var server: ServiceAddress? { self.loginURL }
  var summary: String { "client credentials at \(self.loginURL.url)" }
  var app: OrgMetadata.App? { .clientCredentials }

  func flow(_ context: LoginContext) -> any AccessTokenFlow {
    ClientCredentialsFlow(
      loginURL: self.loginURL.url, clientID: self.clientID, clientSecret: self.clientSecret.value,
      organizationID: context.organizationID, client: context.client)
  }

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
