import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Settings of roles and databases", .enabled(if: PostgresCluster.isAvailable))
struct HostileSettingsTests {
  /// Defaults that change what statements mean, or what the server answers.
  private static let settings = [
    "quote_all_identifiers = on", "DateStyle = 'SQL, DMY'", "IntervalStyle = sql_standard",
    "bytea_output = escape", "extra_float_digits = -15", "TimeZone = 'Asia/Kathmandu'",
    "standard_conforming_strings = off", "array_nulls = off", "search_path = ''",
    "default_transaction_isolation = serializable", "default_transaction_deferrable = on",
    "client_encoding = LATIN1", "transform_null_equals = on", "timezone_abbreviations = 'India'",
    "xmloption = document", "lc_monetary = 'C'", "backslash_quote = off",
  ]

  private func dump(_ connection: PostgresConnection) throws -> [String: [[String]]] {
    var content: [String: [[String]]] = [:]
    for query in [
      "SELECT table_name, action, detail FROM salesforce._etl_journal WHERE action <> 'view' "
        + "ORDER BY id",
      "SELECT table_name, column_name, ordinal, path, pg_type FROM salesforce._etl_column "
        + "ORDER BY 1, 3",
      "SELECT id, name, amount, amount__float8, born, _commit_timestamp, _stale "
        + "FROM salesforce.opportunity_live ORDER BY id",
      "SELECT _record_id, name, amount, born, _changed_fields FROM "
        + "salesforce.opportunity_history ORDER BY _ordinal",
      "SELECT kind, record_id, event_id, replay_id FROM salesforce._etl_resync ORDER BY 1, 2",
      "SELECT table_name, complete_through, last_change, topics, holes FROM "
        + "salesforce._freshness ORDER BY table_name",
    ] { content[query] = try connection.rows(query) }
    return content
  }

  /// Two runs, with a field that changes its type between them.
  private func export(
    _ database: TestDatabase, role: String
  ) throws -> (content: [String: [[String]]], notices: [String], freshness: [TableFreshness]) {
    let url = "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"
    let born = [Column("Born", 3, .date(.days))]
    let first = try SinkRun(database, url: url) { $0.reads = .init() }
    try first.sink.open(creating: [:])
    try first.write(["ä 'a' \\ \"b\"", "b"], layout: SinkRun.layout(schemaID: "s-1", born)) { _ in
      [SinkRun.amount: .double(0.1), SinkRun.amount + 1: .integer(-36_000)]
    }
    let batch = RecordBatch(layout: SinkRun.layout(schemaID: "s-1", born))
    batch.epoch = 1
    batch.addChange(
      "GAP_OVERFLOW", "000000000000000AAA", ordinal: first.ordinal, kind: .overflow, eventID: "")
    first.advance()
    batch.addChange("GAP_UPDATE", "b", ordinal: first.ordinal, kind: .gap)
    first.advance()
    try first.sink.take(batch)
    try first.commit()
    first.sink.close()
    let second = try SinkRun(database, ordinal: first.ordinal, url: url) { $0.reads = .init() }
    try second.sink.open()
    try second.write(["c"], layout: SinkRun.layout(.string, schemaID: "s-2", born)) { _ in
      [SinkRun.amount: .text("2,5"), SinkRun.amount + 1: .null]
    }
    try second.commit()
    second.sink.close()
    #expect(first.refused.isEmpty && second.refused.isEmpty)
    let third = try SinkRun(database, ordinal: second.ordinal, url: url) { $0.reads = .init() }
    try third.sink.open()
    try third.write(["c"], layout: SinkRun.layout(.string, schemaID: "s-2", born), type: "DELETE")
    try third.commit()
    third.sink.close()
    var configuration = database.configuration { $0.reads = .init() }
    configuration.connection.url = url
    let feeder = TableFeeder(pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
    let connection = try PostgresConnection(configuration.connection)
    #expect(
      try TableCatalog(configuration, feeder: feeder).survey(over: connection) == [])
    // No run has asked the org for its fields, so their tables are still missing.
    let statements = try TableCatalog.plan(
      [SinkRun.layout(.string, schemaID: "s-2", born)], configuration, feeder: feeder
    ).statements
    #expect(
      statements.allSatisfy { $0.contains("_fields") || $0.contains("_picklist") }, "\(statements)")
    let table = try CheckpointTable(pipeline: "opps", sink: "warehouse", configuration)
    #expect(try table.read() != nil)
    let freshness = try table.freshness().map { freshness in
      var freshness = freshness
      freshness.topics.sort()
      return freshness
    }
    return (
      try self.dump(third.eye), first.notices + second.notices + third.notices, freshness
    )
  }

  @Test("Defaults of a role change nothing that is read or written")
  func defaults() async throws {
    func export(
      _ settings: [String]
    ) async throws -> (
      content: [String: [[String]]], notices: [String], freshness: [TableFreshness]
    ) {
      let database = try await TestDatabase()
      let role = "set_\(database.name)"
      let owner = try database.connect()
      try owner.execute(
        "CREATE ROLE \(role) LOGIN; CREATE SCHEMA salesforce AUTHORIZATION \(role)")
      for setting in settings { try owner.execute("ALTER ROLE \(role) SET \(setting)") }
      return try self.export(database, role: role)
    }
    let (plain, hostile) = (try await export([]), try await export(Self.settings))
    #expect(hostile.content == plain.content)
    #expect(hostile.notices == plain.notices)
    #expect(hostile.freshness == plain.freshness)
  }
}
