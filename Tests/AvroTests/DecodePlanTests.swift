import Avro
import JSON
import Testing

/// Avro 1.12 specification, "Binary Encoding", and the limits.
@Suite("Decoding by a plan") struct DecodePlanTests {
  private func decode(
    _ payload: [UInt8], _ schema: String, limits: DecodeLimits = DecodeLimits(),
    options: DecodePlan.Options = DecodePlan.Options()
  ) throws -> String {
    let plan = try DecodePlan(
      Schema(parsing: Array(schema.utf8)), options: options, limits: limits)
    return try JSONVisitor.decode(payload, with: plan)
  }

  private func failure(
    _ payload: [UInt8], _ schema: String, limits: DecodeLimits = DecodeLimits()
  ) throws -> AvroError {
    try #require(throws: AvroError.self) { try self.decode(payload, schema, limits: limits) }
  }

  // MARK: Numbers

  @Test(
    "Longs are zigzag varints",
    arguments: [
      ([0x00], "0"), ([0x01], "-1"), ([0x02], "1"), ([0x7F], "-64"), ([0x80, 0x01], "64"),
      ([0x80, 0x00], "0"), ([0x80, 0x80, 0x80, 0x00], "0"),
      ([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], "9223372036854775807"),
      ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], "-9223372036854775808"),
    ] as [([UInt8], String)])
  func longs(payload: [UInt8], expected: String) throws {
    #expect(try self.decode(payload, #""long""#) == expected)
    for length in payload.indices {
      #expect(try self.failure(Array(payload[..<length]), #""long""#).code == .truncated)
    }
  }

  @Test(
    "A varint beyond 64 bits is malformed",
    arguments: [
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02],
      [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
    ] as [[UInt8]])
  func longVarints(payload: [UInt8]) throws {
    #expect(try self.failure(payload, #""long""#).code == .malformed)
  }

  @Test("An int has 32 bits") func int32() throws {
    #expect(try self.decode([0xFE, 0xFF, 0xFF, 0xFF, 0x0F], #""int""#) == "2147483647")
    #expect(try self.decode([0xFF, 0xFF, 0xFF, 0xFF, 0x0F], #""int""#) == "-2147483648")
    #expect(try self.failure([0x80, 0x80, 0x80, 0x80, 0x10], #""int""#).code == .malformed)
  }

  @Test("Floats are little-endian, and nonfinite ones are null") func floats() throws {
    #expect(try self.decode([0, 0, 0x80, 0x3F], #""float""#) == "1.0")
    #expect(try self.decode([0, 0, 0xC0, 0x7F], #""float""#) == "null")
    #expect(try self.decode([0xCD, 0xCC, 0xCC, 0x3D], #""float""#) == "0.1")
    #expect(try self.decode([0, 0, 0, 0, 0, 0, 0xF0, 0xBF], #""double""#) == "-1.0")
    #expect(try self.decode([0, 0, 0, 0, 0, 0, 0, 0x80], #""double""#) == "-0.0")
    #expect(try self.failure([0, 0, 0], #""float""#).code == .truncated)
  }

  @Test("A branch or symbol number out of range is malformed") func choicesOutOfRange() throws {
    let symbols = #"{"type":"enum","name":"E","symbols":["A","B"]}"#
    #expect(try self.decode([2], symbols) == #""B""#)
    for byte in [1, 4, 3] as [UInt8] {
      #expect(try self.failure([byte], symbols).code == .malformed)
      #expect(try self.failure([byte], #"["null","int"]"#).code == .malformed)
      #expect(try self.failure([byte | 8], #"["int","string","null"]"#).code == .malformed)
    }
    #expect(try self.failure([2], #""boolean""#).code == .malformed)
  }

  // MARK: Strings

  @Test(
    "Well-formed UTF-8 is read",
    arguments: [
      [0xC3, 0xA9], [0xE2, 0x82, 0xAC], [0xF0, 0x9F, 0x98, 0x80], [0xF4, 0x8F, 0xBF, 0xBF],
      [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xDF, 0xBF], [0xE0, 0xA0, 0x80], [0x00], [0x7F],
    ] as [[UInt8]])
  func wellFormedUTF8(text: [UInt8]) throws {
    for padding in 0...17 {
      let bytes = [UInt8](repeating: 0x61, count: padding) + text
      let out = try self.decode([UInt8(bytes.count * 2)] + bytes, #""string""#)
      #expect(
        try JSONValue(parsing: out).string == String(decoding: bytes, as: UTF8.self))
    }
  }

  @Test(
    "Ill-formed UTF-8 is malformed at every position",
    arguments: [
      [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE2, 0x82], [0xE0, 0x9F, 0xBF],
      [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80],
      [0xFF], [0xC3, 0x28], [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28], [0xF0, 0x9F, 0x98],
      [0xF0, 0x9F, 0x28, 0x80], [0xF0, 0x9F, 0x98, 0x28],
    ] as [[UInt8]])
  func illFormedUTF8(text: [UInt8]) throws {
    for padding in 0...17 {
      for tail in [0, 1, 9] {
        let bytes =
          [UInt8](repeating: 0x61, count: padding) + text + [UInt8](repeating: 0x62, count: tail)
        let error = try self.failure([UInt8(bytes.count * 2)] + bytes, #""string""#)
        #expect(error.code == .malformed)
        #expect(error.byteOffset == 1)
      }
    }
  }

  @Test("A length is checked before any of its bytes are read") func lengths() throws {
    let huge: [UInt8] = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]
    let negative: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]
    for type in [#""string""#, #""bytes""#] {
      #expect(try self.failure(huge, type).code == .truncated)
      #expect(try self.failure(negative, type).code == .malformed)
      #expect(try self.failure([1], type).code == .malformed)
    }
    let fixed = #"{"type":"fixed","name":"F","size":2147483647}"#
    #expect(try self.failure([1, 2, 3], fixed).code == .truncated)
    #expect(
      try self.failure([0], #""int""#, limits: DecodeLimits(byteCount: 0)).code == .limitExceeded)
  }

  @Test("Text that is not a UUID is malformed") func uuids() throws {
    let type = #"{"type":"string","logicalType":"uuid"}"#
    let text = "6ba7b810-9dad-11d1-80b4-00c04fd430C8"
    #expect(try self.decode([72] + Array(text.utf8), type) == "\"\(text)\"")
    for bad in [text.dropLast() + "", text.dropLast() + "g", text.dropFirst() + "-"] {
      #expect(
        try self.failure([UInt8(bad.utf8.count * 2)] + Array(bad.utf8), type).code == .malformed)
    }
  }

  @Test("A decimal beyond its precision is malformed") func decimalPrecision() throws {
    let type = #"{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}"#
    #expect(try self.decode([4, 0xFF, 0x9C], type) == #""-1.00""#)
    #expect(try self.decode([10, 0, 0, 0, 0, 5], type) == #""0.05""#)
    #expect(try self.decode([0], type) == #""0.00""#)
    #expect(try self.failure([6, 1, 0, 0], type).code == .malformed)
  }

  // MARK: Blocks

  private let ints = #"{"type":"array","items":"int"}"#

  @Test("A block may have a negative count followed by its size") func negativeCounts() throws {
    #expect(try self.decode([4, 2, 4, 3, 4, 6, 8, 0], self.ints) == "[1,2,3,4]")
    let map = #"{"type":"map","values":"int"}"#
    #expect(try self.decode([1, 6, 2, 0x61, 2, 0], map) == #"{"a":1}"#)
    // A size that cannot be is an error; the count of 2^63 too.
    #expect(try self.failure([3, 90, 6, 8, 0], self.ints).code == .malformed)
    #expect(try self.failure([3, 1, 6, 8, 0], self.ints).code == .malformed)
    let least: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]
    #expect(try self.failure(least + [0, 0], self.ints).code == .malformed)
  }

  @Test("An array of a great many zero-byte items is refused") func itemBomb() throws {
    let million: [UInt8] = [0x80, 0x89, 0x7A]  // 1,000,000
    let more: [UInt8] = [0x82, 0x89, 0x7A]
    for items in [#""null""#, #"{"type":"record","name":"R","fields":[]}"#] {
      let array = #"{"type":"array","items":\#(items)}"#
      #expect(try self.decode(million + [0], array).hasPrefix("["))
      #expect(try self.failure(more + [0], array).code == .limitExceeded)
      // Many small blocks, many arrays.
      #expect(
        try self.failure([4, 4, 4, 0], array, limits: DecodeLimits(items: 5)).code
          == .limitExceeded)
      let arrays = #"{"type":"array","items":\#(array)}"#
      #expect(
        try self.failure([4, 4, 0, 4, 0, 0], arrays, limits: DecodeLimits(items: 5)).code
          == .limitExceeded)
    }
    #expect(try self.failure(more + [0], self.ints).code == .limitExceeded)
    #expect(try self.failure([20, 0, 0], self.ints).code == .truncated)
  }

  @Test("The text of all fields together is limited") func textLimit() throws {
    let array = #"{"type":"array","items":"null"}"#
    let schema =
      #"{"type":"record","name":"R","fields":[{"name":"a","type":\#(array)},"#
      + #"{"name":"b","type":\#(array)},{"name":"u","type":{"type":"fixed","name":"U","size":16,"#
      + #""logicalType":"uuid"}},{"name":"d","type":{"type":"bytes","logicalType":"big-decimal"}}]}"#
    // [null,null,null] twice, a UUID, 700 as 7 × 10^2.
    let payload: [UInt8] = [6, 0, 6, 0] + Array(repeating: 1, count: 16) + [6, 2, 7, 3]
    #expect(throws: Never.self) {
      try self.decode(payload, schema, limits: DecodeLimits(jsonByteCount: 16 + 16 + 36 + 3))
    }
    for (limit, path) in [(70, "d"), (67, "u"), (31, "b"), (15, "a")] {
      let error = try self.failure(payload, schema, limits: DecodeLimits(jsonByteCount: limit))
      #expect(error.code == .limitExceeded)
      #expect(error.path == path)
      #expect((error.byteOffset ?? .max) <= payload.count)
    }
  }

  @Test("A decimal of excessive length is refused") func hugeDecimals() throws {
    func schema(scale: Int) -> String {
      #"{"type":"bytes","logicalType":"decimal","precision":65536,"scale":\#(scale)}"#
    }
    func payload(_ count: Int) -> [UInt8] {
      [UInt8(truncatingIfNeeded: count * 2) | 0x80, UInt8((count * 2) >> 7)]
        + Array(repeating: 0x55, count: count)
    }
    let longest = 1701
    #expect(try self.decode(payload(longest), schema(scale: 0)).count == 4096 + 2)
    #expect(try self.failure(payload(longest + 1), schema(scale: 0)).code == .limitExceeded)
    #expect(try self.decode([2, 7], schema(scale: 4096)).count == 4096 + 4)
    #expect(try self.failure([2, 7], schema(scale: 4097)).code == .limitExceeded)
    // Where texts are nested, their length is limited as a whole.
    let array = #"{"type":"array","items":\#(schema(scale: 65_536))}"#
    let limits = DecodeLimits(jsonByteCount: 1 << 20)
    let items = [UInt8](repeating: 0, count: 100).flatMap { _ in [2, 7] as [UInt8] }
    #expect(
      try self.failure([0xC8, 0x01] + items + [0], array, limits: limits).code == .limitExceeded)
  }

  @Test("Many items with long field names are refused for the size of their text") func longNames()
    throws
  {
    let name = String(repeating: "n", count: 1000)
    let schema =
      #"{"type":"array","items":{"type":"record","name":"R","fields":["#
      + #"{"name":"\#(name)","type":"null"}]}}"#
    let error = try self.failure(
      [0xC0, 0x9A, 0x0C, 0], schema, limits: DecodeLimits(jsonByteCount: 1 << 20))
    #expect(error.code == .limitExceeded)
  }

  @Test("The depth of recursion is limited") func recursion() throws {
    let list =
      #"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#
    // The root itself is flattened: 64 more are allowed.
    #expect(
      try self.decode([UInt8](repeating: 2, count: 64) + [0], list).hasPrefix(#"{"next":{"next""#))
    let error = try self.failure([UInt8](repeating: 2, count: 65) + [0], list)
    #expect(error.code == .limitExceeded)
    #expect(error.byteOffset == 65)
    #expect(
      try self.failure([UInt8](repeating: 2, count: 10_000_000), list).code == .limitExceeded)
  }

  // MARK: Flattening

  @Test("A run of nulls of any length is skipped") func runsOfNulls() throws {
    for count in 1...70 {
      let fields = (0..<count).map { #"{"name":"f\#($0)","type":["null","int"]}"# }
      let plan = try DecodePlan(
        Schema(
          parsing: Array(
            #"{"type":"record","name":"R","fields":[\#(fields.joined(separator: ","))]}"#.utf8)))
      for place in 0..<count {
        var payload = [UInt8](repeating: 0, count: count)
        payload[place] = 2
        payload.insert(0, at: place + 1)  // the int 0, not a null
        let expected = (0..<count).map { #""f\#($0)":\#($0 == place ? "0" : "null")"# }
        #expect(
          try JSONVisitor.decode(payload, with: plan)
            == "{" + expected.joined(separator: ",") + "}")
        #expect(throws: AvroError.self) {
          try JSONVisitor.decode(Array(payload.dropLast()), with: plan)
        }
      }
    }
  }

  @Test("The null branch may come second, and its number may use a long varint") func unusualNulls()
    throws
  {
    let schema = """
      {"type":"record","name":"R","fields":[{"name":"a","type":["int","null"]},\
      {"name":"b","type":["null","int"]},{"name":"c","type":["string","null","int"]},\
      {"name":"d","type":["null"]},{"name":"e","type":"null"}]}
      """
    #expect(
      try self.decode([2, 0x80, 0x00, 4, 6, 0], schema)
        == #"{"a":null,"b":null,"c":3,"d":null,"e":null}"#)
    #expect(
      try self.decode([0, 2, 2, 4, 0, 2, 0x78, 0], schema)
        == #"{"a":1,"b":2,"c":"x","d":null,"e":null}"#)
  }

  @Test("An error names the field, the item and the offset") func errorPlaces() throws {
    let schema = """
      {"type":"record","name":"R","fields":[{"name":"A","type":["null",{"type":"record",\
      "name":"S","fields":[{"name":"Items","type":{"type":"array","items":{"type":"record",\
      "name":"T","fields":[{"name":"Name","type":"string"}]}}}]}]},{"name":"B","type":"string"}]}
      """
    let inside = try self.failure([2, 6, 2, 0x61, 2, 0x62, 80], schema)
    #expect(inside.path == "A.Items[2].Name")
    #expect(inside.byteOffset == 7)
    #expect(inside.description == "A.Items[2].Name at byte 7: a value of 40 bytes, 0 left")
    let after = try self.failure([0, 4, 0xFF, 0xFF], schema)
    #expect(after.path == "B")
    #expect(after.byteOffset == 2)
    let trailing = try self.failure([0, 0, 0, 0], schema)
    #expect(trailing.code == .trailing)
    #expect(trailing.byteOffset == 2)
  }

  @Test("A union of scalar and record has slots for both, the scalar first") func scalarOrRecord()
    throws
  {
    let plan = try DecodePlan(
      Schema(
        parsing: Array(
          """
          {"type":"record","name":"R","fields":[{"name":"N","type":["null",{"type":"record",\
          "name":"P","fields":[{"name":"F","type":"string"}]},"string"]}]}
          """.utf8)))
    guard case .record(let slot, let scalar?, let fields) = plan.fields[0].content,
      case .value(let child, .string) = fields[0].content
    else {
      Issue.record("not flattened")
      return
    }
    #expect([scalar.slot, slot, child] == [0, 1, 2])
    #expect(scalar.type == .string)
    #expect(plan.slotCount == 3)
  }

  @Test("A deep record becomes text, and too many columns are an error") func deepRecords() throws {
    func nested(_ depth: Int, fields: Int) -> String {
      var text = #""int""#
      for level in (0..<depth).reversed() {
        let parts = (0..<fields).map {
          #"{"name":"f\#($0)","type":\#($0 == 0 ? text : "\"R\(level + 1)\"")}"#
        }
        // The innermost level has ints only.
        let body =
          level == depth - 1
          ? (0..<fields).map { #"{"name":"f\#($0)","type":"int"}"# } : parts
        text =
          #"{"type":"record","name":"R\#(level)","fields":[\#(body.joined(separator: ","))]}"#
      }
      return text
    }
    // 20 records inside each other: 17 are flattened, the rest is one text.
    let text = try self.decode([8], nested(20, fields: 1))
    #expect(
      text == String(repeating: #"{"f0":"#, count: 20) + "4" + String(repeating: "}", count: 20))
    let plan = try DecodePlan(Schema(parsing: Array(nested(20, fields: 1).utf8)))
    #expect(plan.slotCount == 17)
    // Ten fields of ten fields of ten fields …
    let error = try #require(throws: AvroError.self) {
      try DecodePlan(Schema(parsing: Array(nested(8, fields: 10).utf8)))
    }
    #expect(error.code == .limitExceeded)
  }

  @Test("Options set slots, list columns and logical meanings") func options() throws {
    let schema = """
      {"type":"record","name":"R","fields":[{"name":"L","type":{"type":"array","items":"string"}},\
      {"name":"T","type":["null","long"],"doc":"t"},{"name":"J","type":{"type":"array","items":\
      {"type":"record","name":"S","fields":[{"name":"T","type":"long","doc":"t"}]}}},\
      {"name":"X","type":"long"}]}
      """
    let options = DecodePlan.Options(firstSlot: 10, slots: [["X"]: 3], lists: [["L"]]) {
      $0.doc == "t" ? .timestamp(.milliseconds, isLocal: false) : nil
    }
    let out = try self.decode(
      [2, 2, 0x61, 2, 2, 0x62, 0, 2, 0, 2, 0, 0, 8], schema, options: options)
    #expect(
      out == #"{"L":["a","b"],"T":"1970-01-01T00:00:00.000Z","#
        + #""J":[{"T":"1970-01-01T00:00:00.000Z"}],"X":4}"#)
    let plan = try DecodePlan(Schema(parsing: Array(schema.utf8)), options: options)
    #expect(plan.slotCount == 13)
    guard case .value(3, .long) = plan.fields[3].content else {
      Issue.record("not the given slot")
      return
    }
  }
}
