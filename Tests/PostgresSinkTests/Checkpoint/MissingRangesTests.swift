import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// What a pass over all records of an object repairs.
@Suite("Missing ranges", .enabled(if: PostgresCluster.isAvailable)) struct MissingRangesTests {
  @Test(
    "A pass repairs ranges noted before its first transaction, and no later ones",
    arguments: [("- interval '1 s'", false), ("", false), ("+ interval '1 s'", true)])
  func close(noted: String, remains: Bool) async throws {
    let tables = try await SampleTables(takesReads: true)
    let connection = tables.connection
    let bookkeeping = Bookkeeping(schema: SampleTables.schema)
    try connection.execute(
      bookkeeping.readStatements(existing: []).joined(separator: ";\n"))
    let ranges = MissingRanges(pipeline: "p", sink: "s", bookkeeping)
    try connection.begin()
    try ranges.note(.init(topic: "/data/ThingChangeEvent", epoch: 2), over: connection)
    try connection.execute(
      """
      UPDATE \(bookkeeping.qualified("_etl_missing_range")) SET noted_at = now() \(noted);
      INSERT INTO \(bookkeeping.qualified("_etl_resync")) (entity, kind, record_id, event_id, noted_at)
      VALUES ('Thing', 'wildcard', '', 'e', now() \(noted)),
      ('Thing', 'dead_letter', NULL, 'e', now() \(noted)),
      ('Thing', 'dead_letter', '001', 'f', now() \(noted)),
      ('Thing', 'dead_letter', '002', 'g', now() \(noted)),
      ('Thing', 'dead_letter', '002', 'read', now() \(noted));
      INSERT INTO \(bookkeeping.qualified("_etl_snapshot"))
      (pipeline, sink, entity, number, state, begun_at, page_row, rows)
      VALUES ('p', 's', 'Thing', 1, 'complete', now(), 0, 0)
      """)
    try connection.execute("COMMIT")
    func needsPass() throws -> Bool {
      try ranges.needsPass(over: "Thing", topic: "/data/ThingChangeEvent", over: connection)
    }
    #expect(try needsPass())
    try ranges.close(entity: "Thing", topic: "/data/ThingChangeEvent", over: connection)
    #expect(try needsPass() == remains)
    // The read of the record was refused.
    #expect(
      try tables.rows(
        """
        SELECT event_id FROM \(bookkeeping.qualified("_etl_resync")) WHERE done_at IS NULL \
        AND kind = 'dead_letter' ORDER BY event_id
        """) == (remains ? ["e", "f"] : []) + ["g", "read"])
  }
}
