import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// Which records are asked for one by one after a pass that did not bring them.
@Suite("Records seen by a pass", .enabled(if: PostgresCluster.isAvailable)) struct SeenRecordsTests
{
  private static let begun = "timestamptz '2026-11-02 10:00:00Z'"

  /// A row of the current table, loaded and committed so long after the pass began.
  private static func row(
    _ id: String, updated: String, committed: String, isDeleted: Bool = false
  ) -> String {
    "('\(id)', \(begun) + interval '\(updated)', \(begun) + interval '\(committed)', "
      + "\(isDeleted ? begun : "NULL"), 1, 1, 'e', 'UPDATE')"
  }

  @Test("A repair asks for older rows that a pass did not bring")
  func candidates() async throws {
    let tables = try await SampleTables(takesReads: true)
    let connection = tables.connection
    try connection.execute(
      Bookkeeping(schema: SampleTables.schema).readStatements(existing: []).joined(separator: ";\n")
    )
    let seen = SeenRecords(tables.current)
    try connection.begin()
    try seen.begin(over: connection)
    // The table was empty when the pass began.
    try connection.execute(
      """
      INSERT INTO \(tables.current.qualifiedName) (id, _updated_at, _commit_timestamp, _deleted_at, \
      _epoch, _ordinal, _event_id, _change_type) VALUES
      \(Self.row("before", updated: "-1 day", committed: "-1 day")),
      \(Self.row("with it", updated: "0 s", committed: "-1 s")),
      \(Self.row("late", updated: "10 min", committed: "-1 day")),
      \(Self.row("later", updated: "10 min", committed: "9 min")),
      \(Self.row("came", updated: "-1 day", committed: "-1 day")),
      \(Self.row("deleted", updated: "-1 day", committed: "-1 day", isDeleted: true))
      """)
    try connection.execute("COMMIT")
    var reads = RowBuffer(columnCount: tables.current.dataColumns.count)
    reads.append(
      SampleRead(recordID: "came", ordinal: 1, stamp: 1, readAt: 1),
      columns: tables.current.dataColumns)
    try connection.begin()
    try seen.add(reads, rows: 0..<1, over: connection)
    try seen.end(begunAt: Self.begun, over: connection)
    try connection.execute("COMMIT")
    let asked = try RepairList(tables.current).records(
      after: "", limit: 10, visibilityWait: 60_000, over: connection)
    #expect(asked == ["before", "late", "with it"])
    #expect(
      try tables.rows("SELECT to_regclass('\"sales force\"._etl_seen_thing') IS NULL") == ["t"])
  }

  @Test("A pass ends and another begins while a dump reads their table")
  func dumped() async throws {
    let tables = try await SampleTables(takesReads: true)
    let connection = tables.connection
    let seen = SeenRecords(tables.current)
    try connection.transaction { () throws(PostgresError) in try seen.begin(over: connection) }
    let table = "\"sales force\"._etl_seen_thing"
    try connection.execute("INSERT INTO \(table) VALUES ('a')")
    let url = try await PostgresCluster.shared.url(database: tables.database)
    let dump = try PostgresConnection(PostgresConnectionConfiguration(url: url))
    try dump.execute("BEGIN; SELECT * FROM \(table)")
    try connection.transaction { () throws(PostgresError) in
      try seen.end(begunAt: Self.begun, over: connection)
      try seen.begin(over: connection)
    }
    #expect(try tables.rows("SELECT count(*) FROM \(table)") == ["0"])
    try dump.execute("COMMIT")
    try connection.transaction { () throws(PostgresError) in
      try seen.end(begunAt: Self.begun, over: connection)
    }
    #expect(try tables.rows("SELECT to_regclass('\(table)') IS NULL") == ["t"])
  }

  @Test("A gap is settled only by a later deletion or full image")
  func gaps() async throws {
    let tables = try await SampleTables(takesReads: true)
    let resync = ResyncTable.qualifiedName(schema: SampleTables.schema)
    try tables.connection.execute(
      """
      INSERT INTO \(tables.current.qualifiedName) (id, _stale, _deleted_at, _epoch, _ordinal, \
      _event_id, _change_type) VALUES ('stale', true, NULL, 1, 1, 'e', 'GAP_UPDATE'), \
      ('deleted', false, now(), 1, 1, 'e', 'DELETE'), ('right', false, NULL, 1, 1, 'e', 'CREATE');
      INSERT INTO \(resync) (entity, kind, record_id, event_id) \
      SELECT 'Thing', k, r, k FROM unnest(ARRAY['stale', 'deleted', 'right', 'gone']) AS r, \
      unnest(ARRAY['gap', 'unseen', 'missing', 'dead_letter']) AS k
      """)
    try ResyncTable(entity: "Thing", schema: SampleTables.schema).closeGaps(
      current: tables.current, over: tables.connection)
    #expect(
      try tables.rows(
        """
        SELECT record_id, string_agg(kind, ' ' ORDER BY kind) FROM \(resync) \
        WHERE done_at IS NOT NULL GROUP BY 1 ORDER BY 1
        """) == ["deleted|gap unseen", "gone|gap unseen", "right|gap unseen"])
  }

  @Test(
    "A row that was just loaded waits, unless it was committed long ago",
    arguments: [
      ("6 minutes", "0 s", true), ("5 minutes", "0 s", false), ("0 s", "2 minutes", true),
    ])
  func freshness(committedBefore: String, loadedBefore: String, isAsked: Bool) async throws {
    let tables = try await SampleTables(takesReads: true)
    try tables.connection.execute(
      """
      INSERT INTO \(tables.current.qualifiedName) (id, _updated_at, _commit_timestamp, _epoch, \
      _ordinal, _event_id, _change_type) VALUES ('a', now() - interval '\(loadedBefore)', \
      now() - interval '\(committedBefore)', 1, 1, 'e', 'UPDATE');
      INSERT INTO \(ResyncTable.qualifiedName(schema: SampleTables.schema)) \
      (entity, kind, record_id, event_id) VALUES ('Thing', 'missing', 'a', 'snapshot')
      """)
    let asked = try RepairList(tables.current).records(
      after: "", limit: 10, visibilityWait: 60_000, over: tables.connection)
    #expect(asked == (isAsked ? ["a"] : []))
  }

  @Test("Each table is scanned once, even after statements with plans for few records")
  func plan() async throws {
    let tables = try await SampleTables(takesReads: true)
    let connection = tables.connection
    try connection.execute(
      Bookkeeping(schema: SampleTables.schema).readStatements(existing: []).joined(separator: ";\n")
    )
    let seen = SeenRecords(tables.current)
    try connection.begin()
    try seen.begin(over: connection)
    try connection.execute(
      """
      INSERT INTO \(tables.current.qualifiedName) (id, _updated_at, _commit_timestamp, \
      _epoch, _ordinal, _event_id, _change_type) SELECT 'r' || i, \(Self.begun), \(Self.begun), 1, i, \
      'e', 'UPDATE' FROM generate_series(1, 2000) AS i; \
      INSERT INTO "sales force"._etl_seen_thing SELECT 'r' || i FROM generate_series(1, 1990) AS i
      """)
    try connection.execute("COMMIT")
    try connection.begin()
    try connection.execute(DeltaTable.planSettings)
    try seen.noteMissing(begunAt: Self.begun, over: connection)
    let scans = try connection.query(
      "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = '_etl_seen_thing'")
    #expect(scans[0, 0] == "1")
    try connection.execute("COMMIT")
    #expect(
      try tables.rows("SELECT count(*) FROM \"sales force\"._etl_resync WHERE kind = 'missing'")
        == ["10"])
  }
}
