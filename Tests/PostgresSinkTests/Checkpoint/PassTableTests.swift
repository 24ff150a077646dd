import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

/// How far records were read, as the database says.
@Suite("Table of passes", .enabled(if: PostgresCluster.isAvailable)) struct PassTableTests {
  @Test(
    "A pass that no run can have stored is treated as never read",
    arguments: [
      ("number = 3", true), ("number = 9223372036854775807", false), ("number = -1", false),
      ("rows = 9223372036854775807, total = NULL", false),
      ("number = 3, rows = 50, total = 40", true),
      ("page_row = 60", false), ("page_row = -1", false), ("state = 'odd'", false),
    ])
  func damaged(change: String, isKnown: Bool) async throws {
    let tables = try await SampleTables(takesReads: true)
    let connection = tables.connection
    let bookkeeping = Bookkeeping(schema: SampleTables.schema)
    try connection.execute(
      bookkeeping.readStatements(existing: []).joined(separator: ";\n"))
    try connection.execute(
      """
      INSERT INTO \(bookkeeping.qualified("_etl_snapshot"))
      (pipeline, sink, entity, number, state, begun_at, job, page_row, rows, total)
      VALUES ('p', 's', 'Thing', 1, 'reading', now(), '750000000000001AAA', 30, 40, 50);
      UPDATE \(bookkeeping.qualified("_etl_snapshot")) SET \(change)
      """)
    let entry = try PassTable(pipeline: "p", sink: "s", bookkeeping).read(
      DatabaseClock(over: connection, now: { .now }), over: connection)["Thing"]
    #expect((entry?.pass != nil) == isKnown)
    #expect(entry?.number == (isKnown ? 3 : 0))
  }
}
