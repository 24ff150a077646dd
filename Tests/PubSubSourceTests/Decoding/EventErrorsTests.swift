import Avro
import Pipeline
import Testing

@testable import PubSubSource

/// What cannot be decoded: an error that names field and offset, and a batch without a trace of it.
@Suite("Undecodable events") struct EventErrorsTests {
  private static let full = AvroEventDecoderTests.payload(
    TestHeader(
      recordIDs: ["006000000000001AAA", "006000000000002AAA"], nulled: ["0x10"],
      changed: ["0x52", "2-0x03"]),
    [
      1: {
        $0.branch(1)
        $0.string("Ångström")
      },
      2: {
        $0.branch(1)
        $0.branch(1)
        $0.string("Main St")
        $0.null()
        $0.branch(1)
        $0.double(48.4)
      },
      6: {
        $0.branch(1)
        $0.long(1_771_300_995_000)
      },
      8: {
        $0.branch(1)
        $0.strings(["a", "b"])
      },
    ])

  @Test("Every prefix of an event is an error and leaves the batch unchanged") func prefixes()
    throws
  {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    #expect(try decoder.decode(Self.full, into: batch) == 2)
    let before = (batch.rowCount, batch.arenaCount, batch.events.count)
    for length in 0..<Self.full.count {
      let error = #expect(throws: EventDecodingError.self) {
        try decoder.decode(Array(Self.full[..<length]), into: batch)
      }
      #expect(error?.code == .payload)
      #expect(error?.byteOffset ?? .max <= length)
      #expect(error?.eventID == "e1b0c0de-0000-4000-8000-000000000001")
      #expect((batch.rowCount, batch.arenaCount, batch.events.count) == before)
    }
    #expect(try decoder.decode(Self.full, into: batch) == 2)
    #expect(batch.texts(row: 0) == batch.texts(row: 2))
    #expect(batch.texts(row: 1) == batch.texts(row: 3))
  }

  @Test("Changing any byte gives an event or an error") func changedBytes() throws {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    var errors = 0
    for index in Self.full.indices {
      for value in [0, 1, 2, 0x7F, 0x80, 0xFF] as [UInt8] {
        var damaged = Self.full
        damaged[index] = value
        batch.removeAll(layout: decoder.layout)
        do {
          let rows = try decoder.decode(damaged, into: batch)
          #expect(batch.rowCount == rows)
          for row in 0..<rows { _ = batch.texts(row: row) }
        } catch {
          errors += 1
          #expect(batch.rowCount == 0 && batch.arenaCount == 0 && batch.events.isEmpty)
        }
      }
    }
    #expect(errors > 100)
  }

  @Test("A message names the field and the offset, and no value") func message() throws {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    let payload = AvroEventDecoderTests.payload(
      TestHeader(),
      [
        2: {
          $0.branch(1)
          $0.null()
          $0.branch(1)
          $0.long(90)
          $0.raw(Array("secret".utf8))
        }
      ])
    let error = try #require(throws: EventDecodingError.self) {
      try decoder.decode(payload, into: batch)
    }
    #expect(error.path == "BillingAddress.City")
    #expect(error.reason.hasPrefix("BillingAddress.City at byte "))
    #expect(error.reason.hasSuffix(": a value of 90 bytes, 12 left"))
    #expect(error.schemaID == "i8wgJwwM-AVcDbFkbRl5Nw")
    #expect(!error.description.contains("secret"))
  }

  @Test(
    "A bitmap that does not fit the schema is an error",
    arguments: [
      ("0x0200", "names field 9"), ("0x8000000000000000000000000000", "names field"),
      ("2-0x08", "names field 3"), ("4-0x01", "field 4 is not a compound field"),
      ("9-0x01", "field 9 is not a compound field"), ("0xZZ", "not a bitmap"), ("", "not a bitmap"),
    ])
  func misfitBitmaps(text: String, reason: String) throws {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    for header in [
      TestHeader(changed: ["0x10", text]), TestHeader(nulled: ["0x10", text]),
      TestHeader(diff: ["0x10", text]),
    ] {
      let error = try #require(throws: EventDecodingError.self) {
        try decoder.decode(AvroEventDecoderTests.payload(header), into: batch)
      }
      #expect(error.code == .bitmap)
      #expect(error.reason.contains(reason))
      #expect(error.path.hasSuffix("Fields[1]"))
      #expect(batch.rowCount == 0 && batch.arenaCount == 0 && batch.events.isEmpty)
    }
  }

  @Test("More bitmaps than fields are an error") func excessBitmaps() throws {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    let header = TestHeader(changed: Array(repeating: "0x10", count: 11))
    let error = try #require(throws: EventDecodingError.self) {
      try decoder.decode(AvroEventDecoderTests.payload(header), into: batch)
    }
    #expect(error.code == .bitmap)
    #expect(error.path == "ChangeEventHeader.changedFields")
  }

  @Test("Too many record IDs are refused before they become rows") func manyRecordIDs() throws {
    let decoder = try AvroEventDecoderTests.decoder(
      options: EventDecodingOptions(maxRecordsPerEvent: 1000))
    let batch = RecordBatch(layout: decoder.layout)
    let header = TestHeader(recordIDs: Array(repeating: "", count: 1001))
    let error = try #require(throws: EventDecodingError.self) {
      try decoder.decode(AvroEventDecoderTests.payload(header), into: batch)
    }
    #expect(error.code == .limitExceeded)
    #expect(batch.rowCount == 0)
  }

  @Test(
    "A schema that cannot describe an event is refused",
    arguments: [
      (#""string""#, "is not a record"),
      (
        #"{"type":"record","name":"E","fields":[\#(TestHeader.schema),"#
          + #"{"name":"_topic","type":"string"}]}"#, "_topic"
      ),
      (
        #"{"type":"record","name":"E","fields":[{"name":"ChangeEventHeader","type":"#
          + #"{"type":"record","name":"H","fields":[{"name":"recordIds","type":"int"}]}}]}"#,
        "recordIds"
      ),
      (
        #"{"type":"record","name":"E","fields":[{"name":"ChangeEventHeader","type":"#
          + #"{"type":"record","name":"H","fields":[]}}]}"#, "has no field recordIds"
      ),
    ])
  func otherSchemas(schema: String, reason: String) {
    let error = #expect(throws: EventDecodingError.self) {
      try AvroEventDecoderTests.decoder(schema)
    }
    #expect(error?.code == .schema)
    #expect(error?.reason.contains(reason) == true)
  }
}
