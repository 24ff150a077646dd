import PostgresStore
import TestSupport
import Testing

@testable import PostgresSink

@Suite(.enabled(if: PostgresCluster.isAvailable)) struct ReportingViewsTests {
  private static let schema = SQLIdentifier.quoted(SampleTables.schema)

  @Test("The live view shows what is not deleted, and follows the table's columns")
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

  @Test("A view whose columns no longer fit is made anew, unless another view stands on it")
  func changedColumns() async throws {
    var tables = try await SampleTables()
    let views = ReportingViews(schema: SampleTables.schema)
    _ = try views.updateLive(tables.current, over: tables.connection)
    try tables.connection.execute(
      "ALTER TABLE \(tables.current.qualifiedName) RENAME COLUMN name TO name__text")
    tables.current.dataColumns[0].name = "name__text"
    try tables.connection.execute(
      "CREATE VIEW \(Self.schema).mine AS SELECT id FROM \(Self.schema).thing_live")
    try tables.connection.begin()
    #expect(try views.updateLive(tables.current, over: tables.connection) == .kept)
    try tables.connection.execute("COMMIT; DROP VIEW \(Self.schema).mine")
    try tables.connection.begin()
    #expect(try views.updateLive(tables.current, over: tables.connection) == .remade)
    try tables.connection.execute("COMMIT")
    #expect(try tables.rows("SELECT name__text FROM \(Self.schema).thing_live") == [])
  }

  @Test("_freshness tells of every table how far and how whole it is")
  func freshness() async throws {
    let tables = try await SampleTables()
    let views = ReportingViews(schema: SampleTables.schema)
    try tables.connection.execute(
      """
      INSERT INTO \(Self.schema)._etl_table VALUES ('thing', 'Thing', 'current'), \
      ('thing_history', 'Thing', 'history'), ('gone', 'Gone', 'current')
      """)
    try tables.connection.begin()
    #expect(try views.updateFreshness(over: tables.connection) == .created)
    try tables.connection.execute("COMMIT")
    let query = """
      SELECT table_name, entity, pipeline, sink, extract(epoch FROM complete_through)::int, \
      extract(epoch FROM last_run)::int, stale, partial, holes FROM \(Self.schema)._freshness ORDER BY 1
      """
    #expect(
      try tables.rows(query) == [
        "gone|Gone|-|-|-|-|-|-|0", "thing|Thing|-|-|-|-|0|0|0", "thing_history|Thing|-|-|-|-|-|-|0",
      ])
    try tables.connection.execute(
      """
      INSERT INTO \(Self.schema)._etl_checkpoint (pipeline, sink, org, owner, fence, lease_until, \
      topics, committed_at, complete_through) VALUES ('p', 's', 'o', 'me', 1, now(), \
      '{"/data/A": {"holes": 2}, "/data/B": {"holes": 1}, "/data/C": {}}', to_timestamp(300), \
      to_timestamp(200))
      """)
    let events = [RowBuffer.Change.gapUpdate, .update].enumerated().map { index, change in
      SampleEvent(change: change, recordID: "00\(index)", ordinal: Int64(index), time: 100)
    }
    try load(events[...], into: tables, tables.loader())
    #expect(
      try tables.rows(query) == [
        "gone|Gone|p|s|200|300|-|-|3", "thing|Thing|p|s|200|300|1|2|3",
        "thing_history|Thing|p|s|200|300|-|-|3",
      ])
    #expect(try views.updateFreshness(over: tables.connection) == .unchanged)
  }
}
