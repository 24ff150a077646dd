import Bytes
import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink
@testable import PubSubETL

/// Every command that meets a missing right, or rows that a policy hides, says the same about it.
@Suite("Rights in a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseRightsTests {
  private static let layout = RecordLayout(
    topic: StateSample.topic, schemaID: "s", entity: "Opportunity", family: .changeEvent,
    slotCount: MetadataSlot.count + 1, fieldOrder: [MetadataSlot.count],
    columns: [Column(name: "Name", path: ["Name"], content: .slot(MetadataSlot.count, .string))])

  /// A database after a run, and a role that owns everything in it.
  private struct Sample {
    let database: DatabaseSample
    let role: String
    let configuration: PipelineConfiguration

    init() async throws {
      self.database = try await DatabaseSample(hasFiles: false)
      self.role = "owner_of_\(self.database.database)"
      self.configuration = self.database.configured(role: self.role)
      try self.database.query(
        "CREATE ROLE \(self.role) LOGIN; CREATE SCHEMA salesforce AUTHORIZATION \(self.role)")
      let sink = try self.sink()
      try sink.open(creating: [:])
      _ = try sink.makeReady(for: DatabaseRightsTests.layout)
      sink.close()
      try self.database.state.store(
        [StateSample.topic: self.database.state.position(confirmedAt: UTCTime.now())],
        sinks: ["warehouse": ["type": "postgres", "schema": "salesforce"]])
    }

    func sink(_ role: String? = nil) throws -> PostgresSink {
      let configuration = role.map { self.database.configured(role: $0) } ?? self.configuration
      return try PostgresSink(
        name: "warehouse", configuration: configuration.postgresSinks[0].sink, pipeline: "opps",
        org: StateSample.org, topics: [StateSample.topic],
        owner: LeaseOwner(place: "host /state", identity: "1", processID: 7), takesOver: false)
    }

    /// The failure of each command, by its name; none where it works.
    func failures(as role: String? = nil) throws -> [String: RunFailure] {
      let configuration = role.map { self.database.configured(role: $0) } ?? self.configuration
      let settings = configuration.postgresSinks[0]
      var failures: [String: RunFailure] = [:]
      func note(_ command: String, _ body: () throws -> Void) {
        do {
          try body()
        } catch let error as ConnectionCheck.Failure {
          failures[command] = RunFailure(word: "", code: error.exitCode, error.message)
        } catch {
          failures[command] = RunFailure(error)
        }
      }
      note("check") { _ = try ConnectionCheck.askSinks(configuration) }
      note("run") {
        let sink = try self.sink(role)
        try sink.open(isKnown: true)
        _ = try sink.makeReady(for: DatabaseRightsTests.layout)
        sink.close()
      }
      note("verify") {
        _ = try settings.copyStates(configuration)
        _ = try settings.verification(
          of: DatabaseRightsTests.layout, CopyScope(horizon: 0), configuration)
      }
      note("plan") {
        _ = try settings.plan([DatabaseRightsTests.layout], through: StageChain([]), configuration)
      }
      note("checkpoint show") { _ = try SinkDatabases(configuration) }
      note("checkpoint accept-org") { _ = try SinkDatabases(configuration, readsOrgs: true) }
      note("refold") {
        try settings.refold(
          RefoldSelection(entity: nil, records: []), of: configuration, say: { _ in },
          remark: { _ in })
      }
      let status = try PipelineStatus.read(configuration, maxAge: nil)
      if let problem = status.problems.first(where: { $0.message.contains("warehouse") }) {
        failures["status"] = RunFailure(
          word: problem.kind, code: ExitCode(rawValue: problem.exitCode) ?? .internal,
          problem.message)
      }
      return failures
    }
  }

  @Test("A table that belongs to another role gets the same statement from every command")
  func foreignTable() async throws {
    let sample = try await Sample()
    #expect(try sample.failures().isEmpty)
    try sample.database.query(
      "CREATE ROLE other_\(sample.role); "
        + "ALTER TABLE salesforce.opportunity OWNER TO other_\(sample.role)")
    let failures = try sample.failures()
    let statement = "ALTER TABLE \"salesforce\".\"opportunity\" OWNER TO \"\(sample.role)\""
    for command in ["check", "run", "verify", "status"] {
      let failure = try #require(failures[command], "\(command): \(failures)")
      #expect(failure.exitCode == .refused, "\(command)")
      #expect(failure.message.contains("their owner, \(statement). Or, to let"), "\(failure)")
      #expect(!failure.message.contains("url, role and password"))
    }
    try sample.database.query(statement)
    #expect(try sample.failures().isEmpty)
  }

  @Test("The message names the role that owns the tables if another one connects")
  func wrongRole() async throws {
    let sample = try await Sample()
    let role = "wrong_\(sample.role)"
    try sample.database.query("CREATE ROLE \(role) LOGIN")
    let advice =
      "The tables in schema \"salesforce\" belong to role \"\(sample.role)\": connect as "
      + "\"\(sample.role)\" (the user in url), or run GRANT \"\(sample.role)\" TO \"\(role)\". Or run"
    let failures = try sample.failures(as: role)
    for command in ["check", "run", "verify", "status", "plan", "checkpoint show"] {
      let message = failures[command]?.message ?? ""
      #expect(message.contains(advice), "\(command): \(message)")
    }
    try sample.database.query("GRANT \(sample.role) TO \(role)")
    #expect(try sample.failures(as: role).isEmpty)
  }

  @Test("A schema that is missing is named, with the statement and a name that differs in case")
  func missingSchema() async throws {
    let sample = try await Sample()
    var configuration = sample.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.schema = "Salesforce"
    configuration.sinks = [settings]
    let statement = "CREATE SCHEMA \"Salesforce\" AUTHORIZATION \"\(sample.role)\""
    let hint = "Schema \"salesforce\" exists and differs only in case"
    let check = #expect(throws: ConnectionCheck.Failure.self) {
      try ConnectionCheck.askSinks(configuration)
    }
    let run = #expect(throws: PostgresError.self) {
      try PostgresSink(
        name: "warehouse", configuration: settings.sink, pipeline: "opps", org: StateSample.org,
        owner: LeaseOwner(place: "host /state", identity: "1", processID: 7), takesOver: false
      ).open()
    }
    #expect(run?.message.contains("CREATE SCHEMA \"Salesforce\": permission denied") == true)
    for message in [check?.message, run?.message] {
      #expect(message?.contains("schema \"Salesforce\" does not exist") == true, "\(message ?? "")")
      #expect(message?.contains("run \(statement), or GRANT CREATE ON DATABASE") == true)
      #expect(message?.contains(hint) == true, "\(message ?? "")")
    }
    try sample.database.query(
      "GRANT CREATE ON DATABASE \(sample.database.database) TO \(sample.role)")
    let lines = try ConnectionCheck.askSinks(configuration)
    #expect(lines.first?.contains("will be created. \(hint)") == true, "\(lines)")
  }

  @Test(
    "A policy that hides rows of the bookkeeping is reported before anything is concluded from it",
    arguments: Bookkeeping.names + Bookkeeping.readNames)
  func hiddenRows(_ table: String) async throws {
    let sample = try await Sample()
    if Bookkeeping.readNames.contains(table) {
      for statement in Bookkeeping(schema: "salesforce").readStatements(existing: []) {
        try sample.database.query("SET ROLE \(sample.role); \(statement)")
      }
    }
    let role = "writer_\(sample.role)"
    try sample.database.query(
      """
      CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA salesforce TO \(role);
      GRANT ALL ON ALL TABLES IN SCHEMA salesforce TO \(role);
      GRANT ALL ON ALL SEQUENCES IN SCHEMA salesforce TO \(role);
      ALTER TABLE salesforce.\(table) ENABLE ROW LEVEL SECURITY
      """)
    let failures = try sample.failures(as: role)
    for command in [
      "check", "run", "verify", "status", "plan", "checkpoint show", "checkpoint accept-org",
      "refold",
    ] {
      let failure = try #require(failures[command], "\(command)")
      #expect(failure.exitCode == .configuration, "\(command): \(failure)")
      #expect(
        failure.message.contains(
          "table \"salesforce\".\"\(table)\" has row-level security, which may hide rows"),
        "\(command): \(failure)")
    }
  }
}
