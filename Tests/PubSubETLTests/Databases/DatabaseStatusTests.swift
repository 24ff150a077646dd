import Bytes
import Checkpoint
import JSON
import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink
@testable import PubSubETL

@Suite("Status of a pipeline with a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseStatusTests {
  private let now = UTCTime.now()
  private static let sinks: [String: JSONValue] = [
    "files": ["files": []], "warehouse": ["type": "postgres", "schema": "salesforce"],
  ]

  @Test("Position, owner and lease are shown, and nothing is created")
  func told() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store(
      [StateSample.topic: sample.state.position(ordinal: 12, confirmedAt: self.now)],
      sinks: ["files": ["files": []]])
    let new = try PipelineStatus.read(sample.configuration, maxAge: nil)
    #expect(new.json["sinks"]?.array?.last?["new"] == true)
    #expect(!new.problems.map(\.kind).contains("lost_state"))
    #expect(try sample.query("SELECT to_regnamespace('salesforce')") == "")
    try sample.store(
      sample.state.position(ordinal: 9, confirmedAt: self.now), lease: "1 hour")
    let status = try PipelineStatus.read(sample.configuration, maxAge: nil)
    let sink = try #require(status.json["sinks"]?.array?.last)
    #expect(sink["type"]?.string == "postgres")
    #expect(sink["owner"]?.string == "host /state pid 1")
    #expect(sink["fence"]?.integer == 7)
    #expect(sink["leased"] == true)
    #expect(sink["positions"]?[StateSample.topic]?["next_ordinal"]?.integer == 9)
    #expect(status.topics.first?.position?.nextOrdinal == 12)
    #expect(status.text.contains("lease 7, of host /state pid 1, holds until "))
  }

  @Test("An unreachable database is a separate problem, and the rest is shown")
  func unreachable() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store(
      [StateSample.topic: sample.state.position(confirmedAt: self.now)], sinks: Self.sinks)
    var configuration = sample.configuration
    var settings = try #require(configuration.postgresSinks.first)
    settings.sink.connection.url = "postgresql://nobody@127.0.0.1:1/none"
    configuration.sinks[1] = settings
    let status = try PipelineStatus.read(configuration, maxAge: nil)
    #expect(status.problems.first?.kind == "database_unavailable")
    #expect(status.exitCode == 69)
    #expect(status.topics.first?.position?.nextOrdinal == 10)
    let sink = status.json["sinks"]?.array?.last
    #expect(sink?["error"]?.string != nil)
    #expect(sink?["owner"] == .some(nil))
  }

  @Test("Dropped tables are a problem with exit code 65, even if the next run repairs them")
  func droppedTables() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.state.store(
      [StateSample.topic: sample.state.position(confirmedAt: self.now)],
      sinks: ["warehouse": ["type": "postgres", "schema": "salesforce"]])
    try sample.store(sample.state.position(confirmedAt: self.now))
    try Self.makeTables(sample)
    func problem() throws -> (kind: String?, code: Int32, lines: [String]) {
      let status = try PipelineStatus.read(sample.configuration, maxAge: nil)
      let problem = status.problems.first { $0.kind.hasSuffix("tables") || $0.kind == "lost_table" }
      return (
        problem?.kind, problem.map { Int32($0.exitCode) } ?? 0,
        try ConnectionCheck.askSinks(sample.configuration)
      )
    }
    #expect(try problem().kind == nil && problem().lines.count == 1)
    try sample.query("DROP TABLE salesforce.opportunity CASCADE")
    let current = try problem()
    #expect(current.kind == "damaged_tables" && current.code == 65)
    #expect(current.lines.last?.contains("fills it from the history") == true)
    try sample.query("DROP TABLE salesforce.opportunity_history")
    let status = try PipelineStatus.read(sample.configuration, maxAge: nil)
    #expect(status.problems.contains { $0.kind == "lost_table" && $0.exitCode == 65 })
    let failure = #expect(throws: ConnectionCheck.Failure.self) {
      try ConnectionCheck.askSinks(sample.configuration)
    }
    #expect(failure?.exitCode == .data)
  }

  @Test("A view without the new values of a field is a problem until it reads their column")
  func outdatedViews() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.state.store(
      [StateSample.topic: sample.state.position(confirmedAt: self.now)],
      sinks: ["warehouse": ["type": "postgres", "schema": "salesforce"]])
    try sample.store(sample.state.position(confirmedAt: self.now))
    func problem() throws -> (code: Int32, message: String)? {
      try PipelineStatus.read(sample.configuration, maxAge: nil).problems
        .first { $0.kind == "outdated_views" }.map { (Int32($0.exitCode), $0.message) }
    }
    try Self.makeTables(sample)
    try sample.query("CREATE VIEW public.mine AS SELECT name FROM salesforce.opportunity")
    #expect(try problem() == nil)
    try Self.makeTables(sample, .double, schemaID: "s-2")
    let found = try #require(try problem())
    #expect(found.code == 65)
    #expect(found.message.contains("view public.mine lacks new values of field Name"))
    // In a line of its own, which can be copied.
    let statement = "CREATE OR REPLACE VIEW public.mine AS "
    let text = try PipelineStatus.read(sample.configuration, maxAge: nil).text
    let line = try #require(text.split(separator: "\n").first { $0.contains(statement) })
    #expect(line.trimmingPrefix(#/ +/#).hasPrefix(statement) && line.hasSuffix(";"), "\(text)")
    let check = try ConnectionCheck.askSinks(sample.configuration)
    #expect(check.contains { $0.contains("view public.mine lacks new values") })
    #expect(check.contains { $0.hasPrefix(statement) && $0.hasSuffix(";") }, "\(check)")
    try sample.query(
      "CREATE OR REPLACE VIEW public.mine AS SELECT name::text AS name FROM salesforce.opportunity")
    #expect(try problem() == nil)
  }

  /// Those of the topic, empty.
  private static func makeTables(
    _ sample: DatabaseSample, _ type: ColumnType = .string, schemaID: String = "s"
  ) throws {
    let settings = sample.configuration.postgresSinks[0]
    let connection = try PostgresConnection(settings.sink.connection)
    let layout = RecordLayout(
      topic: StateSample.topic, schemaID: schemaID, entity: "Opportunity", family: .changeEvent,
      slotCount: MetadataSlot.count + 1, fieldOrder: [MetadataSlot.count],
      columns: [
        Column(name: "Name", path: ["Name"], content: .slot(MetadataSlot.count, type))
      ])
    _ = try TableCatalog(
      settings.sink, feeder: sample.configuration.feeder(settings)
    ).tables(for: layout, over: connection)
  }

  @Test("Lost ranges of an object are shown until all its records are read again")
  func missingRanges() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.store(sample.state.position(confirmedAt: self.now))
    var status = try PipelineStatus.read(sample.configuration, maxAge: nil)
    #expect(status.sinks.map(\.remark) == [nil])
    var sink = PostgresStatus(
      try #require(sample.configuration.postgresSinks.first),
      SinkStatusReading(
        configuration: sample.configuration, checkpoint: nil, positions: [:], verifies: false,
        now: self.now))
    let tables: [(name: String, entity: String, ranges: Int64)] = [
      ("account", "Account", 0), ("opportunity", "Opportunity", 2),
      ("opportunity_history", "Opportunity", 2),
    ]
    sink.tables = tables.map {
      TableFreshness(
        table: $0.name, entity: $0.entity, holes: 0, topics: [], missingRanges: $0.ranges)
    }
    status.sinks = [sink.status(now: self.now)]
    let command = sample.configuration.command("snapshot")
    #expect(
      status.text.contains(
        "health        good; sink 'warehouse' is not complete: 2 missing ranges of Opportunity not "
          + "repaired; '\(command)' reads their records again\n"))
  }

  @Test("A lookup says how often it is read; columns are named by their states")
  func lookups() {
    var table = TableFreshness(table: "userrole", entity: "UserRole", holes: 0, topics: [])
    table.otherColumns = ["without events": ["a", "b"], "gone since": ["c"]]
    table.polls = TableFreshness.Polls(every: .seconds(3600), lastAt: nil)
    let columns = "gone from the org: c, without events: a, b, "
    #expect(PostgresStatus.summary(table).hasSuffix(columns + "read every 1 h 00 min, not yet"))
    table.polls?.lastAt = 1_771_300_995_000
    #expect(
      PostgresStatus.summary(table).hasSuffix(
        "read every 1 h 00 min, last at 2026-02-17T04:03:15.000Z"))
  }

  @Test("Positions that one of two stores has lost are lost state")
  func lost() async throws {
    let sample = try await DatabaseSample()
    try sample.query("CREATE SCHEMA salesforce")
    try sample.state.store(
      [StateSample.topic: sample.state.position(confirmedAt: self.now)], sinks: Self.sinks)
    let lost = try PipelineStatus.read(sample.configuration, maxAge: nil)
    #expect(lost.problems.first?.kind == "lost_state")
    #expect(lost.exitCode == 65)
    let other = try await DatabaseSample()
    try other.store(other.state.position(confirmedAt: self.now))
    let lone = try PipelineStatus.read(other.configuration, maxAge: nil)
    #expect(lone.problems.map(\.kind) == ["lost_state"])
  }

  @Test("A schema that was renamed is named as the reason for a lost position")
  func renamed() async throws {
    let sample = try await DatabaseSample()
    let position = try sample.state.position(confirmedAt: self.now)
    try sample.store(position)
    try sample.state.store([StateSample.topic: position], sinks: Self.sinks)
    try sample.query("ALTER SCHEMA salesforce RENAME TO crm")
    let status = try PipelineStatus.read(sample.configuration, maxAge: nil)
    #expect(status.exitCode == 65)
    let text = try #require(status.problems.first?.message)
    #expect(text.contains("Schemas with such tables: \"crm\""), "\(text)")
  }

  @Test("Without files the database is enough")
  func alone() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.store(sample.state.position(ordinal: 9, confirmedAt: self.now))
    let status = try PipelineStatus.read(sample.configuration, maxAge: .seconds(3600))
    #expect(status.problems == [])
    #expect(status.org == StateSample.org)
    #expect(status.topics.first?.position?.nextOrdinal == 9)
    let late = try PipelineStatus.read(
      sample.configuration, maxAge: nil, now: self.now + 49 * 3_600_000)
    #expect(late.problems.map(\.kind) == ["ageing_out"])
  }
}
