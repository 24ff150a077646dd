import FoundationEssentials
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

/// The example of the page WritingASink.
@Suite("Book: a sink")
struct CountsSinkTests {
  private let directory: TemporaryDirectory
  private var file: String { "\(self.directory.path)/counts.json" }

  init() throws { self.directory = try TemporaryDirectory() }

  private final class NoDeadLetters: DeadLetterStore {
    let count = 0
    let isDue = false
    let pendingByteCount = 0
    func recover(from state: JSONValue?) {}
    func append(_ letter: DeadLetter) {}
    func flush(finish: Bool) -> JSONValue { [:] }
    func committed() -> Bool { false }
  }

  private static func batch(_ entity: String, rows: Int) -> RecordBatch {
    let batch = RecordBatch(
      layout: RecordLayout(
        topic: "/data/\(entity)ChangeEvent", schemaID: "s", entity: entity, family: .changeEvent,
        slotCount: MetadataSlot.count, fieldOrder: [], columns: []))
    let none = RecordBatch.Range(offset: 0, count: 0)
    for ordinal in 0..<rows {
      batch.events.append(
        RecordBatch.Event(
          firstRow: batch.addRow(), rowCount: 1, replayID: none, eventID: none,
          commitTimestamp: nil, kind: .change, ordinal: Int64(ordinal)))
    }
    return batch
  }

  private func content() throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: self.file)), as: UTF8.self)
  }

  private func settings(_ text: String) throws -> (CountsSettings?, [String]) {
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      try JSONValue(parsing: text), path: "/sinks/0", mistakes: mistakes,
      context: ConfigurationReader(
        file: "/p/p.json", base: "/p", environment: Environment([:]), secretFiles: SecretFiles()))
    let settings = CountsSettings.read(reader)
    return (settings, mistakes.all.map { "\($0.path): \($0.message)" })
  }

  @Test("Settings are read from the sink's object, and mistakes name their place")
  func reading() throws {
    let (settings, mistakes) = try self.settings(#"{"type": "counts", "file": "../out/c.json"}"#)
    #expect(mistakes == [])
    #expect(settings?.name == "counts")
    #expect(settings?.file == "/out/c.json")
    #expect(try self.settings(#"{"type": "counts"}"#).0 == nil)
    let (_, others) = try self.settings(#"{"type": "counts", "file": "c", "fiel": "d"}"#)
    #expect(others.count == 1 && others[0].contains("fiel"))
  }

  @Test("A commit stores the counts in the checkpoint, then in the file")
  func commit() throws {
    let settings = try #require(
      try self.settings(#"{"type": "counts", "name": "c", "file": "\#(self.file)"}"#).0)
    #expect(!settings.keepsPosition && !settings.takesReads && !settings.takesStandardOutput)
    let sink = CountsSink(name: settings.name, file: settings.file)
    try sink.recover(from: nil)
    var saved: [[String: JSONValue]] = []
    let store = CheckpointedStore(
      sinks: [StagedSink(sink)], deadLetters: NoDeadLetters()
    ) { _, states, _ in
      #expect(throws: (any Error).self) { try self.content() }
      saved.append(states)
    }
    try store.write(Self.batch("Account", rows: 2))
    try store.write(Self.batch("Lead", rows: 1))
    try store.seal(isLast: true)
    _ = try store.prepare(Commit(positions: [:], isLast: true))
    _ = try store.commit()
    try store.complete()
    #expect(saved.count == 1)
    #expect(saved[0]["c"]?["counts"] == ["Account": 2, "Lead": 1])
    #expect(try self.content() == "{\"Account\":2,\"Lead\":1}\n")
  }

  @Test("After a crash the counts are those of the last checkpoint")
  func crash() throws {
    let sink = CountsSink(name: "c", file: self.file)
    try sink.recover(from: nil)
    try sink.write(Self.batch("Account", rows: 2))
    let durable = try sink.flush(finish: false)
    // The next commit fills while this one is stored.
    try sink.write(Self.batch("Account", rows: 5))
    _ = try sink.committed()
    #expect(try self.content() == "{\"Account\":2}\n")
    _ = try sink.flush(finish: false)
    // Killed before the second checkpoint: its five rows come again.
    let next = CountsSink(name: "c", file: self.file)
    try next.recover(from: durable)
    try next.write(Self.batch("Account", rows: 5))
    #expect(try next.flush(finish: true)["counts"] == ["Account": 7])
  }

  @Test(
    "Counts that no run can have stored are refused", arguments: ["-1", "1.5", "\"2\"", "1e300"])
  func hostile(_ count: String) throws {
    let state = try JSONValue(parsing: #"{"type": "counts", "counts": {"Account": \#(count)}}"#)
    let failure = try #require(throws: RunFailure.self) {
      try CountsSink(name: "c", file: self.file).recover(from: state)
    }
    #expect(failure.exitCode == .data)
  }
}
