import Avro
import Pipeline
import Testing

@testable import PubSubSource

/// ChangeEvents.md and LinesAndColumns.md#presence.
@Suite("Decoding events") struct AvroEventDecoderTests {
  /// 1 Name (string or person name), 2 BillingAddress, 3 ShippingAddress (by reference),
  /// 4 Amount, 5 CloseDate, 6 LastModifiedDate, 7 IsActive, 8 Tags.
  static let schema = """
    {"type":"record","name":"AccountChangeEvent","namespace":"com.sforce.eventbus","fields":[\
    \(TestHeader.schema),\
    {"name":"Name","type":["null","string",{"type":"record","name":"Switchable_PersonName",\
    "fields":[{"name":"Salutation","type":["null","string"]},\
    {"name":"FirstName","type":["null","string"]},{"name":"LastName","type":["null","string"]}]}],\
    "doc":"Data:Switchable_PersonName","default":null},\
    {"name":"BillingAddress","type":["null",{"type":"record","name":"Address","fields":[\
    {"name":"Street","type":["null","string"]},{"name":"City","type":["null","string"]},\
    {"name":"Latitude","type":["null","double"]}]}],"doc":"Data:Address","default":null},\
    {"name":"ShippingAddress","type":["null","Address"],"doc":"Data:Address","default":null},\
    {"name":"Amount","type":["null","double"],"doc":"Data:Currency:00N000000000001"},\
    {"name":"CloseDate","type":["null","long"],"doc":"Data:DateOnly"},\
    {"name":"LastModifiedDate","type":["null","long"],"doc":"Data:DateTime"},\
    {"name":"IsActive","type":["null","boolean"],"doc":"Data:Boolean"},\
    {"name":"Tags","type":["null",{"type":"array","items":"string"}]}]}
    """

  static func decoder(
    _ text: String = Self.schema, topic: String = "/data/AccountChangeEvent",
    options: EventDecodingOptions = EventDecodingOptions()
  ) throws -> AvroEventDecoder {
    try AvroEventDecoder(
      schema: Schema(parsing: Array(text.utf8)), schemaID: "i8wgJwwM-AVcDbFkbRl5Nw",
      topic: topic, options: options)
  }

  /// The header and eight fields, null where the writer says nothing.
  static func payload(
    _ header: TestHeader, _ fields: [Int: (inout AvroBytes) -> Void] = [:]
  ) -> [UInt8] {
    var out = AvroBytes()
    header.write(to: &out)
    for index in 1...8 {
      if let field = fields[index] { field(&out) } else { out.null() }
    }
    return out.bytes
  }

  private func row(
    _ header: TestHeader, _ fields: [Int: (inout AvroBytes) -> Void] = [:]
  ) throws -> [String: String] {
    let decoder = try Self.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    #expect(try decoder.decode(Self.payload(header, fields), into: batch) == 1)
    return batch.texts(row: 0)
  }

  /// Without the metadata columns.
  private func fields(_ row: [String: String]) -> [String: String] {
    row.filter { !$0.key.hasPrefix("_") }
  }

