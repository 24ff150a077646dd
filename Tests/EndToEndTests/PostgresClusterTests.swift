import TestSupport
import Testing

@Suite("Test clusters", .serialized) struct PostgresClusterTests {
  @Test("Each test has its own database", .enabled(if: PostgresCluster.isAvailable))
  func databases() async throws {
    let cluster = try await PostgresCluster.shared
    let (one, two) = (try cluster.makeDatabase(), try cluster.makeDatabase())
    try cluster.query("CREATE TABLE t AS SELECT 7 AS a, NULL AS b", database: one)
    #expect(try cluster.query("TABLE t", database: one) == "7|")
    #expect(throws: (any Error).self) { try cluster.query("TABLE t", database: two) }
    #expect(try await PostgresCluster.shared === cluster)
  }

  @Test("Committed rows survive a crash of the server", .enabled(if: PostgresCluster.isAvailable))
  func crash() throws {
    let cluster = try PostgresCluster(settings: ["max_connections=7"])
    try cluster.query("CREATE TABLE t AS SELECT 1", database: "postgres")
    try cluster.stopImmediately()
    #expect(throws: (any Error).self) { try cluster.query("TABLE t", database: "postgres") }
    try cluster.start()
    #expect(try cluster.query("TABLE t", database: "postgres") == "1")
    #expect(try cluster.query("SHOW max_connections", database: "postgres") == "7")
  }
}
