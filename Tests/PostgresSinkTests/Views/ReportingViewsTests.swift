import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Reporting views", .enabled(if: PostgresCluster.isAvailable)) struct ReportingViewsTests {
  private static let schema = SQLIdentifier.quoted(SampleTables.schema)

  @Test("The live view hides deleted rows and follows the table's columns")
  func live() async throws {
    var tables = try await SampleTables()
    let views = ReportingViews(schema: SampleTables.schema)
    #expect(try views.updateLive(tables.current, over: tables.connection) == .created)
    #expect(try views.updateLive(tables.current, over: tables.connection) == .unchanged)
    let events = [RowBuffer.Change.create, .create, .delete].enumerated().map { index, change in
      SampleEvent(
        change: change, recordID: "00\(index % 2)", ordinal: Int64(index), time: 100,
        values: ["name": .text("a")])
    }
    try load(events[...], into: tables, tables.loader())
    let query = "SELECT id, name FROM \(Self.schema).thing_live"
    #expect(try tables.rows(query) == ["001|a"])

    try tables.connection.execute(
      "ALTER TABLE \(tables.current.qualifiedName) ADD COLUMN extra text")
    tables.current.dataColumns.append(TableColumn(name: "extra", type: .text, path: "Extra"))
    #expect(try views.updateLive(tables.current, over: tables.connection) == .replaced)
    #expect(try tables.rows("SELECT extra FROM \(Self.schema).thing_live") == ["-"])
  }

  @Test("Columns of the live view follow those of the table although another view depends on it")
  func changedColumns() async throws {
    var tables = try await SampleTables()
    let views = ReportingViews(schema: SampleTables.schema)
    _ = try views.updateLive(tables.current, over: tables.connection)
    try tables.connection.execute(
      "ALTER TABLE \(tables.current.qualifiedName) RENAME COLUMN name TO name__text")
    tables.current.dataColumns[0].name = "name__text"
    try tables.connection.execute(
      "CREATE VIEW \(Self.schema).mine AS SELECT id FROM \(Self.schema).thing_live")
    #expect(try views.updateLive(tables.current, over: tables.connection) == .replaced)
    #expect(try views.updateLive(tables.current, over: tables.connection) == .unchanged)
    #expect(try tables.rows("SELECT name__text FROM \(Self.schema).thing_live") == [])
  }

  /// As version 0.1 made them.
  private static let earlierFreshness = """
    CREATE VIEW \(schema)._freshness AS SELECT t.table_name, t.entity, c.pipeline, c.sink, \
    c.complete_through, c.committed_at AS last_run, n.stale, n.partial, \
    (SELECT coalesce(sum((p.value ->> 'holes')::numeric), 0) FROM jsonb_each(c.topics) AS p) AS holes \
    FROM \(schema)._etl_table AS t LEFT JOIN \(schema)._etl_checkpoint AS c ON true \
    LEFT JOIN (SELECT 'thing'::text, (SELECT count(*) FROM \(schema).thing WHERE _stale), \
    (SELECT count(*) FROM \(schema).thing WHERE _partial) UNION ALL \
    SELECT NULL::text, 0::bigint, 0::bigint WHERE false) \
    AS n (table_name, stale, partial) ON n.table_name = t.table_name
    """

  @Test(
    "_freshness shows how current and complete each table is, by its own topics",
    arguments: [false, true])
  func freshness(isUpgrade: Bool) async throws {
    let tables = try await SampleTables()
    let views = ReportingViews(schema: SampleTables.schema)
    try tables.connection.execute(
      """
      INSERT INTO \(Self.schema)._etl_table VALUES ('thing', 'Thing', 'current'), \
      ('thing_history', 'Thing', 'history'), ('gone', 'Gone', 'current')
      """)
    if isUpgrade {
      try tables.connection.execute(Self.earlierFreshness)
      // Views of users keep their columns.
      try tables.connection.execute(
        "CREATE VIEW \(Self.schema).mine AS SELECT * FROM \(Self.schema)._freshness")
    }
    #expect(try views.isFreshnessOutdated(over: tables.connection) == isUpgrade)
    try tables.connection.begin()
    #expect(
      try views.updateFreshness(over: tables.connection) == (isUpgrade ? .replaced : .created))
    try tables.connection.execute("COMMIT")
    let query = """
      SELECT table_name, pipeline, sink, extract(epoch FROM complete_through)::int, \
      extract(epoch FROM last_run)::int, stale, partial, holes, \
      extract(epoch FROM last_change)::int, topics FROM \(Self.schema)._freshness ORDER BY 1, 2
      """
    #expect(
      try tables.rows(query) == [
        "gone|-|-|-|-|-|-|0|-|-", "thing|-|-|-|-|0|0|0|-|-", "thing_history|-|-|-|-|-|-|0|-|-",
      ])
    // B lags, C has more holes than both; D is new, F was left by an earlier version.
    try tables.connection.execute(
      """
      INSERT INTO \(Self.schema)._etl_checkpoint (pipeline, sink, org, owner, fence, lease_until, \
      topics, committed_at, complete_through) VALUES ('p', 's', 'o', 'me', 1, now(), '{
      "A": {"holes": 2, "complete_through_ms": 200000, "tables": {"thing": 150000, "gone": null}}, \
      "B": {"holes": 1, "complete_through_ms": 90000, "tables": {"thing": 160000}}, \
      "C": {"holes": 7, "complete_through_ms": 250000, "tables": {"thing_history": 180000}}, \
      "D": {"tables": null}, "F": {}}', to_timestamp(300), to_timestamp(200)), \
      ('q', 's', 'o', 'me', 1, now(), '{"E": {"tables": {"thing_history": 170000}}}', \
      to_timestamp(310), NULL)
      """)
    let events = [RowBuffer.Change.gapUpdate, .update].enumerated().map { index, change in
      SampleEvent(change: change, recordID: "00\(index)", ordinal: Int64(index), time: 100)
    }
    try load(events[...], into: tables, tables.loader())
    #expect(
      try tables.rows(query) == [
        "gone|p|s|200|300|-|-|2|-|{A}", "thing|p|s|90|300|1|2|3|160|{A,B}",
        "thing_history|p|s|250|300|-|-|7|180|{C}", "thing_history|q|s|-|310|-|-|0|170|{E}",
      ])
    #expect(
      try tables.rows("SELECT table_name, state FROM \(Self.schema)._freshness ORDER BY 1, 2") == [
        "gone|late", "thing|stale", "thing_history|late", "thing_history|late",
      ])
    #expect(try views.updateFreshness(over: tables.connection) == .unchanged)
    #expect(try views.isFreshnessOutdated(over: tables.connection) == false)
    guard isUpgrade else { return }
    #expect(
      try tables.rows("SELECT table_name, stale FROM \(Self.schema).mine WHERE pipeline = 'p'")
        .sorted() == ["gone|-", "thing_history|-", "thing|1"])
  }
}
