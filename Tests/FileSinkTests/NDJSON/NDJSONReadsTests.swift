import Bytes
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("NDJSON lines of records that were read")
struct NDJSONReadsTests {
  private static func batch(_ extra: [Column] = []) -> RecordBatch {
    let metadata = Column.changeMetadata(topic: "/data/TChangeEvent", schemaID: "s")
    let layout = RecordLayout(
      topic: "/data/TChangeEvent", schemaID: "s", entity: "T", family: .changeEvent,
      slotCount: 20, fieldOrder: [16, 17, 19, 18],
      columns: metadata + [
        Column("Name", 16, .string),
        Column("Place", 17, children: [("City", 18, .string), ("Code", 19, .string)]),
      ] + extra)
    return RecordBatch(layout: layout)
  }

  private static func line(_ batch: RecordBatch, ordinal: Int64 = 41) -> String {
    let encoder = NDJSONEncoder(layout: batch.layout, isOfReads: true)
    encoder.read = .init(
      readAt: 1_771_300_995_123, epoch: 3, lastOrdinal: ordinal, stamp: 1_771_300_000_000)
    var output = ByteBuffer(capacity: 16)
    encoder.append(row: 0, of: batch, to: &output)
    return String(decoding: output.bytes, as: UTF8.self)
  }

  private static let metadata: [Int: TestCell] = [
    MetadataSlot.eventID: .text("snapshot:1:T1:0"),
    MetadataSlot.kind: .integer(Int64(EventKind.snapshot.rawValue)),
    MetadataSlot.entity: .text("T"), MetadataSlot.changeType: .text("SNAPSHOT"),
    MetadataSlot.recordID: .text("T1"),
  ]

  private static let head = """
    {"_topic":"/data/TChangeEvent","_event_id":"snapshot:1:T1:0","_schema_id":"s",\
    "_kind":"snapshot","_entity":"T","_change_type":"SNAPSHOT","_record_id":"T1",
    """

  private static let read = """
    "_system_modstamp":"2026-02-17T03:46:40.000Z","_read_at":"2026-02-17T04:03:15.123Z",\
    "_epoch":3
    """

  @Test("A full image names no fields, and its empty fields are null")
  func whole() {
    let batch = Self.batch()
    batch.addRow(
      Self.metadata.merging([16: .null, 17: .integer(0), 18: .text("Ulm"), 19: .null]) { $1 })
    #expect(
      Self.line(batch)
        == Self.head + Self.read
        + #","_ordinal":41,"Name":null,"Place":{"City":"Ulm","Code":null}}"#
        + "\n")
    // Before the first event, the last one is unknown.
    #expect(
      Self.line(batch, ordinal: -1)
        == Self.head + Self.read + #","Name":null,"Place":{"City":"Ulm","Code":null}}"# + "\n")
  }

  @Test("Fields that were not read are absent, and the line names the others")
  func partial() {
    let batch = Self.batch()
    batch.addRow(Self.metadata.merging([17: .integer(0), 18: .null]) { $1 })
    #expect(
      Self.line(batch)
        == Self.head + #""_changed_fields":["Place"],"# + Self.read
        + #","_ordinal":41,"Place":{"City":null}}"# + "\n")
    let other = Self.batch()
    other.addRow(Self.metadata.merging([16: .text("x")]) { $1 })
    #expect(
      Self.line(other)
        == Self.head + #""_changed_fields":["Name"],"# + Self.read + #","_ordinal":41,"Name":"x"}"#
        + "\n")
  }

  @Test("A column that took a metadata name keeps it, and no key occurs twice")
  func collision() {
    let batch = Self.batch([Column("_epoch", 16, .string)])
    batch.addRow(
      Self.metadata.merging([16: .text("x"), 17: .null, 18: .null, 19: .null]) { $1 })
    let line = Self.line(batch)
    #expect(line.split(separator: "\"_epoch\":", omittingEmptySubsequences: false).count == 2)
    #expect(line.contains(#""_epoch":"x""#))
  }
}
