import Avro
import Pipeline
import Testing

@testable import PubSubSource

/// Headers that are none, or that have their fields in another order and of other types. An event is
/// exported by the names of its schema, or refused; it is never guessed at.
@Suite("Hostile change event headers")
struct HostileHeadersTests {
  /// A header field and the value that the events of these tests have there.
  struct Field: Sendable {
    var name: String
    var type: String
    var write: @Sendable (inout AvroBytes) -> Void

    init(_ name: String, _ type: String, _ write: @escaping @Sendable (inout AvroBytes) -> Void) {
      self.name = name
      self.type = type
      self.write = write
    }

    var json: String { #"{"name":"\#(self.name)","type":\#(self.type)}"# }
  }

  static let changeType =
    #"{"type":"enum","name":"ChangeType","symbols":["CREATE","UPDATE","DELETE"]}"#
  static let strings = #"{"type":"array","items":"string"}"#

  /// A CREATE of one record.
  static let header: [Field] = [
    Field("entityName", #""string""#) { $0.string("A") },
    Field("recordIds", Self.strings) { $0.strings(["001000000000001AAA"]) },
    Field("changeType", Self.changeType) { $0.long(0) },
    Field("changeOrigin", #""string""#) { $0.string("o") },
    Field("transactionKey", #""string""#) { $0.string("t") },
    Field("sequenceNumber", #""int""#) { $0.long(7) },
    Field("commitTimestamp", #""long""#) { $0.long(1_771_300_995_000) },
    Field("commitNumber", #""long""#) { $0.long(8) },
    Field("commitUser", #""string""#) { $0.string("u") },
    Field("nulledFields", Self.strings) { $0.strings([]) },
    Field("diffFields", Self.strings) { $0.strings([]) },
    Field("changedFields", Self.strings) { $0.strings(["0x02"]) },
  ]

  static func replaced(_ name: String, by field: Field?) -> [Field] {
    Self.header.compactMap { $0.name == name ? field : $0 }
  }

  /// A schema of a header and one field `Name`.
  static func schema(_ header: [Field], type: (String) -> String = { $0 }) -> String {
    let fields = header.map(\.json).joined(separator: ",")
    let record = #"{"type":"record","name":"ChangeEventHeader","fields":[\#(fields)]}"#
    return #"{"type":"record","name":"AChangeEvent","fields":[{"name":"ChangeEventHeader","type":"#
      + type(record) + #"},{"name":"Name","type":["null","string"]}]}"#
  }

  static func payload(_ header: [Field]) -> [UInt8] {
    var out = AvroBytes()
    for field in header { field.write(&out) }
    out.branch(1)
    out.string("n")
    return out.bytes
  }

  private func row(_ header: [Field]) throws -> [String: String] {
    let decoder = try AvroEventDecoderTests.decoder(Self.schema(header))
    let batch = RecordBatch(layout: decoder.layout)
    #expect(try decoder.decode(Self.payload(header), into: batch) == 1)
    #expect(batch.events[0].kind == .change)
    return batch.texts(row: 0)
  }

  // MARK: Fields by name

  @Test("The fields of a header may have any order")
  func anyOrder() throws {
    let expected = try self.row(Self.header)
    #expect(expected["_change_type"] == "CREATE")
    for shift in 1..<Self.header.count {
      let header = Array(Self.header[shift...] + Self.header[..<shift])
      #expect(try self.row(header) == expected)
    }
    #expect(try self.row(Self.header.reversed()) == expected)
  }

  @Test(
    "The change type is found by name among other enums",
    arguments: [
      ["GAP_OVERFLOW"], ["DELETE", "UNDELETE"], ["A", "B", "C", "D", "E"],
    ])
  func otherEnums(symbols: [String]) throws {
    let names = symbols.map { #""\#($0)""# }.joined(separator: ",")
    for place in 0...Self.header.count {
      var header = Self.header
      let last = Int64(symbols.count - 1)
      header.insert(
        Field("syncMode", #"{"type":"enum","name":"M","symbols":[\#(names)]}"#) { $0.long(last) },
        at: place)
      var row = try self.row(header)
      #expect(row.removeValue(forKey: "_sync_mode") == symbols.last)
      #expect(try row == self.row(Self.header))
    }
  }

  @Test(
    "Additional header fields are exported under their names",
    arguments: [
      (
        Field("note", #""string""#) { $0.string("x") }, "_note", "x"
      ),
      (
        Field("tags", Self.strings) { $0.strings(["a", "b"]) }, "_tags", #"["a","b"]"#
      ),
      (
        Field("modes", #"{"type":"map","values":"int"}"#) {
          $0.long(1)
          $0.string("k")
          $0.long(4)
          $0.long(0)
        }, "_modes", #"{"k":4}"#
      ),
      (
        Field("who", #"{"type":"record","name":"W","fields":[{"name":"id","type":"string"}]}"#) {
          $0.string("w")
        }, "_who.id", "w"
      ),
      (Field("changeTypes", #""long""#) { $0.long(-1) }, "_change_types", "-1"),
    ] as [(Field, String, String)])
  func additions(field: Field, name: String, text: String) throws {
    for place in [0, 2, Self.header.count] {
      var header = Self.header
      header.insert(field, at: place)
      let row = try self.row(header)
      #expect(row[name] == text)
      #expect(row["_change_type"] == "CREATE" && row["_record_id"] == "001000000000001AAA")
    }
  }

  @Test(
    "Types equivalent to the usual ones are read",
    arguments: [
      Field("changeType", #""string""#) { $0.string("CREATE") },
      Field("changeType", #"["null",\#(Self.changeType)]"#) {
        $0.branch(1)
        $0.long(0)
      },
      Field("changeType", #"[\#(Self.changeType),"null"]"#) {
        $0.branch(0)
        $0.long(0)
      },
      Field("commitNumber", #""int""#) { $0.long(8) },
      Field("commitTimestamp", #"{"type":"long","logicalType":"timestamp-millis"}"#) {
        $0.long(1_771_300_995_000)
      },
      Field("recordIds", #"["null",\#(Self.strings)]"#) {
        $0.branch(1)
        $0.strings(["001000000000001AAA"])
      },
    ])
  func equivalents(field: Field) throws {
    #expect(
      try self.row(Self.replaced(field.name, by: field)) == self.row(Self.header), "\(field.json)")
  }

  // MARK: Schemas that are refused

  @Test(
    "A header field whose type its column cannot hold is a schema error",
    arguments: [
      Field("changeType", #""long""#) { _ in },
      Field("changeType", #"["string",\#(changeType)]"#) { _ in },
      Field("changeType", #"["null","string",\#(changeType)]"#) { _ in },
      Field("changeType", #"{"type":"array","items":\#(changeType)}"#) { _ in },
      Field("changeType", #"{"type":"record","name":"C","fields":[]}"#) { _ in },
      Field("recordIds", #""string""#) { _ in },
      Field("recordIds", #"{"type":"array","items":"bytes"}"#) { _ in },
      Field("recordIds", #"{"type":"map","values":"string"}"#) { _ in },
      Field("commitTimestamp", #""int""#) { _ in },
      Field("commitTimestamp", #"{"type":"long","logicalType":"timestamp-micros"}"#) { _ in },
      Field("commitTimestamp", #"["long","string"]"#) { _ in },
      Field("commitNumber", #""string""#) { _ in },
      Field("sequenceNumber", #""long""#) { _ in },
      Field("commitUser", changeType.replacing("ChangeType", with: "U")) { _ in },
      Field("entityName", #"["null","string","int"]"#) { _ in },
      Field("nulledFields", #"{"type":"array","items":["null","string"]}"#) { _ in },
      Field("recordID", #""string""#) { _ in }, Field("topic", #""string""#) { _ in },
    ])
  func wrongTypes(field: Field) throws {
    var header = Self.replaced(field.name, by: field)
    if !header.contains(where: { $0.name == field.name }) { header.append(field) }
    self.refuses(Self.schema(header), because: field.name)
  }

  @Test(
    "A header without record IDs or change type is a schema error",
    arguments: [
      "recordIds", "changeType",
    ])
  func missing(name: String) {
    self.refuses(Self.schema(Self.replaced(name, by: nil)), because: "has no field \(name)")
  }

  @Test("A recursive header is a schema error")
  func recursion() {
    let field = Field("changedFields", #"["null","ChangeEventHeader"]"#) { _ in }
    self.refuses(
      Self.schema(Self.replaced(field.name, by: field)), because: "cannot be flattened")
  }

  @Test(
    "A header that can be null, or that is not a record, is a schema error",
    arguments: [
      { #"["null",\#($0)]"# }, { #"[\#($0)]"# }, { #"["string",\#($0)]"# },
      { #"{"type":"array","items":\#($0)}"# }, { _ in #""string""# },
      { _ in #"{"type":"map","values":"int"}"# },
    ] as [@Sendable (String) -> String])
  func noRecord(type: @Sendable (String) -> String) {
    self.refuses(Self.schema(Self.header, type: type), because: "is not simply a record")
  }

  @Test("A missing or misplaced header is a schema error on change topics")
  func misplaced() throws {
    let header = Self.header.map(\.json).joined(separator: ",")
    let second =
      #"{"type":"record","name":"AChangeEvent","fields":[{"name":"Name","type":"string"},"#
      + #"{"name":"ChangeEventHeader","type":{"type":"record","name":"H","fields":[\#(header)]}}]}"#
    self.refuses(second, because: "is field 1; change events have it first")
    let none =
      #"{"type":"record","name":"AChangeEvent","fields":[{"name":"Name","type":"string"}]}"#
    self.refuses(none, because: "has a ChangeEventHeader, this schema has none")
  }

  private func refuses(_ schema: String, because reason: String) {
    let error = #expect(throws: EventDecodingError.self) {
      try AvroEventDecoderTests.decoder(schema)
    }
    #expect(error?.code == .schema)
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
  }

  @Test("On a topic of platform events a field with the header's name is an ordinary field")
  func platformEvents() throws {
    let schema =
      #"{"type":"record","name":"E__e","fields":[{"name":"Id","type":"string"},"#
      + #"{"name":"ChangeEventHeader","type":["null","string"]}]}"#
    let decoder = try AvroEventDecoder(
      json: schema, schemaID: "i8wgJwwM-AVcDbFkbRl5Nw", topic: "/event/E__e")
    let batch = RecordBatch(layout: decoder.layout)
    var out = AvroBytes()
    out.string("i")
    out.branch(1)
    out.string("h")
    try decoder.decode(out.bytes, into: batch)
    let row = batch.texts(row: 0)
    #expect(row["_kind"] == "event" && row["Id"] == "i" && row["ChangeEventHeader"] == "h")
  }

  // MARK: Values that are refused

  @Test("An event whose change type is null is undecodable")
  func nullChangeType() throws {
    let header = Self.replaced(
      "changeType", by: Field("changeType", #"["null",\#(Self.changeType)]"#) { $0.null() })
    try self.refuses(header, at: "ChangeEventHeader.changeType")
  }

  @Test(
    "Commit times lie in the years 1 to 9999",
    arguments: [
      (-62_135_596_800_000, true), (-62_135_596_800_001, false), (253_402_300_799_999, true),
      (253_402_300_800_000, false), (0, true), (.min, false), (.max, false),
      (.min + 4999, false), (-1, true),
    ] as [(Int64, Bool)])
  func commitTimes(time: Int64, isValid: Bool) throws {
    let header = Self.replaced(
      "commitTimestamp", by: Field("commitTimestamp", #""long""#) { $0.long(time) })
    if isValid {
      #expect(try self.row(header)["_commit_timestamp"] == "\(time)")
    } else {
      try self.refuses(header, at: "ChangeEventHeader.commitTimestamp")
    }
  }

  @Test(
    "Record IDs of excessive length or with U+0000 are refused",
    arguments: [
      (String(repeating: "x", count: 255), true), (String(repeating: "x", count: 256), false),
      (String(repeating: "é", count: 128), false), ("00\0", false), ("001*", true), ("", true),
    ])
  func recordIDs(id: String, isValid: Bool) throws {
    let header = Self.replaced(
      "recordIds", by: Field("recordIds", Self.strings) { $0.strings([id]) })
    if isValid {
      let decoder = try AvroEventDecoderTests.decoder(Self.schema(header))
      let batch = RecordBatch(layout: decoder.layout)
      #expect(try decoder.decode(Self.payload(header), into: batch) == 1)
      #expect(batch.texts(row: 0)["_record_id"] == id)
    } else {
      try self.refuses(header, at: "ChangeEventHeader.recordIds[0]")
    }
  }

  private func refuses(_ header: [Field], at path: String) throws {
    let decoder = try AvroEventDecoderTests.decoder(Self.schema(header))
    let batch = RecordBatch(layout: decoder.layout)
    let error = #expect(throws: EventDecodingError.self) {
      try decoder.decode(Self.payload(header), into: batch)
    }
    #expect(error?.code == .payload)
    #expect(error?.path == path)
    #expect(batch.rowCount == 0 && batch.arenaCount == 0 && batch.events.isEmpty)
  }

  // MARK: Budgets

  @Test("An event whose record IDs give too many rows or values is refused")
  func fanOut() throws {
    let ids = (0..<100).map { "001\($0)" }
    let header = Self.replaced(
      "recordIds", by: Field("recordIds", Self.strings) { $0.strings(ids) })
    let payload = Self.payload(header)
    func decode(rows: Int, output: Int) throws -> Int {
      var options = EventDecodingOptions()
      options.maxRowByteCount = rows
      options.maxOutputByteCount = output
      let decoder = try AvroEventDecoderTests.decoder(Self.schema(header), options: options)
      let batch = RecordBatch(layout: decoder.layout)
      do {
        return try decoder.decode(payload, into: batch)
      } catch {
        #expect(error.code == .limitExceeded && error.path == "ChangeEventHeader.recordIds")
        #expect(batch.rowCount == 0 && batch.arenaCount == 0)
        throw error
      }
    }
    #expect(try decode(rows: 1 << 20, output: 1 << 20) == 100)
    #expect(throws: EventDecodingError.self) { try decode(rows: 10_000, output: 1 << 20) }
    #expect(throws: EventDecodingError.self) {
      try decode(rows: 1 << 20, output: payload.count * 100)
    }
  }

  // MARK: All of them together

  @Test("Fields of any name, type, order and content give rows or errors")
  func randomHeaders() throws {
    var random = SeededGenerator(seed: 17)
    let types = [
      #""string""#, #""int""#, #""long""#, #""boolean""#, #""bytes""#, #""double""#, Self.strings,
      #"["null","string"]"#, #"["null","long"]"#, #"{"type":"map","values":"string"}"#,
      #"{"type":"array","items":"null"}"#, #"["string","int","null"]"#,
    ]
    let names = Self.header.map(\.name) + ["x", "recordID", "Name", "nonfinite", "changetype"]
    var (rows, schemaErrors, eventErrors) = (0, 0, 0)
    for number in 0..<3000 {
      var header = Self.header.shuffled(using: &random)
      for change in 0..<Int.random(in: 0...2, using: &random) {
        let place = Int.random(in: header.indices, using: &random)
        var type = types.randomElement(using: &random) ?? types[0]
        if Bool.random(using: &random) {
          let symbols = (0...Int.random(in: 0...3, using: &random)).map { #""S\#($0)""# }
          type =
            #"{"type":"enum","name":"R\#(change)","symbols":[\#(symbols.joined(separator: ","))]}"#
        }
        let bytes = (0..<Int.random(in: 0...4, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        let field = Field(names.randomElement(using: &random) ?? "x", type) { $0.raw(bytes) }
        if Bool.random(using: &random) {
          header[place] = field
        } else {
          header.insert(field, at: place)
        }
      }
      let decoder: AvroEventDecoder
      do {
        decoder = try AvroEventDecoder(
          json: Self.schema(header), schemaID: "s\(number)", topic: "/data/AChangeEvent")
      } catch {
        schemaErrors += 1
        continue
      }
      let batch = RecordBatch(layout: decoder.layout)
      var payload = Self.payload(header)
      if Bool.random(using: &random) {
        payload[Int.random(in: payload.indices, using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      do {
        let count = try decoder.decode(payload, into: batch)
        for row in 0..<count { _ = batch.texts(row: row) }
        rows += count
      } catch {
        eventErrors += 1
        #expect(batch.rowCount == 0 && batch.arenaCount == 0 && batch.events.isEmpty)
      }
    }
    #expect(rows > 500 && schemaErrors > 500 && eventErrors > 200)
  }
}

/// The same numbers in every run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { self.state = seed }

  mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var value = self.state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}
