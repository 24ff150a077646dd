import ArgumentParser
import Bytes
import Checkpoint
import Glibc
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Commands on checkpoints", .serialized)
struct CheckpointCommandTests {
  private static func text(topic: String = "\"/data/OpportunityChangeEvent\"") -> String {
    """
    {
      "version": 1, "name": "opps",
      "source": {
        "type": "salesforce", "topic": \(topic),
        "org": { "auth": { "type": "token", "instance_url": "https://acme.my.salesforce.com",
          "access_token": "t" } }
      },
      "sinks": [ { "type": "files", "directory": "out" } ],
      "checkpoint": { "type": "file", "directory": "state" }
    }
    """
  }

  /// The exit code of a command line.
  private func run(_ state: StateSample, _ arguments: String...) async throws -> Int32 {
    let file = state.configuration.file
    do {
      var command = try Program.parseAsRoot(
        Array(arguments.prefix(2)) + [file] + Array(arguments.dropFirst(2)))
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

  private func position(_ state: StateSample) throws -> TopicPosition? {
    try FileCheckpointStore.peek(state.paths)?.topics[StateSample.topic]
  }

  @Test("A position is set only with consent, and the journal records the change")
  func set() async throws {
    let state = try StateSample(Self.text())
    try state.store([StateSample.topic: state.position(epoch: 3, confirmedAt: 1)])
    let topic = ["--topic", StateSample.topic]
    #expect(
      try await self.run(state, "checkpoint", "set", topic[0], topic[1], "--replay-id", "00bb")
        == 64)
    #expect(try self.position(state)?.epoch == 3)
    #expect(access(state.paths.journal, F_OK) != 0)
    #expect(
      try await self.run(
        state, "checkpoint", "set", topic[0], topic[1], "--replay-id", "00BB", "--yes") == 0)
    let changed = try #require(try self.position(state))
    #expect(changed == TopicPosition(beginningEpoch: 4, after: ReplayID([0, 0xBB])))
    #expect(
      try await self.run(state, "checkpoint", "set", topic[0], topic[1], "--earliest", "--yes")
        == 0)
    #expect(try self.position(state) == TopicPosition(beginningEpoch: 5, start: .earliest))
    let lines = try state.read(state.paths.journal).split(separator: "\n")
    #expect(lines.count == 2)
    let line = try JSONValue(parsing: Array(#require(lines.first).utf8))
    #expect(line["uid"]?.integer == Int64(getuid()))
    #expect(line["topic"]?.string == StateSample.topic)
    #expect(line["old"]?["epoch"]?.integer == 3)
    #expect(line["new"]?["resume"]?.string == "00bb")
  }

  @Test("Nothing is set during a run, for an unknown topic, or without a stored position")
  func refused() async throws {
    let state = try StateSample(Self.text())
    let topic = StateSample.topic
    #expect(
      try await self.run(state, "checkpoint", "set", "--topic", topic, "--latest", "--yes") == 65)
    #expect(access(state.paths.directory, F_OK) != 0)
    try state.store([topic: state.position(confirmedAt: 1)])
    #expect(
      try await self.run(state, "checkpoint", "set", "--topic", "/data/X", "--latest", "--yes")
        == 64)
    let store = try FileCheckpointStore(directory: state.paths.directory, pipeline: "opps")
    #expect(
      try await self.run(state, "checkpoint", "set", "--topic", topic, "--latest", "--yes") == 75)
    withExtendedLifetime(store) {}
    #expect(try self.position(state)?.epoch == 1)
  }

  @Test(
    "A refused command does not hide how the last run ended, and is not taken for a killed run",
    arguments: [
      ["checkpoint", "set", "--topic", StateSample.topic, "--latest"],
      ["dead-letters", "drop", "nobody-e1-1"], ["dead-letters", "retry", "nobody-e1-1"],
    ])
  func refusedAfterRun(command: [String]) async throws {
    let state = try StateSample(Self.text())
    let now = UTCTime.now()
    try state.store([StateSample.topic: state.position(confirmedAt: now)])
    for (lastRun, kinds) in [(Int32(1), []), (2, ["killed"])] {
      try LastRun.store(
        state.report(.success, at: now - 2000), processID: lastRun, in: state.paths,
        hiding: SecretMask())
      // Run 1 took the lock last.
      try state.write("1\n", to: state.paths.lock)
      func found() throws -> [String] {
        try PipelineStatus.read(state.configuration, maxAge: nil).problems.map(\.kind)
      }
      #expect(try found() == kinds)
      let file = state.configuration.file
      var parsed = try Program.parseAsRoot(
        Array(command.prefix(2)) + [file] + Array(command.dropFirst(2)))
      await #expect(throws: ExitCode(rawValue: 64)) {
        guard var command = parsed as? any AsyncParsableCommand else { return try parsed.run() }
        try await command.run()
      }
      #expect(try found() == kinds)
    }
  }

  @Test("The next run resumes from a restored checkpoint")
  func restore() async throws {
    let state = try StateSample(Self.text())
    #expect(
      try await self.run(state, "checkpoint", "restore", "--from-manifest", "--yes") == 65)
    let now = UTCTime.timestamp(milliseconds: UTCTime.now())
    try state.write(
      StateSample.line(0...4, replayIDs: ("00a0", "00a4"), committed: now),
      to: state.output + "/_manifest.ndjson")
    #expect(try await self.run(state, "checkpoint", "restore", "--from-manifest") == 64)
    #expect(try self.position(state) == nil)
    #expect(try await self.run(state, "checkpoint", "restore", "--from-manifest", "--yes") == 0)
    let position = try #require(try self.position(state))
    #expect(position.nextOrdinal == 5)
    #expect(position.resume?.hex == "00a4")
    let document = try #require(try FileCheckpointStore.peek(state.paths))
    #expect(document.org == StateSample.org)
    #expect(document.sinks["files"]?.directory == state.output)
    // Never over a checkpoint that is there.
    #expect(
      try await self.run(state, "checkpoint", "restore", "--from-manifest", "--yes") == 65)
    #expect(try await self.run(state, "checkpoint", "show") == 0)
  }
}