  @Test("Metadata columns have the order of the output line") func metadataOrder() throws {
    let layout = try Self.decoder().layout
    #expect(
      layout.columns.map(\.name) == [
        "_topic", "_replay_id", "_event_id", "_schema_id", "_kind", "_entity", "_change_type",
        "_record_id", "_commit_timestamp", "_commit_number", "_commit_user", "_transaction_key",
        "_sequence_number", "_change_origin", "_changed_fields", "_nulled_fields", "_diff_fields",
        "Name", "BillingAddress", "ShippingAddress", "Amount", "CloseDate", "LastModifiedDate",
        "IsActive", "Tags",
      ])
    #expect(layout.entity == "Account")
    #expect(layout.family == .changeEvent)
    #expect(layout.columns[20].salesforceType == "Data:Currency")
    #expect(layout.columns[21].content == .slot(slot("CloseDate", layout), .date(.milliseconds)))
    #expect(
      layout.columns[22].content
        == .slot(
          slot("LastModifiedDate", layout), .timestamp(.milliseconds, isLocal: false)))
    #expect(layout.columns[24].content == .slot(slot("Tags", layout), .stringList))
    let row = try self.row(TestHeader(changed: ["0x40"]))
    #expect(
      row == [
        "_topic": "/data/AccountChangeEvent", "_replay_id": "00000000005a94f00000",
        "_event_id": "e1b0c0de-0000-4000-8000-000000000001",
        "_schema_id": "i8wgJwwM-AVcDbFkbRl5Nw", "_kind": "change", "_entity": "Account",
        "_change_type": "UPDATE", "_record_id": "006000000000001AAA",
        "_commit_timestamp": "1771300995000", "_commit_number": "1709303151782928388",
        "_commit_user": "005000000000001AAA",
        "_transaction_key": "00000b6c-1111-2222-3333-444455556666", "_sequence_number": "1",
        "_change_origin": "com/salesforce/api/soap/60.0;client=x",
        "_changed_fields": "LastModifiedDate", "_nulled_fields": "", "_diff_fields": "",
        "LastModifiedDate": "null",
      ])
  }

  private func slot(_ name: String, _ layout: RecordLayout) -> Int {
    for column in layout.columns where column.name == name {
      if case .slot(let slot, _) = column.content { return slot }
    }
    return -1
  }

  // MARK: Presence

  @Test("An update distinguishes value, null and unchanged") func update() throws {
    let row = try self.row(
      TestHeader(nulled: ["0x10"], changed: ["0x50"]),
      [
        6: {
          $0.branch(1)
          $0.long(1_771_300_995_000)
        },
        7: {
          $0.branch(1)
          $0.raw([1])
        },
      ])
    #expect(
      self.fields(row) == [
        "Amount": "null", "LastModifiedDate": "1771300995000", "IsActive": "true",
      ])
    // An enriched value is present and not listed.
    #expect(row["_changed_fields"] == "Amount LastModifiedDate")
    #expect(row["_nulled_fields"] == "Amount")
  }

  @Test("A full image has no value for a field that is null", arguments: [0, 3] as [Int64])
  func fullImage(changeType: Int64) throws {
    let row = try self.row(
      TestHeader(changeType: changeType, changed: ["0x50"]),
      [
        4: {
          $0.branch(1)
          $0.double(100)
        }
      ])
    #expect(self.fields(row) == ["Amount": "100.0"])
  }

  @Test("Deletes and gaps hold only the header", arguments: [2, 4, 5, 6, 7, 8] as [Int64])
  func headerOnly(changeType: Int64) throws {
    let row = try self.row(TestHeader(changeType: changeType))
    #expect(self.fields(row).isEmpty)
    #expect(row["_changed_fields"] == "")
  }

  // MARK: Compound fields

  @Test("A nested bitmap nulls only its own fields") func nestedBits() throws {
    let row = try self.row(TestHeader(nulled: ["2-0x02"], changed: ["2-0x02"]))
    #expect(
      self.fields(row) == ["BillingAddress{}": "value", "BillingAddress.City": "null"])
    #expect(row["_changed_fields"] == "BillingAddress.City")
  }

  @Test("A nulled compound nulls all its fields") func nulledCompound() throws {
    let row = try self.row(TestHeader(nulled: ["0x08"], changed: ["0x48"]))
    #expect(
      self.fields(row) == [
        "ShippingAddress{}": "null", "ShippingAddress.Street": "null",
        "ShippingAddress.City": "null", "ShippingAddress.Latitude": "null",
        "LastModifiedDate": "null",
      ])
    #expect(
      row["_nulled_fields"]
        == "ShippingAddress.Street ShippingAddress.City ShippingAddress.Latitude")
  }

  @Test(
    "A compound has its own bit in a field set if the event names it as a whole",
    arguments: [
      (changed: "0x02", whole: [["Name"]]), ("0x04", [["BillingAddress"]]),
      ("0x0C", [["BillingAddress"], ["ShippingAddress"]]), ("2-0x07", []), ("0x50", []),
    ])
  func wholeCompounds(changed: String, whole: [[String]]) throws {
    let decoder = try Self.decoder()
    #expect(
      decoder.layout.compounds.map(\.path) == [["Name"], ["BillingAddress"], ["ShippingAddress"]])
    // The record holds a value, a scalar, or nothing.
    let values: [[Int: (inout AvroBytes) -> Void]] = [
      [:],
      [
        1: {
          $0.branch(1)
          $0.string("Acme")
        },
        2: {
          $0.branch(1)
          $0.null()
          $0.branch(1)
          $0.string("Ulm")
          $0.null()
        },
      ],
    ]
    for fields in values {
      let batch = RecordBatch(layout: decoder.layout)
      try decoder.decode(Self.payload(TestHeader(changed: [changed]), fields), into: batch)
      let set = Array(
        batch.bytes(.init(cell: batch.row(0).cells[MetadataSlot.changedFields])))
      let named = decoder.layout.compounds.filter { set[$0.slot / 8] & 1 << ($0.slot % 8) != 0 }
      #expect(named.map(\.path) == whole)
    }
  }

  @Test("Field lists name top-level fields first") func nameOrder() throws {
    let row = try self.row(
      TestHeader(changed: ["0x50", "3-0x01", "2-0x04"]),
      [
        2: {
          $0.branch(1)
          $0.raw([0, 0])
          $0.branch(1)
          $0.double(1.5)
        },
        3: {
          $0.branch(1)
          $0.branch(1)
          $0.string("Main St")
          $0.raw([0, 0])
        },
      ])
    #expect(
      row["_changed_fields"]
        == "Amount LastModifiedDate BillingAddress.Latitude ShippingAddress.Street")
    #expect(row["BillingAddress.Latitude"] == "1.5")
    #expect(row["BillingAddress.City"] == nil)
    #expect(row["ShippingAddress.Street"] == "Main St")
  }

  @Test("The bit of a whole compound lists all its fields and nulls the empty ones")
  func compoundBit() throws {
    let row = try self.row(
      TestHeader(changed: ["0x04"]),
      [
        2: {
          $0.branch(1)
          $0.null()
          $0.branch(1)
          $0.string("Ulm")
          $0.null()
        }
      ])
    #expect(
      self.fields(row) == [
        "BillingAddress{}": "value", "BillingAddress.Street": "null",
        "BillingAddress.City": "Ulm", "BillingAddress.Latitude": "null",
      ])
  }

  @Test("A union value fills the slots of its own branch") func scalarOrRecord() throws {
    let business = try self.row(
      TestHeader(changed: ["0x02"]),
      [
        1: {
          $0.branch(1)
          $0.string("Acme")
        }
      ])
    #expect(self.fields(business) == ["Name": "Acme", "Name{}": "value"])
    #expect(business["_changed_fields"] == "Name")

    let person = try self.row(
      TestHeader(nulled: ["1-0x01"], changed: ["1-0x07"]),
      [
        1: {
          $0.branch(2)
          $0.null()
          $0.branch(1)
          $0.string("Ada")
          $0.branch(1)
          $0.string("Lovelace")
        }
      ])
    #expect(
      self.fields(person) == [
        "Name{}": "value", "Name.Salutation": "null", "Name.FirstName": "Ada",
        "Name.LastName": "Lovelace",
      ])
    #expect(person["_changed_fields"] == "Name.Salutation Name.FirstName Name.LastName")

    let cleared = try self.row(TestHeader(nulled: ["0x02"], changed: ["0x02"]))
    #expect(
      self.fields(cleared) == [
        "Name": "null", "Name{}": "null", "Name.Salutation": "null", "Name.FirstName": "null",
        "Name.LastName": "null",
      ])
    #expect(
      cleared["_changed_fields"] == "Name Name.Salutation Name.FirstName Name.LastName")
  }

  @Test("Diffs are listed and keep their text") func diffs() throws {
    let row = try self.row(
      TestHeader(diff: ["0x02"], changed: ["0x02"]),
      [
        1: {
          $0.branch(1)
          $0.string("--- \n+++ 00\n@@ -1 +1 @@\n-a\n+b")
        }
      ])
    #expect(row["_diff_fields"] == "Name")
    #expect(row["Name"]?.hasPrefix("--- \n") == true)
  }

  // MARK: Records of an event

  @Test("Each record ID is a row that shares the event's values") func recordIDs() throws {
    let decoder = try Self.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    let ids = (1...200).map { "00600000000\($0 + 1000)AAA" }
    let payload = Self.payload(
      TestHeader(recordIDs: ids, changed: ["0x10"]),
      [
        4: {
          $0.branch(1)
          $0.double(7)
        }
      ])
    #expect(try decoder.decode(payload, into: batch) == 200)
    #expect(try decoder.decode(Self.payload(TestHeader()), into: batch) == 1)
    #expect(batch.rowCount == 201)
    #expect(batch.events.map(\.firstRow) == [0, 200])
    #expect(batch.events.map(\.rowCount) == [200, 1])
    for (row, id) in ids.enumerated() {
      let texts = batch.texts(row: row)
      #expect(texts["_record_id"] == id)
      #expect(texts["Amount"] == "7.0")
      #expect(texts["_kind"] == "change")
    }
    let event = batch.events[0]
    #expect(event.commitTimestamp == 1_771_300_995_000)
    #expect(event.kind == .change)
    #expect(Array(batch.bytes(event.replayID)) == [0, 0, 0, 0, 0, 0x5A, 0x94, 0xF0, 0, 0])
    #expect(
      String(decoding: batch.bytes(event.transactionKey), as: UTF8.self)
        == "00000b6c-1111-2222-3333-444455556666")
  }

  @Test("Record IDs can become a list") func recordIDList() throws {
    let decoder = try Self.decoder(options: EventDecodingOptions(recordIDs: .array))
    let batch = RecordBatch(layout: decoder.layout)
    try decoder.decode(
      Self.payload(TestHeader(recordIDs: ["a", "b\"", "001*"])), into: batch)
    #expect(batch.rowCount == 1)
    #expect(batch.texts(row: 0)["_record_ids"] == #"["a","b\"","001*"]"#)
    #expect(batch.texts(row: 0)["_kind"] == "wildcard")
    #expect(batch.texts(row: 0)["_record_id"] == nil)
  }

  @Test("An event without record IDs is still one row") func noRecordIDs() throws {
    let row = try self.row(TestHeader(recordIDs: []))
    #expect(row["_record_id"] == nil)
    #expect(row["_kind"] == "change")
  }

  @Test("The kind of an event follows from change type and record ID") func kinds() throws {
    for (type, kind) in [(0, "change"), (4, "gap"), (7, "gap"), (8, "overflow"), (9, "change")] {
      let row = try self.row(TestHeader(changeType: Int64(type)))
      #expect(row["_kind"] == kind)
    }
    #expect(try self.row(TestHeader(changeType: 9))["_change_type"] == "SNAPSHOT")
    let decoder = try Self.decoder()
    let batch = RecordBatch(layout: decoder.layout)
    try decoder.decode(
      Self.payload(TestHeader(recordIDs: ["001*", "001000000000001AAA"])), into: batch)
    #expect(batch.events[0].kind == .wildcard)
    #expect(batch.texts(row: 0)["_kind"] == "wildcard")
    #expect(batch.texts(row: 1)["_kind"] == "change")
  }

  @Test("Commit numbers keep every digit", arguments: [0, 1, -1, .max, .min] as [Int64])
  func commitNumbers(number: Int64) throws {
    #expect(try self.row(TestHeader(commitNumber: number))["_commit_number"] == "\(number)")
  }
}
