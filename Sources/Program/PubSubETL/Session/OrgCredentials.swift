import Clocks
import GRPCCore
import HTTPClient
import Logging
import Pipeline
import PubSubAPI
import SalesforceAuth
import SalesforcePubSub

/// Logins to one org, as credentials for calls.
struct OrgCredentials: CredentialsSource {
  let provider: AccessTokenProvider
  /// For calls to the org, with the same settings as its logins.
  let http: HTTPClient

  /// - Parameters:
  ///   - secrets: learns every token that is obtained.
  ///   - clock: of logins, and of calls by `http`.
  ///   - logger: logs the requests, every token but the first, and what the user should correct although
  ///     a login worked; nil for a warning on standard error.
  init(_ org: OrgConfiguration, secrets: SecretMask, clock: ProcessClock, logger: Logger? = nil) {
    let onRenewal: @Sendable (AccessToken) -> Void = { token in
      logger?.info("token renewed", metadata: ["org": "\(token.organizationID)"])
    }
    let onNotice: @Sendable (String) -> Void = { notice in
      guard let logger else {
        StandardStream.tell(PrintableText(line: "warning: \(notice)", hiding: secrets))
        return
      }
      logger.warning("\(notice)")
    }
    var configuration = Self.httpConfiguration(org)
    configuration.onExchange = logger.flatMap(ServiceLog.exchanges)
    configuration.clock = clock
    let client = HTTPClient(configuration)
    self.http = client
    let flow = org.auth.flow(
      LoginContext(
        organizationID: org.orgID, client: client, secrets: secrets, onNotice: onNotice))
    self.provider = Self.provider(flow, clock, secrets, onRenewal)
  }

  private static func provider(
    _ flow: some AccessTokenFlow, _ clock: ProcessClock, _ secrets: SecretMask,
    _ onRenewal: @escaping @Sendable (AccessToken) -> Void
  ) -> AccessTokenProvider {
    AccessTokenProvider(
      SameOrgFlow(flow, onToken: { secrets.add($0.value) }, onRenewal: onRenewal), clock: clock)
  }

  private static func httpConfiguration(_ org: OrgConfiguration) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration(caFile: org.tls.caFile)
    configuration.certificate = org.tls.identity.map {
      HTTPClient.Configuration.Certificate(file: $0.certificateFile, keyFile: $0.keyFile)
    }
    // If the host is unknown until login, the proxy for the orgs' domain is used.
    let server = org.auth.server ?? Self.anyOrg
    configuration.proxy =
      org.proxy.proxy(for: server).map { proxy in
        .server(
          HTTPClient.Configuration.ProxyServer(
            host: proxy.host, port: proxy.port, user: proxy.authorization?.user,
            password: proxy.authorization?.password.value))
      } ?? .none
    return configuration
  }

  private static let anyOrg = ServiceAddress(
    isSecure: true, host: "my.salesforce.com", port: 443)

  /// The time of the login's answer, by the org's clock; nil if none came with it.
  var serviceClock: ServiceClock? {
    get async {
      guard let date = await self.provider.serverDate,
        let readAt = await self.provider.serverDateReadAt
      else { return nil }
      return ServiceClock(reading: date * 1000, readAt: readAt)
    }
  }

  private var login: LoginCredentials { LoginCredentials(self.provider) }

  func credentials() async throws -> Credentials { try await self.login.credentials() }

  func worked(_ credentials: Credentials) async { await self.login.worked(credentials) }

  func refused(_ credentials: Credentials) async -> Bool {
    await self.login.refused(credentials)
  }
}
