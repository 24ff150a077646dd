import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Changed records of a subset", .enabled(if: PostgresCluster.isAvailable))
struct SubsetTests {
  private func begin(_ database: TestDatabase, subsets: Set<String>) throws -> SinkRun {
    try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
      $0.subsets = subsets
    }.begin()
  }

  /// Records that may be read again, if all that is known of them came `seconds` ago.
  private func waiting(_ run: SinkRun, seconds: Int) throws -> [String]? {
    let time = "now() - interval '\(seconds) s'"
    try run.eye.execute(
      """
      UPDATE salesforce._etl_resync SET noted_at = \(time);
      UPDATE salesforce.opportunity SET _partial = false, _updated_at = \(time)
      """)
    return try run.sink.recordsToRepair("Opportunity", after: "", limit: 9)
  }

  @Test("They are read again when every reader sees the change, and those of other objects are not")
  func noted() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database, subsets: ["Opportunity"])
    try run.write(["changed"], type: "UPDATE")
    try run.write(["deleted"], type: "DELETE")
    try run.commit()
    #expect(try self.waiting(run, seconds: 30) == [])
    #expect(try self.waiting(run, seconds: 90) == ["changed", "first"])
    let other = try await TestDatabase()
    #expect(try self.waiting(self.begin(other, subsets: ["Account"]), seconds: 90) == [])
  }

  @Test("A read ends the wait only if it is certain to contain the change")
  func closed() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database, subsets: ["Opportunity"])
    #expect(try self.waiting(run, seconds: 90) == ["first"])
    let current = try #require(run.sink.pending.first?.tables.current)
    let now = try #require(
      try run.eye.column("SELECT (extract(epoch FROM now()) * 1000)::bigint").first.flatMap {
        Int64($0)
      })
    for (age, expected) in [(120_000, ["first"]), (60_000, [])] as [(Int64, [String])] {
      try run.eye.begin()
      try ResyncTable(entity: "Opportunity", schema: "salesforce").close(
        settled: ["first": now - age], current: current, over: run.eye)
      try run.eye.execute("COMMIT")
      #expect(try run.sink.recordsToRepair("Opportunity", after: "", limit: 9) == expected)
    }
    // A later change begins another wait.
    try run.write(["first"], type: "UPDATE")
    try run.commit()
    #expect(try self.waiting(run, seconds: 90) == ["first"])
  }
}
