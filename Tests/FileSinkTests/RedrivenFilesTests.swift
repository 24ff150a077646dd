import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Redriven events in files")
struct RedrivenFilesTests {
  private let fileSystem = ModelFileSystem()
  private let batches = TestBatches()

  private func sink(from state: JSONValue? = nil) throws -> FileSink {
    let sink = FileSink(
      FileSinkConfiguration(directory: "/out", pipeline: "opps", org: "00D"),
      fileSystem: self.fileSystem, clock: TestClock().sinkClock)
    try sink.recover(from: state)
    return sink
  }

  private func write(_ events: [TestEvent], to sink: FileSink, isRedriven: Bool = false) throws {
    for batch in self.batches.batches(events[...]) {
      batch.isRedriven = isRedriven
      try sink.write(batch)
    }
  }

  private func finish(_ sink: FileSink) throws -> JSONValue {
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    return try sink.flush(finish: true)
  }

  /// Event IDs, each with the ordinal that its line has.
  private func lines(_ name: String) throws -> [String] {
    let path = "/out/Opportunity/commit_date=2026-02-17/\(name).ndjson.zst"
    return try Decompression.lines(of: try #require(self.fileSystem.files[path])).map { line in
      let json = try JSONValue(parsing: line)
      let place = json["_epoch"]?.integer.map { "\($0)/" } ?? ""
      return (json["_event_id"]?.string ?? "")
        + (json["_ordinal"]?.integer.map { " \(place)\($0)" } ?? "")
    }
  }

  private func manifest() throws -> [JSONValue] {
    try String(decoding: self.fileSystem.files["/out/_manifest.ndjson"] ?? [], as: UTF8.self)
      .split(separator: "\n").map { try JSONValue(parsing: String($0)) }
  }

  @Test("Lines after a missing event carry their positions, up to the end of their file")
  func hole() throws {
    let sink = try self.sink()
    try self.write([0, 1].map { TestEvent(number: $0) }, to: sink)
    try self.write([3, 4].map { TestEvent(number: $0) }, to: sink)
    try self.write([TestEvent(number: 5)], to: sink)
    _ = try self.finish(sink)
    try self.write([TestEvent(number: 6)], to: sink)
    _ = try self.finish(sink)
    #expect(
      try self.lines("opps-OpportunityChangeEvent-e1-000000000000")
        == ["e0", "e1", "e3 1/3", "e4 1/4", "e5 1/5"])
    #expect(try self.lines("opps-OpportunityChangeEvent-e1-000000000006") == ["e6"])
  }

  @Test("Events that stages left out or that belong to another topic do not count as missing")
  func noHole() throws {
    let sink = try self.sink()
    var empty = TestEvent(number: 1)
    empty.rowCount = 0
    try self.write([TestEvent(number: 0), empty, TestEvent(number: 2)], to: sink)
    try self.write([TestEvent(number: 9, topic: "/data/AccountChangeEvent")], to: sink)
    try self.write([TestEvent(number: 3)], to: sink)
    _ = try self.finish(sink)
    #expect(
      try self.lines("opps-OpportunityChangeEvent-e1-000000000000") == ["e0", "e2", "e3"])
  }

  @Test("Redriven events have their own files, which sort in place and do not affect the position")
  func redriven() throws {
    var sink = try self.sink()
    try self.write([0, 1, 3].map { TestEvent(number: $0) }, to: sink)
    var state = try self.finish(sink)
    self.fileSystem.kill()
    sink = try self.sink(from: state)
    let history = sink.history
    try self.write([TestEvent(number: 2)], to: sink, isRedriven: true)
    try self.write([TestEvent(number: 4)], to: sink, isRedriven: true)
    state = try self.finish(sink)
    #expect(
      try self.lines("opps-OpportunityChangeEvent-e1-000000000002") == ["e2 1/2", "e4 1/4"])
    let line = try #require(try self.manifest().last)
    #expect(line["redriven"] == true && line["resume"] == .some(nil))
    #expect(try self.manifest().first?["redriven"] == nil)
    self.fileSystem.kill()
    #expect(try self.sink(from: state).history.topics.keys == history.topics.keys)
  }
}
