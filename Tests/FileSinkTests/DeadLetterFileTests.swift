import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Dead-letter files")
struct DeadLetterFileTests {
  private let fileSystem = ModelFileSystem()

  private func file() -> DeadLetterFile {
    DeadLetterFile(
      directory: "/dead", pipeline: "opps", org: "00D", fileSystem: self.fileSystem,
      clock: TestClock().sinkClock)
  }

  @Test("A letter is a line with everything needed to decode the event again")
  func line() throws {
    let dead = self.file()
    try dead.recover(from: nil)
    try dead.append(ScriptedRun.letter(TestEvent(number: 3)))
    #expect(dead.count == 1)
    #expect(dead.pendingByteCount > 0)
    let state = try dead.flush(finish: false)
    #expect(state["files"]?.array?.count == 1)
    self.fileSystem.kill()
    let next = self.file()
    try next.recover(from: state)
    #expect(next.count == 0 && next.finishedFileCount == 1)
    let path =
      "/dead/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000003.dead.ndjson.zst"
    let lines = try Decompression.lines(of: try #require(self.fileSystem.files[path]))
    #expect(
      try lines.map { try JSONValue(parsing: $0) } == [
        [
          "topic": "/data/OpportunityChangeEvent", "replay_id": "7233", "event_id": "e3",
          "schema_id": "schema", "epoch": 1, "ordinal": 3, "time": "2026-02-17T04:03:15.000Z",
          "kind": "undecodable", "reason": "Amount: string of 90 bytes, 14 left",
          "field_path": "Amount", "offset": 7, "sink": nil, "column": nil, "sqlstate": nil,
          "payload": "AQID",
        ]
      ])
  }

  @Test("Letters of two channels with the same name have separate files")
  func channels() throws {
    let dead = self.file()
    try dead.recover(from: nil)
    for topic in ["/data/Sales__chn", "/event/Sales__chn"] {
      try dead.append(ScriptedRun.letter(TestEvent(number: 0, topic: topic)))
    }
    _ = try dead.flush(finish: true)
    _ = try dead.committed()
    #expect(dead.finishedFileCount == 2)
  }

  @Test("Dead letters and rows in one directory leave each other's files alone")
  func sharedDirectory() throws {
    let dead = self.file()
    try dead.recover(from: nil)
    try dead.append(ScriptedRun.letter(TestEvent(number: 3)))
    let state = try dead.flush(finish: false)
    let sink = FileSink(
      FileSinkConfiguration(directory: "/dead", pipeline: "opps", org: "00D"),
      fileSystem: self.fileSystem, clock: TestClock().sinkClock)
    try sink.recover(from: nil)
    self.fileSystem.kill()
    try self.file().recover(from: state)
    #expect(self.fileSystem.files.keys.filter(ModelFileSystem.isFinal).count == 1)
  }
}
