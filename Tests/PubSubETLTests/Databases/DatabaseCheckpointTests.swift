import ArgumentParser
import Bytes
import Checkpoint
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Checkpoint commands with a database", .enabled(if: PostgresCluster.isAvailable))
struct DatabaseCheckpointTests {
  private static let topic = StateSample.topic

  /// The exit code of `checkpoint …`.
  private func run(_ sample: DatabaseSample, _ arguments: String...) async throws -> Int32 {
    do {
      var command = try Program.parseAsRoot(
        ["checkpoint", arguments[0], sample.configuration.file] + arguments.dropFirst())
      guard var asynchronous = command as? any AsyncParsableCommand else {
        try command.run()
        return 0
      }
      try await asynchronous.run()
      return 0
    } catch {
      return Program.exitCode(for: error).rawValue
    }
  }

  @Test("A position is set and noted in both stores, in the epoch after the highest")
  func set() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store([Self.topic: sample.state.position(epoch: 2, confirmedAt: 1)])
    try sample.store(sample.state.position(epoch: 5, confirmedAt: 1))
    #expect(
      try await self.run(sample, "set", "--topic", Self.topic, "--replay-id", "00bb") == 64)
    #expect(try sample.position().epoch == 5)
    #expect(
      try await self.run(sample, "set", "--topic", Self.topic, "--replay-id", "00bb", "--yes")
        == 0)
    let expected = TopicPosition(beginningEpoch: 6, after: ReplayID([0, 0xBB]))
    #expect(try sample.position() == expected)
    #expect(try sample.copy() == expected)
    #expect(
      try sample.query("SELECT fence, lease_until <= now() FROM salesforce._etl_checkpoint")
        == "8|t")
    let detail = try sample.query(
      "SELECT detail FROM salesforce._etl_journal WHERE action = 'set_position'")
    let line = try JSONValue(parsing: detail)
    #expect(line["old"]?["epoch"]?.integer == 5)
    #expect(line["new"]?["epoch"]?.integer == 6)
    #expect(line["command"]?.string == "checkpoint set --replay-id 00bb")
    #expect(try sample.state.read(sample.state.paths.journal).contains("00bb"))
    #expect(try await self.run(sample, "show") == 0)
  }

  @Test("Nothing is set while another host has the lease, or for another org")
  func refused() async throws {
    let sample = try await DatabaseSample()
    try sample.state.store([Self.topic: sample.state.position(confirmedAt: 1)])
    try sample.store(sample.state.position(confirmedAt: 1), lease: "1 minute")
    let before = try sample.query("TABLE salesforce._etl_checkpoint")
    #expect(try await self.run(sample, "set", "--topic", Self.topic, "--latest", "--yes") == 75)
    #expect(try sample.query("TABLE salesforce._etl_checkpoint") == before)
    #expect(try sample.copy()?.epoch == 1)
    try sample.query(
      "UPDATE salesforce._etl_checkpoint SET org = '00Dother', lease_until = now()")
    #expect(try await self.run(sample, "set", "--topic", Self.topic, "--latest", "--yes") == 65)
    #expect(try sample.copy()?.epoch == 1)
    #expect(try sample.query("SELECT count(*) FROM salesforce._etl_journal") == "0")
  }

  @Test("Without files and checkpoint, the database's position is shown and set")
  func alone() async throws {
    let sample = try await DatabaseSample(hasFiles: false)
    #expect(try await self.run(sample, "show") == 65)
    #expect(try await self.run(sample, "set", "--topic", Self.topic, "--latest", "--yes") == 65)
    try sample.store(sample.state.position(epoch: 3, confirmedAt: 1))
    #expect(try await self.run(sample, "show") == 0)
    #expect(try await self.run(sample, "set", "--topic", Self.topic, "--latest", "--yes") == 0)
    #expect(try sample.position() == TopicPosition(beginningEpoch: 4, start: .latest))
    #expect(try sample.copy() == nil)
    #expect(try await self.run(sample, "restore", "--from-manifest", "--yes") == 65)
  }

  @Test("A restored checkpoint resumes alongside the database, which keeps its position")
  func restoreGoesOn() async throws {
    let sample = try await DatabaseSample()
    let position = try sample.state.position(ordinal: 9, confirmedAt: 1)
    try sample.store(position)
    let now = UTCTime.timestamp(milliseconds: UTCTime.now())
    try sample.state.write(
      StateSample.line(0...4, replayIDs: ("00a0", "00a4"), committed: now),
      to: sample.state.output + "/_manifest.ndjson")
    #expect(try await self.run(sample, "restore", "--from-manifest", "--yes") == 0)
    #expect(try sample.copy()?.nextOrdinal == 5)
    #expect(try sample.position().json == position)
    let document = try #require(try FileCheckpointStore.peek(sample.state.paths))
    // The next run knows the sink: nobody has to say where it begins.
    #expect(document.sinks.keys.sorted() == ["files", "warehouse"])
  }

  @Test("The database starts the epoch that restored files start")
  func restoreReadsAgain() async throws {
    let sample = try await DatabaseSample()
    try sample.store(sample.state.position(epoch: 4, ordinal: 9, confirmedAt: 1))
    let now = UTCTime.timestamp(milliseconds: UTCTime.now())
    // Three of the events were in a file in progress.
    try sample.state.write(
      StateSample.line(0...4, replayIDs: ("00a0", "00a4"), committed: now)
        + StateSample.line(8...9, replayIDs: ("00a8", "00a9"), committed: now),
      to: sample.state.output + "/_manifest.ndjson")
    #expect(try await self.run(sample, "restore", "--from-manifest", "--yes") == 0)
    let expected = TopicPosition(beginningEpoch: 5, after: ReplayID([0, 0xA4]))
    #expect(try sample.copy() == expected)
    #expect(try sample.position() == expected)
  }
}
