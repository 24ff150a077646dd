import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Runs that change no table", .enabled(if: PostgresCluster.isAvailable))
struct RoutineRunTests {
  @Test(
    "A run in which nothing changed takes no lock that another writer's would exclude",
    arguments: [false, true])
  func locks(takesReads: Bool) async throws {
    let database = try await TestDatabase()
    func run(_ ordinal: Int64) throws -> SinkRun {
      try SinkRun(database, ordinal: ordinal) {
        $0.connection.lockTimeout = .milliseconds(1)
        if takesReads { $0.reads = .init() }
      }
    }
    let first = try run(0).begin()
    first.sink.close()
    // Like a report that stays open on every table and view, and a writer beside it.
    let others = try first.eye.column(
      """
      SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n \
      ON n.oid = c.relnamespace WHERE n.nspname = 'salesforce' AND c.relkind IN ('r', 'v')
      """)
    try first.eye.execute(
      "BEGIN; LOCK TABLE \(others.joined(separator: ", ")) IN ROW EXCLUSIVE MODE")
    let second = try run(1)
    try second.sink.open()
    try second.write(["a", "b"])
    try second.write(["first"], type: "UPDATE")
    try second.write(["a"], type: "DELETE")
    try second.commit()
    second.sink.close()
    #expect(second.notices == [])
    #expect(
      try database.connect().column("SELECT id FROM salesforce.opportunity_live ORDER BY 1")
        == ["b", "first"])
  }

  @Test("A view that somebody has replaced is made again, and its options stay")
  func replaced() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    first.sink.close()
    let definition = "SELECT pg_get_viewdef('salesforce.opportunity_live')"
    let made = try first.eye.column(definition)
    let columns = try first.eye.column(
      "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = "
        + "'salesforce.opportunity_live'::regclass ORDER BY attnum")
    try first.eye.execute(
      """
      CREATE OR REPLACE VIEW salesforce.opportunity_live WITH (security_barrier=true) AS \
      SELECT \(columns.joined(separator: ", ")) FROM salesforce.opportunity
      """)
    let second = try SinkRun(database, ordinal: 1)
    try second.sink.open()
    try second.write(["a"])
    try second.commit()
    #expect(try first.eye.column(definition) == made)
    #expect(
      try first.eye.column(
        "SELECT reloptions FROM pg_class WHERE oid = 'salesforce.opportunity_live'::regclass")
        == ["{security_barrier=true}"])
  }
}
