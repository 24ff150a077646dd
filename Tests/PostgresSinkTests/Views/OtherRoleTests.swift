import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Runs of a role that owns its schema, beside views and tables that belong to other roles.
@Suite("Views and tables of other roles", .enabled(if: PostgresCluster.isAvailable))
struct OtherRoleTests {
  private static let feeder = TableFeeder(
    pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
  private static let text = SinkRun.layout(.string, schemaID: "schema-2")
  private static let wider = SinkRun.layout(
    schemaID: "schema-2", [Column("Note__c", 3, .string, salesforceType: "Data:Text")])

  /// A database in which role `etl` owns schema `salesforce`.
  private struct Sample {
    let database: TestDatabase
    let role: String
    let other: String
    let url: String

    init() async throws {
      self.database = try await TestDatabase()
      self.role = "etl_\(self.database.name)"
      self.other = "other_\(self.database.name)"
      self.url =
        "host=127.0.0.1 port=\(self.database.cluster.port) user=\(self.role) "
        + "dbname=\(self.database.name)"
      try self.database.connect().execute(
        """
        CREATE ROLE \(self.role) LOGIN; CREATE ROLE \(self.other);
        CREATE SCHEMA salesforce AUTHORIZATION \(self.role)
        """)
    }

    func run(_ ordinal: Int64 = 0, reads: Bool = false) throws -> SinkRun {
      try SinkRun(self.database, ordinal: ordinal, url: self.url) {
        if reads { $0.reads = .init() }
      }
    }

    var configuration: PostgresSinkConfiguration {
      self.database.configuration { $0.connection.url = self.url }
    }

    /// The messages of `status`.
    func findings() throws -> [String] {
      try DatabaseProbe(self.configuration).tables(OtherRoleTests.feeder).map(\.message)
    }
  }

  /// The statements that a message says to run.
  private func statements(_ message: String) throws -> String {
    let start = try #require(message.firstRange(of: "run as the owner of the view")).upperBound
    let end = try #require(message.firstRange(of: "; a value that cannot be converted")).lowerBound
    return String(message[start..<end].drop { $0 != ":" }.dropFirst())
  }

  /// An analyst's views on the tables of a run, in a schema that the role may not use.
  private func privateViews(_ sample: Sample) throws -> SinkRun {
    let run = try sample.run().begin()
    try run.eye.execute(
      """
      CREATE SCHEMA reports AUTHORIZATION \(sample.other);
      GRANT USAGE ON SCHEMA salesforce TO \(sample.other);
      GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO \(sample.other);
      SET ROLE \(sample.other);
      CREATE MATERIALIZED VIEW reports.stored AS SELECT id, amount FROM salesforce.opportunity_live;
      CREATE INDEX stored_id ON reports.stored (id);
      CREATE VIEW reports.top AS SELECT max(amount) FROM reports.stored;
      CREATE VIEW reports.plain AS SELECT id, amount FROM salesforce.opportunity_live;
      RESET ROLE
      """)
    return run
  }

  @Test("Views in a schema that the role may not use are named, and the run continues")
  func privateSchema() async throws {
    let sample = try await Sample()
    let run = try self.privateViews(sample)
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    #expect(try run.history() == ["first", "b"])
    run.sink.close()
    let next = try sample.run(2)
    try next.sink.open()
    next.sink.close()
    let found = try sample.findings()
    for view in ["reports.stored", "reports.plain"] {
      let named = "view \(view) lacks new values of field Amount"
      #expect(run.notices.count { $0.contains(named) } == 1, "\(run.notices)")
      #expect(next.notices.count { $0.contains(named) } == 1, "\(next.notices)")
      try run.eye.execute(self.statements(#require(found.first { $0.contains(named) })))
    }
    #expect(try sample.findings() == [])
    #expect(try run.eye.rows("SELECT * FROM reports.top") == [["2.5"]])
  }

  @Test(
    "Views that cannot be examined are a warning and a problem, and the run continues",
    arguments: [
      "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_get_viewdef(oid) FROM PUBLIC",
      "BEGIN; REFRESH MATERIALIZED VIEW reports.stored",
    ])
  func failedInquiry(sql: String) async throws {
    let sample = try await Sample()
    let run = try self.privateViews(sample)
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    run.sink.close()
    try run.eye.execute(sql)
    let next = try sample.run(2)
    let error = postgresError {
      try next.sink.open()
      try next.write(["c"], layout: Self.text) { _ in [SinkRun.amount: .text("3.5")] }
      try next.commit()
    }
    #expect(error == nil)
    let named = "could not be examined: postgres: "
    #expect(next.notices.count { $0.contains(named) } >= 1, "\(next.notices)")
    #expect(try sample.findings().contains { $0.contains(named) })
    #expect(
      try TableCatalog.plan([Self.text], sample.configuration, feeder: Self.feeder).outdatedViews
        .contains { $0.message.contains(named) })
  }

  @Test("A view of the sink that belongs to another role is named, and the others are updated")
  func foreignView() async throws {
    let sample = try await Sample()
    try sample.run().begin().sink.close()
    let eye = try sample.database.connect()
    let definition = try eye.column("SELECT pg_get_viewdef('salesforce._columns')")[0].dropLast()
    try eye.execute(
      """
      DROP VIEW salesforce._columns;
      CREATE VIEW salesforce._columns AS SELECT * FROM (\(definition)) AS restored;
      GRANT SELECT ON salesforce._columns TO \(sample.role)
      """)
    let statement = "ALTER VIEW \"salesforce\".\"_columns\" OWNER TO \"\(sample.role)\""
    #expect(
      try DatabaseProbe(sample.configuration).ownershipRemedy?.contains(statement) == true)
    let run = try sample.run(1)
    try run.sink.open()
    try run.write(["b"], layout: Self.wider) { _ in [SinkRun.amount + 1: .text("new")] }
    try run.commit()
    run.sink.close()
    #expect(
      try eye.column("SELECT note__c FROM salesforce.opportunity_live WHERE id = 'b'") == ["new"])
    #expect(run.notices.count { $0.contains(statement) } == 1, "\(run.notices)")
    let idle = try sample.run(2)
    try idle.sink.open()
    idle.sink.close()
    #expect(idle.notices.count { $0.contains(statement) } == 1, "\(idle.notices)")
    #expect(try sample.findings().count { $0.contains(statement) } == 1)
    let plan = try TableCatalog.plan([Self.wider], sample.configuration, feeder: Self.feeder)
    #expect(plan.outdatedViews.map(\.statements) == [[statement]])
    try eye.execute(statement)
    #expect(try sample.findings() == [])
    let last = try sample.run(2)
    try last.sink.open()
    try last.write(["c"], layout: Self.wider)
    try last.commit()
    #expect(last.notices == [])
    #expect(
      try eye.column("SELECT strpos(pg_get_viewdef('salesforce._columns'), 'restored')") == ["0"])
  }

  @Test("Whatever a run is not allowed to do, its error has the statement to run")
  func statements() async throws {
    typealias Call = (SinkRun) throws -> Void
    let calls: [(table: String, name: String, call: Call)] = [
      (
        "opportunity", "repair",
        { _ = try $0.sink.recordsToRepair("Opportunity", after: "", limit: 9) }
      ),
      (
        "_etl_missing_range", "missing ranges",
        { _ = try $0.sink.needsPass(over: "Opportunity", topic: SinkRun.topic) }
      ),
      ("_etl_repair_calls", "calls", { _ = try $0.sink.repairCallsOfDay() }),
      ("_etl_snapshot", "passes", { try $0.sink.awaitReads(of: "Opportunity") }),
      ("_etl_snapshot", "first reads", { try $0.sink.noteFirstReads() }),
      ("_etl_table", "epochs", { _ = try $0.sink.newestEpoch(ofTopics: [SinkRun.topic]) }),
      (
        "opportunity_history", "rows",
        {
          try $0.write(["z"])
          try $0.commit()
        }
      ),
    ]
    for (table, name, call) in calls {
      let sample = try await Sample()
      let run = try sample.run(reads: true).begin()
      try run.eye.execute("ALTER TABLE salesforce.\(table) OWNER TO \(sample.other)")
      let error = try #require(postgresError { try call(run) }, "\(name)")
      #expect(
        error.message.contains(
          "ALTER TABLE \"salesforce\".\"\(table)\" OWNER TO \"\(sample.role)\""),
        "\(name): \(error)")
      #expect(error.message.contains("new fields then need the owner"), "\(name): \(error)")
      #expect(error.message.contains("ask the owner to run GRANT SELECT"), "\(name): \(error)")
    }
  }
}
