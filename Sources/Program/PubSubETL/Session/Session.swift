import Clocks
import Logging
import Pipeline
import SalesforceAuth
import SchemaStore

/// What a command does with the org of a pipeline, after the login.
struct Session {
  let assembly: PipelineAssembly
  let connection: OrgConnection
  let token: AccessToken
  /// The schemas of the org that runs of this state directory have seen.
  let schemas: SchemaCache
  /// How fields are classified; nil if no stage selects by classification.
  let inquiry: ClassificationInquiry?
  let stages: RunStages
  /// Whether what the org says is stored for later runs.
  let keepsSchemas: Bool
  /// How long to wait for the service and the org.
  let retry: RetrySchedule

  /// The schedule of commands that somebody waits for.
  static let briefly = RetrySchedule(giveUpAfter: .seconds(7))

  /// - Parameters:
  ///   - logger: logs what is waited for.
  ///   - keepsSchemas: stores new schemas, as a run does.
  init(
    _ assembly: PipelineAssembly, _ connection: OrgConnection, _ token: AccessToken,
    retry: RetrySchedule = Self.briefly, logger: Logger? = nil, keepsSchemas: Bool = false
  ) {
    self.assembly = assembly
    self.connection = connection
    self.token = token
    self.retry = retry
    self.keepsSchemas = keepsSchemas
    self.schemas = assembly.schemas(
      ofOrg: token.organizationID, logger: keepsSchemas ? logger : nil)
    self.inquiry = ClassificationInquiry(
      assembly.configuration, connection.makeRESTClient(), retry: retry, logger: logger)
    self.stages = assembly.stages(ofOrg: token.organizationID, self.inquiry?.known)
  }

  /// Lends a session to a command that somebody waits for.
  ///
  /// - Parameter logger: stores new schemas, too; nil to store none.
  static func open<Value>(
    _ configuration: PipelineConfiguration, clock: ProcessClock, logger: Logger? = nil,
    _ body: (Session) async throws -> Value
  ) async throws -> Value {
    try await OrgConnection.open(
      configuration.source.org, secrets: configuration.secrets, clock: clock, logger: logger
    ) { connection in
      let token = try await connection.credentials.provider.token()
      return try await body(
        Session(
          PipelineAssembly(configuration: configuration, clock: clock), connection, token,
          logger: logger, keepsSchemas: logger != nil))
    }
  }

  var configuration: PipelineConfiguration { self.assembly.configuration }
  var org: String { self.token.organizationID }
}
