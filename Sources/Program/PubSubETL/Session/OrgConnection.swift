import Clocks
import EventLoop
import GRPCCore
import HTTP2Transport
import Logging
import Pipeline
import PubSubAPI
import SalesforceAuth
import SalesforceREST

/// The connection of a command to an org: the login, and the service and REST with this login.
/// Nothing is connected before the first call.
struct OrgConnection: Sendable {
  let credentials: OrgCredentials
  let service: PubSubClient<HTTP2ClientTransport>
  private let restClients = Lock<[RESTClient]>([])

  /// Lends a connection, and closes it in one order: the service, then a login that is under way and
  /// may replace a refresh token.
  ///
  /// - Parameters:
  ///   - secrets: learns every token that is obtained.
  ///   - clock: of the login, the service and REST.
  ///   - logger: logs the requests and what the user should correct although a login worked; nil for a
  ///     warning on standard error.
  static func open<Value>(
    _ org: OrgConfiguration, secrets: SecretMask, clock: ProcessClock, logger: Logger? = nil,
    _ body: (OrgConnection) async throws -> Value
  ) async throws -> Value {
    let transport = try org.transport(clock: clock)
    let client = GRPCClient(transport: transport)
    let connection = OrgConnection(
      credentials: OrgCredentials(org, secrets: secrets, clock: clock, logger: logger),
      service: PubSubClient(
        client, clock: clock, executor: transport.executor,
        onTrace: logger.flatMap(ServiceLog.calls)))
    return try await withThrowingTaskGroup(of: Void.self) { group in
      // Not on the thread of the caller, which sinks may block.
      group.addTask(executorPreference: globalConcurrentExecutor) {
        try await client.runConnections()
      }
      let result: Result<Value, any Error>
      do { result = .success(try await body(connection)) } catch { result = .failure(error) }
      group.cancelAll()
      // Failures of the connection have reached the calls that needed it.
      _ = await group.nextResult()
      await connection.credentials.provider.settle(within: RunnerConfiguration.stopPatience)
      return try result.get()
    }
  }

  /// A client that counts its own calls.
  ///
  /// - Parameter renews: a refused call counts as a refusal of its token and requests a new one.
  func makeRESTClient(renews: Bool = true) -> RESTClient {
    let client = RESTClient(
      http: self.credentials.http,
      sessions: OrgSessions(provider: self.credentials.provider, renews: renews))
    self.restClients.withLock { $0.append(client) }
    return client
  }

  /// Calls that all these clients have made.
  var restCallCount: Int { self.restClients.withLock { $0.reduce(0) { $0 + $1.callCount } } }
}
