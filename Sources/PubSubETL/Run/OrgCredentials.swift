import GRPCCore
import HTTPClient
import PubSubAPI
import SalesforceAuth

/// Logins of one org, as credentials for calls.
struct OrgCredentials: CredentialsSource {
  let provider: AccessTokenProvider

  init(_ org: OrgConfiguration) {
    let client = HTTPClient(Self.httpConfiguration(org))
    switch org.auth {
    case .clientCredentials(let loginURL, let clientID, let clientSecret):
      self.provider = AccessTokenProvider(
        ClientCredentialsFlow(
          loginURL: loginURL.url, clientID: clientID, clientSecret: clientSecret.value,
          organizationID: org.orgID, client: client))
    case .token(let source, let instanceURL):
      self.provider = AccessTokenProvider(
        StaticTokenFlow(
          token: {
            switch source {
            case .value(let secret): secret.value
            case .file(let path):
              String(
                String(decoding: try TextFile.read(path), as: UTF8.self)
                  .prefix { !$0.isWhitespace })
            }
          }, instanceURL: instanceURL.url, organizationID: org.orgID))
    }
  }

  static func httpConfiguration(_ org: OrgConfiguration) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration(caFile: org.tls.caFile)
    configuration.certificate = org.tls.identity.map {
      HTTPClient.Configuration.Certificate(file: $0.certificateFile, keyFile: $0.keyFile)
    }
    configuration.proxy =
      org.proxy.proxy(for: org.auth.server).map { proxy in
        .server(
          HTTPClient.Configuration.ProxyServer(
            host: proxy.host, port: proxy.port, user: proxy.authorization?.user,
            password: proxy.authorization?.password.value))
      } ?? .none
    return configuration
  }

  func credentials() async throws -> Credentials {
    do {
      let token = try await self.provider.token()
      return Credentials(
        accessToken: token.value, instanceURL: token.instanceURL, tenantID: token.organizationID)
    } catch let error as AuthError {
      throw PubSubError(
        error.code == .unavailable ? .credentialsRetryable : .credentials,
        status: .unauthenticated, "\(error)", cause: error)
    }
  }

  func invalidate(_ credentials: Credentials) async {
    guard let token = try? await self.provider.token(), token.value == credentials.accessToken
    else { return }
    await self.provider.invalidate(token)
  }
}
