import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Dead letters and manifests of hostile events")
struct HostileLettersTests {
  @Test("Lines and manifest can be read, whatever names an accepted event contains")
  func lines() throws {
    let texts = [
      "", "\"", "\\", "\u{1}\n\u{7F}", "\u{2028}\u{FEFF}", "e\u{301}é", "😀\u{10FFFF}", "\0",
      String(repeating: "x", count: 1024), String(repeating: "\u{1}", count: 1024),
    ]
    for (number, text) in texts.enumerated() {
      let fileSystem = ModelFileSystem()
      func file() -> DeadLetterFile {
        DeadLetterFile(
          directory: "/dead", pipeline: "opps", org: "00D", fileSystem: fileSystem,
          clock: TestClock().sinkClock)
      }
      let dead = file()
      try dead.recover(from: nil)
      let letter = DeadLetter(
        topic: "/data/OpportunityChangeEvent",
        replayID: ReplayID(Array(repeating: 0xFF, count: number % 2 == 0 ? 1 : 1024)),
        eventID: text,
        schemaID: text, payload: Array(repeating: 0, count: 1 << 20), reason: text, fieldPath: text,
        byteOffset: .max, epoch: 1, ordinal: 3)
      try dead.append(letter)
      let state = try JSONValue(parsing: dead.flush(finish: true).text())
      fileSystem.kill()
      let next = file()
      try next.recover(from: state)
      let path =
        "/dead/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000003.dead.ndjson.zst"
      let data = try #require(fileSystem.files[path])
      let line = try #require(try Decompression.lines(of: data).first)
      let json = try JSONValue(parsing: line)
      for key in ["event_id", "schema_id", "reason", "field_path"] {
        #expect(json[key]?.string?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
      }
      #expect(json["replay_id"]?.string == letter.replayID.hex)
      var names = 0
      try Manifest(directory: "/dead", fileSystem: fileSystem).peek { line, _ in
        names += 1
        let json = try? JSONValue(parsing: Array(line))
        #expect(json?["schema_ids"]?.array?.first?.string == text)
      }
      #expect(names == 1)
    }
  }

  @Test("An endless group of equal replay IDs does not make an endless line")
  func tail() throws {
    let batch = RecordBatch(
      layout: RecordLayout(
        topic: "/data/C__chn", schemaID: "s", entity: "A", family: .changeEvent,
        slotCount: MetadataSlot.count, fieldOrder: [], columns: []))
    var tail = StreamTail()
    var scratch: [UInt8] = []
    let id = Array(repeating: UInt8(ascii: "e"), count: 1024)
    for number in 0..<1500 {
      let row = batch.addRow()
      let eventID = id.withUnsafeBufferPointer { batch.append($0) }
      batch.events.append(
        RecordBatch.Event(
          firstRow: row, rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 8),
          eventID: eventID, commitTimestamp: nil, kind: .change, ordinal: Int64(number)))
    }
    tail.advance(over: batch, count: 1500, &scratch)
    #expect(tail.json["group"]?.array?.isEmpty == true)
    #expect(tail.group.byteCount < 2 << 20)
  }
}
