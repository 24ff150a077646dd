import Checkpoint
import Clocks
import FileSink
import FoundationEssentials
import JSON
import Logging
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Files in progress of removed sinks")
struct RemovedSinkFilesTests {
  private let root: TemporaryDirectory
  private var directory: String { self.root.path + "/out" }

  init() throws { self.root = try TemporaryDirectory() }

  /// A checkpoint with a sink that has a file in progress.
  private func document() throws -> CheckpointDocument {
    let sink = FileSink(
      FileSinkConfiguration(name: "old", directory: self.directory, pipeline: "opps", org: "00D"))
    try sink.recover(from: nil)
    let layout = RecordLayout(
      topic: "/event/E__e", schemaID: "s", entity: "E__e", family: .platformEvent,
      slotCount: MetadataSlot.count, fieldOrder: [],
      columns: [
        Column(
          name: "_event_id", path: ["_event_id"], content: .slot(MetadataSlot.eventID, .string))
      ])
    let batch = RecordBatch(layout: layout)
    batch.epoch = 1
    let row = batch.addRow()
    batch.events.append(
      RecordBatch.Event(
        firstRow: row, rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 0),
        eventID: RecordBatch.Range(offset: 0, count: 0), commitTimestamp: nil, kind: .event,
        ordinal: 0))
    try sink.write(batch)
    let state = try sink.flush(finish: false)
    return CheckpointDocument(
      pipeline: "opps", org: "00D", topics: ["/event/E__e": TopicPosition(beginningEpoch: 1)],
      sinks: ["old": SinkState(state)])
  }

  /// A run with another sink: the next checkpoint, and what it has told.
  private func run(
    _ document: CheckpointDocument
  ) throws -> (document: CheckpointDocument, told: [(Logger.Level, String)]) {
    let succession = try SinkSuccession(
      document, sinks: [("new", .now, self.root.path + "/new")], now: 0)
    var told: [(Logger.Level, String)] = []
    var next = document
    next.sinks = succession.states
    next.removedSinks = try RemovedSinkFiles(pipeline: "opps", org: "00D", clock: ProcessClock())
      .finish(succession) {
        told.append(($0, $1))
      }
    return (next, told)
  }

  private func files() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: self.directory)
      .filter { $0.contains("E__e-e1") }
  }

  @Test("The first run without a sink finishes the sink's files")
  func finished() throws {
    let first = try self.run(self.document())
    #expect(first.told.isEmpty)
    #expect(try self.files().allSatisfy { $0.hasSuffix(".ndjson.zst") })
    #expect(try self.files().count == 1)
    #expect(first.document.removedSinks["old"]?.state.openFileCount == 0)
  }

  @Test("A missing directory gives one warning, and its files are finished once it returns")
  func goneDirectory() throws {
    let document = try self.document()
    let aside = self.root.path + "/aside"
    try FileManager.default.moveItem(atPath: self.directory, toPath: aside)
    let first = try self.run(document)
    #expect(first.told.map(\.0) == [.warning])
    #expect(first.told[0].1.contains("\(self.directory) does not exist"))
    #expect(first.document.removedSinks["old"]?.state == document.sinks["old"])
    let second = try self.run(first.document)
    #expect(second.told.map(\.0) == [.info])
    try FileManager.default.moveItem(atPath: aside, toPath: self.directory)
    let third = try self.run(second.document)
    #expect(third.told.isEmpty)
    #expect(try self.files().count == 1 && self.files()[0].hasSuffix(".ndjson.zst"))
  }

  @Test("An unusable directory does not stop a run")
  func unusable() throws {
    let document = try self.document()
    try FileManager.default.removeItem(atPath: self.directory)
    try "a file".write(toFile: self.directory, atomically: false, encoding: .utf8)
    let next = try self.run(document)
    #expect(next.told.map(\.0) == [.warning])
    #expect(next.document.removedSinks["old"]?.state.openFileCount == 1)
  }
}
