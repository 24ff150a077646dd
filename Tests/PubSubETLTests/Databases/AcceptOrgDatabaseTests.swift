import ArgumentParser
import Checkpoint
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Accepting another org with a database", .enabled(if: PostgresCluster.isAvailable))
struct AcceptOrgDatabaseTests {
  private static let other = "00DXX0000000002EAA"
  private static let topic = StateSample.topic

  private func accept(_ sample: DatabaseSample, _ options: String...) async throws -> Int32 {
    do {
      let command = try Program.parseAsRoot(
        [
          "checkpoint", "accept-org", sample.configuration.file, "--yes", "--set",
          "source.org.org_id=\(Self.other)", "--set", "source.start=earliest",
        ] + options)
      guard var command = command as? any AsyncParsableCommand else { return -1 }
      try await command.run()
      return 0
    } catch {
      return Program.exitCode(for: error).rawValue
    }
  }

  @Test("Files and database start the same epoch of the new org with the same state")
  func both() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store([Self.topic: sample.state.position(epoch: 2, confirmedAt: 1)])
    try sample.store(sample.state.position(epoch: 5, confirmedAt: 1))
    #expect(try await self.accept(sample) == 0)
    let expected = TopicPosition(beginningEpoch: 6)
    #expect(try sample.position() == expected)
    #expect(try sample.copy() == expected)
    #expect(try FileCheckpointStore.peek(sample.state.paths)?.org == Self.other)
    #expect(
      try sample.query("SELECT org, fence, lease_until <= now() FROM salesforce._etl_checkpoint")
        == "\(Self.other)|8|t")
    #expect(
      try sample.query(
        "SELECT action FROM salesforce._etl_journal ORDER BY id") == "accept_org\norg")
    #expect(try sample.query("SELECT to_regclass('salesforce._etl_snapshot')") == "")
  }

  @Test("--snapshot makes the next run read all records again")
  func snapshot() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.store(sample.state.position(epoch: 5, confirmedAt: 1))
    for _ in 1...2 {
      #expect(try await self.accept(sample, "--snapshot") == 0)
      #expect(
        try sample.query(
          "SELECT entity, number, state FROM salesforce._etl_snapshot ORDER BY entity COLLATE \"C\""
        )
          == "*|0|none\nOpportunity|0|awaited")
      try sample.query(
        """
        UPDATE salesforce._etl_snapshot SET number = 4, state = 'complete', newest_stamp = now() \
        WHERE entity <> '*'
        """)
    }
    // Without it, what is complete stays, and the copy is known to lack what was before.
    #expect(try await self.accept(sample) == 0)
    #expect(
      try sample.query("SELECT number, state FROM salesforce._etl_snapshot WHERE entity <> '*'")
        == "4|complete")
    #expect(
      try sample.query(
        "SELECT DISTINCT reason, topic FROM salesforce._etl_missing_range WHERE repaired_at IS NULL"
      )
        == "org_accepted|\(Self.topic)")
    #expect(try sample.copy() == nil)
  }

  @Test("A sink added since the last run stays new")
  func newSink() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store([Self.topic: sample.state.position(confirmedAt: 1)])
    let before = try #require(try FileCheckpointStore.peek(sample.state.paths)).sinks.keys
    #expect(!before.contains("fresh"))
    let index = try #require(
      sample.configuration.sinks.firstIndex { $0.name != sample.configuration.fileSinks[0].name })
    #expect(
      try await self.accept(
        sample, "--set", "sinks.\(index).name=fresh", "--set", "sinks.\(index).schema=fresh") == 0)
    let after = try #require(try FileCheckpointStore.peek(sample.state.paths))
    #expect(after.org == Self.other)
    #expect(after.sinks["fresh"] == nil)
    #expect(after.sinks[sample.configuration.fileSinks[0].name] != nil)
  }

  @Test("Nothing changes while another host has the lease")
  func leased() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store([Self.topic: sample.state.position(confirmedAt: 1)])
    try sample.store(sample.state.position(confirmedAt: 1), lease: "1 minute")
    let before = try sample.query("TABLE salesforce._etl_checkpoint")
    #expect(try await self.accept(sample) == 75)
    #expect(try sample.query("TABLE salesforce._etl_checkpoint") == before)
    #expect(try FileCheckpointStore.peek(sample.state.paths)?.org == StateSample.org)
  }

  @Test("A new pipeline in a schema of another org gets a row after its rows")
  func firstRun() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    try sample.store(sample.state.position(epoch: 5, confirmedAt: 1))
    try sample.query("UPDATE salesforce._etl_checkpoint SET pipeline = 'others'")
    try sample.query("CREATE TABLE salesforce.opportunity_history (_epoch int)")
    try sample.query("INSERT INTO salesforce.opportunity_history VALUES (3), (7)")
    try sample.query(
      "INSERT INTO salesforce._etl_table VALUES ('opportunity_history', 'Opportunity', 'history')")
    #expect(try await self.accept(sample) == 0)
    #expect(
      try sample.query(
        "SELECT org, topics -> '\(Self.topic)' -> 'epoch' FROM salesforce._etl_checkpoint "
          + "WHERE pipeline = 'opps'") == "\(Self.other)|8")
    #expect(
      try sample.query("SELECT org FROM salesforce._etl_checkpoint WHERE pipeline = 'others'")
        == StateSample.org)
  }
}
