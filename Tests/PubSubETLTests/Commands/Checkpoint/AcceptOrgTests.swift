import ArgumentParser
import Checkpoint
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Accepting another org")
struct AcceptOrgTests {
  private static let other = "00DXX0000000002EAA"
  private static let topic = StateSample.topic

  static func text(start: String = "\"earliest\"", snapshot: String = "{}") -> String {
    """
    {
      "version": 1, "name": "opps",
      "source": {
        "type": "salesforce", "topic": "\(Self.topic)", "start": \(start), "snapshot": \(snapshot),
        "org": { "org_id": "\(Self.other)", "auth": { "type": "token",
          "instance_url": "https://acme.my.salesforce.com", "access_token": "t" } }
      },
      "sinks": [ { "type": "files", "directory": "out" } ],
      "checkpoint": { "type": "file", "directory": "state" }
    }
    """
  }

  private func accept(_ state: StateSample, _ options: String...) async throws -> Int32 {
    do {
      let command = try Program.parseAsRoot(
        ["checkpoint", "accept-org", state.configuration.file] + options)
      guard var command = command as? any AsyncParsableCommand else { return -1 }
      try await command.run()
      return 0
    } catch {
      return Program.exitCode(for: error).rawValue
    }
  }

  private func document(_ state: StateSample) throws -> CheckpointDocument? {
    try FileCheckpointStore.peek(state.paths)
  }

  @Test("Every topic starts a new epoch, and the journal records the change")
  func accepts() async throws {
    let state = try StateSample(Self.text())
    try state.store([
      Self.topic: state.position(epoch: 3, confirmedAt: 1),
      "/data/GoneChangeEvent": state.position(epoch: 1, confirmedAt: 1),
    ])
    try state.write(StateSample.line(0...4, epoch: 5), to: state.output + "/_manifest.ndjson")
    #expect(try await self.accept(state) == 64)
    #expect(try self.document(state)?.org == StateSample.org)
    #expect(try await self.accept(state, "--yes") == 0)
    let document = try #require(try self.document(state))
    #expect(document.org == Self.other)
    #expect(document.topics[Self.topic] == TopicPosition(beginningEpoch: 6))
    #expect(document.topics["/data/GoneChangeEvent"] == TopicPosition(beginningEpoch: 2))
    #expect(document.sinks["files"]?.json["awaited_reads"] == nil)
    let journal = try JSONValue(parsing: state.read(state.paths.journal))
    #expect(journal["command"]?.string == "checkpoint accept-org")
    #expect(journal["old"]?["org"]?.string == StateSample.org)
    #expect(journal["new"]?["org"]?.string == Self.other)
    // Also with the same org, whose stream has begun anew.
    #expect(try await self.accept(state, "--yes") == 0)
    #expect(try self.document(state)?.topics[Self.topic]?.epoch == 7)
  }

  @Test("Only --snapshot makes the next run read all records")
  func snapshot() async throws {
    let state = try StateSample(Self.text())
    try state.store([Self.topic: state.position(confirmedAt: 1)])
    #expect(try await self.accept(state, "--yes", "--snapshot") == 0)
    #expect(
      try self.document(state)?.sinks["files"]?.json["awaited_reads"] == ["Opportunity"])
    #expect(try await self.accept(state, "--yes") == 0)
    #expect(
      try self.document(state)?.sinks["files"]?.json["awaited_reads"] == ["Opportunity"])
    let never = try StateSample(Self.text(snapshot: "{\"mode\": \"never\"}"))
    try never.store([Self.topic: never.position(confirmedAt: 1)])
    #expect(try await self.accept(never, "--yes", "--snapshot") == 64)
    #expect(try self.document(never)?.org == StateSample.org)
  }

  @Test("accept-org is refused without a start for the new epoch, and without state")
  func refuses() async throws {
    let startless = try StateSample(
      Self.text().replacing("\"start\": \"earliest\",", with: ""))
    try startless.store([Self.topic: startless.position(confirmedAt: 1)])
    #expect(try await self.accept(startless, "--yes") == 78)
    let empty = try StateSample(Self.text())
    #expect(try await self.accept(empty, "--yes") == 65)
    #expect(!FilePath.exists(empty.paths.directory))
  }

  @Test("Files of another org are enough without a checkpoint")
  func withoutCheckpoint() async throws {
    let state = try StateSample(Self.text())
    try state.write(StateSample.line(0...4, epoch: 2), to: state.output + "/_manifest.ndjson")
    #expect(try await self.accept(state, "--yes") == 0)
    let document = try #require(try self.document(state))
    #expect(document.org == Self.other)
    #expect(document.topics[Self.topic] == TopicPosition(beginningEpoch: 3))
    #expect(document.sinks.keys.sorted() == ["files"])
  }
}
