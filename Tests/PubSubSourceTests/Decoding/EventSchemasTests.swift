import Avro
import CSystem
import Pipeline
import Testing

@testable import PubSubSource

/// Platform events, headers of other times, and memory.
@Suite("Event schemas") struct EventSchemasTests {
  private static let order = """
    {"type":"record","name":"Order_Event__e","namespace":"com.sforce.eventbus","fields":[\
    {"name":"CreatedDate","type":"long","doc":"CreatedDate:DateTime"},\
    {"name":"CreatedById","type":"string","doc":"CreatedBy:EntityId"},\
    {"name":"Order_Number__c","type":["null","string"],"default":null,\
    "doc":"Data:Text:00NgL00000vXMFS"},\
    {"name":"City__c","type":["null","string"],"default":null,"doc":"Data:Text:00NgL00000vXNGM"},\
    {"name":"Amount__c","type":["null","double"],"default":null,\
    "doc":"Data:Double:00NgL00000vXNVG"}]}
    """

  @Test("Platform events have their own fields and no header") func platformEvents() throws {
    let decoder = try AvroEventDecoderTests.decoder(Self.order, topic: "/event/Order_Event__e")
    #expect(decoder.layout.family == .platformEvent)
    #expect(decoder.layout.entity == "Order_Event__e")
    #expect(
      decoder.layout.columns.map(\.name) == [
        "_topic", "_replay_id", "_event_id", "_schema_id", "_kind", "_entity", "CreatedDate",
        "CreatedById", "Order_Number__c", "City__c", "Amount__c",
      ])
    #expect(
      decoder.layout.columns.map(\.salesforceType)[6...] == [
        "CreatedDate:DateTime", "CreatedBy:EntityId", "Data:Text", "Data:Text", "Data:Double",
      ])
    #expect(
      decoder.layout.columns.map(\.fieldID)[6...] == [
        nil, nil, "00NgL00000vXMFS", "00NgL00000vXNGM", "00NgL00000vXNVG",
      ])
    var out = AvroBytes()
    out.long(1_771_300_995_000)
    out.string("005000000000001AAA")
    out.branch(1)
    out.string("17")
    out.null()
    out.branch(1)
    out.double(12.5)
    let batch = RecordBatch(layout: decoder.layout)
    try decoder.decode(out.bytes, into: batch)
    #expect(
      batch.texts(row: 0) == [
        "_topic": "/event/Order_Event__e", "_replay_id": "00000000005a94f00000",
        "_event_id": "e1b0c0de-0000-4000-8000-000000000001",
        "_schema_id": "i8wgJwwM-AVcDbFkbRl5Nw", "_kind": "event", "_entity": "Order_Event__e",
        "CreatedDate": "1771300995000", "CreatedById": "005000000000001AAA",
        "Order_Number__c": "17", "Amount__c": "12.5",
      ])
    #expect(batch.events[0].commitTimestamp == nil)
    #expect(batch.events[0].kind == .event)
  }

  @Test(
    "The doc attribute of a long decides its meaning",
    arguments: [
      ("Data:DateTime", "timestamp"), ("CreatedDate:DateTime", "timestamp"),
      ("Data:DateOnly", "date"), ("Data:Birthday:00N000000000001", "date"),
      ("Data:TimeOnly", "time"), ("Data:Double", "number"), ("When it was: now", "number"),
      ("DateTime", "number"), ("", "number"),
    ])
  func longs(doc: String, meaning: String) throws {
    let decoder = try AvroEventDecoderTests.decoder(
      #"{"type":"record","name":"E__e","fields":[{"name":"F","type":["null","long"],"doc":"\#(doc)"}]}"#,
      topic: "/event/E__e")
    let type: ColumnType? =
      switch meaning {
      case "timestamp": .timestamp(.milliseconds, isLocal: false)
      case "date": .date(.milliseconds)
      case "time": .time(.milliseconds)
      default: .int64
      }
    let column = try #require(decoder.layout.columns.last)
    #expect(column.content == .slot(MetadataSlot.count, try #require(type)))
  }

  @Test("Header fields of other schema versions are read by name") func otherHeaders() throws {
    // Another order, a field that is new, unknown change types, some fields missing.
    let decoder = try AvroEventDecoderTests.decoder(
      """
      {"type":"record","name":"Foo__ChangeEvent","fields":[{"name":"ChangeEventHeader","type":\
      {"type":"record","name":"H","fields":[\
      {"name":"changeType","type":{"type":"enum","name":"T","symbols":["MERGE","GAP_MERGE"]}},\
      {"name":"newThingID","type":["null","string"]},\
      {"name":"recordIds","type":{"type":"array","items":"string"}}]}},\
      {"name":"Name","type":["null","string"]}]}
      """)
    #expect(decoder.layout.entity == "Foo__c")
    #expect(decoder.layout.columns.map(\.name).suffix(2) == ["_new_thing_id", "Name"])
    let batch = RecordBatch(layout: decoder.layout)
    for type in 0...1 {
      var out = AvroBytes()
      out.long(Int64(type))
      out.branch(1)
      out.string("n")
      out.strings(["a00000000000001AAA"])
      out.null()
      try decoder.decode(out.bytes, into: batch)
    }
    #expect(batch.texts(row: 0)["_change_type"] == "MERGE")
    #expect(batch.texts(row: 0)["_kind"] == "change")
    #expect(batch.texts(row: 0)["_new_thing_id"] == "n")
    #expect(batch.texts(row: 0)["_commit_number"] == nil)
    #expect(batch.texts(row: 1)["_kind"] == "gap")
  }

  /// 23: LastModifiedDate and 6-0x0180: ShippingAddress.Latitude, .Longitude, real events of an
  /// Account schema with 86 fields; field 68 is a custom one.
  @Test("Bitmaps of real events name the right fields") func realBitmaps() throws {
    var fields = [TestHeader.schema]
    let address = ["Street", "City", "State", "PostalCode", "Country", "StateCode", "CountryCode"]
      .map { #"{"name":"\#($0)","type":["null","string"]}"# }
    let numbers = ["Latitude", "Longitude"].map { #"{"name":"\#($0)","type":["null","double"]}"# }
    for index in 1..<86 {
      let name = [
        5: "BillingAddress", 6: "ShippingAddress", 23: "LastModifiedDate", 68: "Amount_Owed__c",
      ][index]
      let type =
        switch index {
        case 5:
          #"{"type":"record","name":"Address","fields":["#
            + (address + numbers).joined(separator: ",") + "]}"
        case 6: #""Address""#
        default: #""string""#
        }
      fields.append(#"{"name":"\#(name ?? "Field\(index)")","type":["null",\#(type)]}"#)
    }
    let decoder = try AvroEventDecoderTests.decoder(
      #"{"type":"record","name":"AccountChangeEvent","fields":[\#(fields.joined(separator: ","))]}"#
    )
    let batch = RecordBatch(layout: decoder.layout)
    for (bitmaps, names) in [
      (["0x800000", "6-0x01"], "LastModifiedDate ShippingAddress.Street"),
      (["6-0x0180"], "ShippingAddress.Latitude ShippingAddress.Longitude"),
      (["0x100000000000800000"], "LastModifiedDate Amount_Owed__c"),
    ] {
      var out = AvroBytes()
      TestHeader(changed: bitmaps).write(to: &out)
      out.raw([UInt8](repeating: 0, count: 85))
      try decoder.decode(out.bytes, into: batch)
      #expect(batch.texts(row: batch.rowCount - 1)["_changed_fields"] == names)
    }
  }

  /// Bytes in use, as the allocator counts them, stay the same over 200 events of three records
  /// and a list. Other tests allocate at the same time, so a quiet moment has to be met.
  @Test("Memory does not grow from event to event") func memory() throws {
    let decoder = try AvroEventDecoderTests.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    let payload = AvroEventDecoderTests.payload(
      TestHeader(recordIDs: ["a", "b", "c"], nulled: ["0x10"], changed: ["0x50", "2-0x03"]),
      [
        2: {
          $0.branch(1)
          $0.null()
          $0.branch(1)
          $0.string("Ulm")
          $0.null()
        },
        8: {
          $0.branch(1)
          $0.strings(["a", "b"])
        },
      ])
    func fill() throws {
      batch.removeAll(layout: decoder.layout)
      for _ in 0..<200 { try decoder.decode(payload, into: batch) }
    }
    try fill()
    var isSteady = false
    for _ in 0..<20_000 where !isSteady {
      let before = mallinfo2().uordblks
      try fill()
      isSteady = mallinfo2().uordblks == before
    }
    #expect(isSteady)
    #expect(batch.rowCount == 600)
  }
}
