import JSON

extension PipelineSchema {
  static var clientCredentials: JSONSchema {
    .object([
      .required("type", .constant("client_credentials"), "An app of the org with a run-as user."),
      .required("login_url", .text(), "URL of the org's My Domain."),
      .required("client_id", .text(minLength: 1), "Consumer key of the app."),
      .required("client_secret", .text(minLength: 1), "Consumer secret of the app."),
    ])
  }

  static var jwtBearer: JSONSchema {
    .object([
      .required(
        "type", .constant("jwt_bearer"), "An app that knows the certificate of a private key."),
      .required("login_url", .text(), "URL of the org's My Domain, or of the login host."),
      .required("client_id", .text(minLength: 1), "Consumer key of the app."),
      .required("username", .text(minLength: 1), "Username of the user to log in as."),
      .optional(
        "private_key_file", .reference("path"),
        "PEM file of the RSA key, PKCS#1 or PKCS#8, without passphrase; or private_key."),
      .optional("private_key", .text(minLength: 1), "The key itself, from a variable."),
      .optional(
        "audience", .text(),
        "By default https://login.salesforce.com or, for sandboxes, https://test.salesforce.com; for "
          + "other hosts login_url."),
    ])
  }

  static var refreshToken: JSONSchema {
    .object([
      .required("type", .constant("refresh_token"), "An app that a user has authorized once."),
      .required("login_url", .text(), "URL of the host where the token was issued."),
      .required("client_id", .text(minLength: 1), "Consumer key of the app."),
      .optional("client_secret", .text(), "Consumer secret, if the app requires it."),
      .optional(
        "refresh_token_file", .reference("path"),
        "File with the token, replaced when the service replaces the token; or refresh_token."),
      .optional(
        "refresh_token", .text(minLength: 1),
        "The token, for apps that do not replace it."),
    ])
  }

  static var salesforceCLI: JSONSchema {
    .object([
      .required("type", .constant("sf_cli"), "An org that the Salesforce CLI is logged in to."),
      .required("target_org", .text(minLength: 1), "Alias or username, as the CLI knows it."),
      .optional(
        "program", .text(minLength: 1), "Name or path of the program.", default: "sf"),
    ])
  }

  static var token: JSONSchema {
    .object([
      .required("type", .constant("token"), "A token that is obtained and renewed elsewhere."),
      .required("instance_url", .text(), "URL of the org."),
      .optional("access_token", .text(minLength: 1), "The token; or access_token_file."),
      .optional(
        "access_token_file", .reference("path"),
        "File with the token, read again when the service refuses it."),
    ])
  }
}
