import Cryptography
import HTTPClient
import JSON
import SalesforceAuth

/// How the org is logged in to: the member `auth` of an org.
extension ConfigurationReader {
  func login(_ reader: JSONReader) -> AuthConfiguration? {
    enum Kind: String, CaseIterable {
      case clientCredentials = "client_credentials"
      case jwtBearer = "jwt_bearer"
      case refreshToken = "refresh_token"
      case salesforceCLI = "sf_cli"
      case token
    }
    switch reader.choice("type", of: Kind.self, called: "login", required: true) {
    case .clientCredentials: return self.clientCredentials(reader)
    case .jwtBearer: return self.jwtBearer(reader)
    case .refreshToken: return self.refreshToken(reader)
    case .salesforceCLI: return self.salesforceCLI(reader)
    case .token: return self.token(reader)
    case nil: return nil
    }
  }

  private func loginURL(_ reader: JSONReader) -> ServiceAddress? {
    self.address(reader, "login_url") { text in
      // Whoever sets the audience logs in a user of the site.
      if SalesforceHost.isSite(text), reader.has("audience") { return nil }
      return SalesforceHost.loginAdvice(for: text)
    }
  }

  /// - Parameter advice: says why a text is not the URL that is meant.
  private func address(
    _ reader: JSONReader, _ key: String, advice: (String) -> String?
  ) -> ServiceAddress? {
    guard let text = self.text(reader, key, required: true) else { return nil }
    if let advice = advice(text) {
      reader.report(key, advice)
      return nil
    }
    return self.address(reader, key, text)
  }

  private func clientCredentials(_ reader: JSONReader) -> AuthConfiguration? {
    let loginURL = self.loginURL(reader)
    // ServiceLogins.md#refusals: these hosts answer `invalid_grant`.
    if let host = loginURL?.host, ["login.salesforce.com", "test.salesforce.com"].contains(host) {
      reader.report(
        "login_url",
        "client credentials work only with the org's My Domain URL: "
          + "https://<name>.my.salesforce.com"
      )
    }
    let clientID = self.text(reader, "client_id", required: true)
    let clientSecret = self.text(reader, "client_secret", required: true)
    reader.finish()
    guard let loginURL, let clientID, let clientSecret else { return nil }
    return .clientCredentials(
      loginURL: loginURL, clientID: clientID, clientSecret: Secret(clientSecret))
  }

  private func jwtBearer(_ reader: JSONReader) -> AuthConfiguration? {
    let loginURL = self.loginURL(reader)
    let clientID = self.text(reader, "client_id", required: true)
    let username = self.text(reader, "username", required: true)
    let audience = reader.has("audience") ? self.audience(reader) : nil
    let key = self.signingKey(reader)
    reader.finish()
    guard let loginURL, let clientID, let username, let key else { return nil }
    return .jwtBearer(
      JWTBearerConfiguration(
        loginURL: loginURL, clientID: clientID, username: username,
        audience: audience
          ?? JWTAudience.audience(loginURL: loginURL.url, host: loginURL.host), key: key))
  }

  /// A claim, and no address: it is sent to nobody as such.
  private func audience(_ reader: JSONReader) -> String? {
    guard let text = self.text(reader, "audience") else { return nil }
    guard text.hasPrefix("https://") || text.hasPrefix("http://"),
      text.utf8.count <= 1024, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else {
      reader.report(
        "audience",
        "expected a URL such as \(JWTAudience.production) or \(JWTAudience.sandbox)")
      return nil
    }
    return text
  }

  private func signingKey(_ reader: JSONReader) -> RSASigningKey? {
    let text = self.text(reader, "private_key")
    let file = self.path(reader, "private_key_file")
    if reader.has("private_key") == reader.has("private_key_file") {
      reader.report("private_key_file", "either private_key_file or private_key is required")
      return nil
    }
    if let file {
      self.secretFiles.insert(file)
      return self.content(reader, "private_key_file", ofFile: file).flatMap {
        self.signingKey(reader, "private_key_file", name: "the file \(file)", $0, file: file)
      }
    }
    // In variables of build servers, line ends often arrive as the two characters \\n.
    let pem = text.map { $0.contains("\n") ? $0 : $0.replacing("\\n", with: "\n") }
    return pem.flatMap {
      self.signingKey(reader, "private_key", name: "the key", Array($0.utf8), file: nil)
    }
  }

  private func signingKey(
    _ reader: JSONReader, _ key: String, name: String, _ pem: [UInt8], file: String?
  ) -> RSASigningKey? {
    // A message of a service or library could quote a line; the first and last are those of PEM.
    for line in pem.split(separator: 0x0A) where line.count > 16 && line[line.startIndex] != 0x2D {
      self.secrets.add(String(decoding: line, as: UTF8.self))
    }
    do throws(SigningKeyError) {
      return try RSASigningKey(pem: pem, file: file)
    } catch {
      reader.report(key, "\(name) \(error.message)")
      return nil
    }
  }

  private func refreshToken(_ reader: JSONReader) -> AuthConfiguration? {
    let loginURL = self.loginURL(reader)
    let clientID = self.text(reader, "client_id", required: true)
    // Empty means unset, so that a variable with a default can be used in every pipeline.
    let clientSecret = reader.string("client_secret").flatMap { $0.isEmpty ? nil : Secret($0) }
    let value = self.text(reader, "refresh_token")
    let file = self.path(reader, "refresh_token_file")
    if reader.has("refresh_token") == reader.has("refresh_token_file") {
      reader.report("refresh_token_file", "either refresh_token_file or refresh_token is required")
    }
    reader.finish()
    if let file {
      self.secretFiles.insert(file)
      if !FilePath.isReadable(file) {
        reader.report(
          "refresh_token_file",
          "the file \(file) does not exist, cannot be read, or is not a regular file")
      }
    }
    guard let loginURL, let clientID,
      let token = file.map(AuthConfiguration.TokenSource.file)
        ?? value.map({ .value(Secret($0)) })
    else { return nil }
    return .refreshToken(
      RefreshTokenConfiguration(
        loginURL: loginURL, clientID: clientID, clientSecret: clientSecret, token: token))
  }

  private func salesforceCLI(_ reader: JSONReader) -> AuthConfiguration? {
    let targetOrg = self.text(reader, "target_org", required: true)
    if let targetOrg, !SalesforceCLIFlow.isTargetOrg(targetOrg) {
      reader.report(
        "target_org",
        "expected an alias or username of the Salesforce CLI: no blanks, not beginning with '-'")
    }
    // A bare name is looked up in PATH; anything else is a path like all others.
    let program = self.text(reader, "program").flatMap {
      $0.utf8.contains(UInt8(ascii: "/")) ? self.path(reader, "program") : $0
    }
    reader.finish()
    return targetOrg.map { .salesforceCLI(program: program ?? "sf", targetOrg: $0) }
  }

  private func token(_ reader: JSONReader) -> AuthConfiguration? {
    let instanceURL = self.address(
      reader, "instance_url", advice: SalesforceHost.instanceAdvice)
    let value = self.text(reader, "access_token")
    let file = self.path(reader, "access_token_file")
    if reader.has("access_token") == reader.has("access_token_file") {
      reader.report("access_token", "either access_token or access_token_file is required")
    }
    reader.finish()
    guard let instanceURL else { return nil }
    if let file {
      self.secretFiles.insert(file)
      return .token(.file(file), instanceURL: instanceURL)
    }
    return value.map { .token(.value(Secret($0)), instanceURL: instanceURL) }
  }
}
