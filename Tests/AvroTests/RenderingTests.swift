import Avro
import JSON
import Testing

/// One row per type of the table in Avro.docc/Avro.md, each as a column and inside an array: the
/// two ways a value takes must end in the same text.
@Suite("Values as text") struct RenderingTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var type: String
    var payload: [UInt8]
    var json: String
    var testDescription: String { "\(self.type) \(self.payload)" }

    init(_ type: String, _ payload: [UInt8], _ json: String) {
      (self.type, self.payload, self.json) = (type, payload, json)
    }
  }

  private static func logical(_ base: String, _ name: String) -> String {
    #"{"type":"\#(base)","logicalType":"\#(name)"}"#
  }

  private static func fixed(_ size: Int, _ name: String, _ rest: String = "") -> String {
    #"{"type":"fixed","name":"F","size":\#(size),"logicalType":"\#(name)"\#(rest)}"#
  }

  private static let decimal =
    #"{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}"#

  static let rows = [
    Row(#""null""#, [], "null"),
    Row(#""boolean""#, [1], "true"),
    Row(#""int""#, [0x05], "-3"),
    Row(#""long""#, [0x80, 0x80, 0x80, 0x80, 0x80, 0x20], "549755813888"),
    Row(#""float""#, [0xCD, 0xCC, 0xCC, 0x3D], "0.1"),
    Row(#""double""#, [0, 0, 0, 0, 0, 0, 0x59, 0x40], "100.0"),
    Row(#""double""#, [0, 0, 0, 0, 0, 0, 0xF0, 0x7F], "null"),
    Row(#""string""#, [8, 0x22, 0x0A, 0xC3, 0xA9], #""\"\né""#),
    Row(#""bytes""#, [4, 0xFF, 0x00], #""/wA=""#),
    Row(#"{"type":"fixed","name":"F","size":3}"#, [1, 2, 3], #""AQID""#),
    Row(#"{"type":"fixed","name":"F","size":0}"#, [], #""""#),
    Row(#"{"type":"enum","name":"E","symbols":["A","B"]}"#, [2], #""B""#),
    Row(#"{"type":"array","items":"int"}"#, [4, 2, 4, 0], "[1,2]"),
    Row(#"{"type":"map","values":"int"}"#, [2, 2, 0x6B, 2, 0], #"{"k":1}"#),
    Row(#"{"type":"map","values":"int"}"#, [4, 2, 0x6B, 2, 2, 0x6B, 4, 0], #"{"k":1,"k":2}"#),
    Row(
      #"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"null"}]}"#,
      [2], #"{"a":1,"b":null}"#),
    Row(#"{"type":"record","name":"R","fields":[]}"#, [], "{}"),
    Row(#"["null","int"]"#, [0], "null"),
    Row(#"["null","int"]"#, [2, 8], "4"),
    Row(#"["string","null","int"]"#, [4, 8], "4"),
    // Decimals: all digits of the scale, zero from no bytes.
    Row(decimal, [4, 0x04, 0xD2], #""12.34""#),
    Row(decimal, [4, 0xFB, 0x2E], #""-12.34""#),
    Row(decimal, [0], #""0.00""#),
    Row(
      decimal, [18, 0x05, 0x6B, 0xC7, 0x5E, 0x2D, 0x63, 0x0F, 0xFF, 0xFF],
      #""999999999999999999.99""#),
    Row(fixed(4, "decimal", #","precision":9,"scale":3"#), [0, 0, 0, 7], #""0.007""#),
    Row(fixed(4, "decimal", #","precision":9"#), [0xFF, 0xFF, 0xFF, 0xFE], #""-2""#),
    // Big-decimals: length of the whole, length of the number, the number, the scale.
    Row(logical("bytes", "big-decimal"), [8, 4, 0x04, 0xD2, 4], #""12.34""#),
    Row(logical("bytes", "big-decimal"), [6, 2, 0xF4, 3], #""-1200""#),
    Row(logical("bytes", "big-decimal"), [6, 2, 0, 3], #""0""#),
    Row(logical("bytes", "big-decimal"), [4, 0, 6], #""0.000""#),
    Row(
      logical("string", "uuid"), [72] + Array("6ba7b810-9dad-11d1-80b4-00c04fd430C8".utf8),
      #""6ba7b810-9dad-11d1-80b4-00c04fd430C8""#),
    Row(
      fixed(16, "uuid"),
      [
        0x6B, 0xA7, 0xB8, 0x10, 0x9D, 0xAD, 0x11, 0xD1, 0x80, 0xB4, 0x00, 0xC0, 0x4F, 0xD4, 0x30,
        0xC8,
      ],
      #""6ba7b810-9dad-11d1-80b4-00c04fd430c8""#),
    Row(logical("int", "date"), [0x01], #""1969-12-31""#),
    Row(logical("int", "date"), [0xFE, 0xFF, 0xFF, 0xFF, 0x0F], #""+5881580-07-11""#),
    Row(logical("int", "time-millis"), [0x02], #""00:00:00.001""#),
    Row(logical("int", "time-millis"), [0x01], #""-00:00:00.001""#),
    Row(logical("long", "time-micros"), [0x02], #""00:00:00.000001""#),
    Row(logical("long", "timestamp-millis"), [0x02], #""1970-01-01T00:00:00.001Z""#),
    Row(logical("long", "timestamp-micros"), [0x01], #""1969-12-31T23:59:59.999999Z""#),
    Row(logical("long", "timestamp-nanos"), [0x02], #""1970-01-01T00:00:00.000000001Z""#),
    Row(logical("long", "local-timestamp-millis"), [0x02], #""1970-01-01T00:00:00.001""#),
    Row(logical("long", "local-timestamp-micros"), [0x02], #""1970-01-01T00:00:00.000001""#),
    Row(logical("long", "local-timestamp-nanos"), [0x02], #""1970-01-01T00:00:00.000000001""#),
    Row(
      logical("long", "timestamp-millis"),
      [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
      #""+292278994-08-17T07:12:55.807Z""#),
    Row(
      fixed(12, "duration"), [1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
      #"{"months":1,"days":2,"milliseconds":4294967295}"#),
    // Logical types that do not fit: as if they were not there.
    Row(logical("long", "date"), [2], "1"),
    Row(logical("int", "timestamp-millis"), [2], "1"),
    Row(logical("string", "big-decimal"), [2, 0x61], #""a""#),
    Row(logical("bytes", "no-such"), [2, 0x61], #""YQ==""#),
    Row(fixed(4, "decimal", #","precision":10"#), [0, 0, 0, 7], #""AAAABw==""#),
    Row(fixed(11, "duration"), [UInt8](repeating: 0, count: 11), #""AAAAAAAAAAAAAAA=""#),
    Row(fixed(15, "uuid"), [UInt8](repeating: 0, count: 15), #""AAAAAAAAAAAAAAAAAAAA""#),
  ]

  @Test("Each type has one text form", arguments: rows)
  func types(row: Row) throws {
    func decode(_ payload: [UInt8], _ schema: String) throws -> String {
      try JSONVisitor.decode(payload, with: DecodePlan(Schema(parsing: Array(schema.utf8))))
    }
    #expect(try decode(row.payload, row.type) == row.json)
    let record = #"{"type":"record","name":"Outer","fields":[{"name":"f","type":\#(row.type)}]}"#
    #expect(try decode(row.payload, record) == "{\"f\":\(row.json)}")
    // A union directly inside an array is one; so is the field of a record inside an array.
    let array = #"{"type":"array","items":\#(record)}"#
    #expect(
      try decode([4] + row.payload + row.payload + [0], array)
        == "[{\"f\":\(row.json)},{\"f\":\(row.json)}]")
    if !row.type.hasPrefix("[") && row.type != #""null""# {
      for union in [#"["null",\#(row.type)]"#, #"[\#(row.type),"null"]"#] {
        let branch: UInt8 = union.hasPrefix(#"["null""#) ? 2 : 0
        #expect(try decode([branch] + row.payload, union) == row.json)
        #expect(try decode([2 - branch], union) == "null")
      }
      let open = #"["null",{"type":"fixed","name":"G","size":1},\#(row.type)]"#
      #expect(try decode([4] + row.payload, open) == row.json)
    }
  }

  @Test(
    "A big decimal is read within its own bytes",
    arguments: [
      ([2, 2], AvroError.Code.malformed),  // a number that ends too early
      ([2, 0], .malformed),  // no scale
      ([8, 2, 1, 0, 0], .malformed),  // bytes behind the scale
      ([6, 1, 0, 0], .malformed),  // a negative length
      ([0], .malformed),
      ([8, 2, 1, 0x80, 0x80], .malformed),
      ([8, 2, 1, 0x82, 0x80], .malformed),  // a scale that ends too early
      ([10, 2, 1, 0x82, 0x80, 0x04], .limitExceeded),  // a scale of 32,769
      ([8, 2, 1, 0x82, 0x40], .limitExceeded),  // a scale of 4,097
      ([8, 2, 1, 0x81, 0x40], .limitExceeded),  // -4,097
      ([8, 2, 1, 0x80, 0x40], nil),  // 4,096
    ] as [([UInt8], AvroError.Code?)])
  func bigDecimalBounds(
    payload: [UInt8], code: AvroError.Code?
  ) throws {
    for schema in [
      #"{"type":"bytes","logicalType":"big-decimal"}"#,
      #"["int",{"type":"bytes","logicalType":"big-decimal"},"long"]"#,
    ] {
      let plan = try DecodePlan(Schema(parsing: Array(schema.utf8)))
      let payload = schema.hasPrefix("[") ? [2] + payload : payload
      do {
        let text = try JSONVisitor.decode(payload, with: plan)
        #expect(code == nil && text.utf8.count == 4096 + 4)
      } catch let error as AvroError {
        #expect(error.code == code)
        #expect(error.byteOffset != nil)
      }
    }
  }

  @Test("A big decimal of too many digits is refused") func longBigDecimals() throws {
    let plan = try DecodePlan(
      Schema(parsing: Array(#"{"type":"bytes","logicalType":"big-decimal"}"#.utf8)))
    func payload(_ count: Int) -> [UInt8] {
      func varint(_ value: Int) -> [UInt8] { [UInt8((value * 2) & 127 | 128), UInt8(value / 64)] }
      return varint(count + 3) + varint(count) + [UInt8](repeating: 0x7F, count: count) + [0]
    }
    #expect(try JSONVisitor.decode(payload(1700), with: plan).utf8.count > 4090)
    let error = try #require(throws: AvroError.self) {
      try JSONVisitor.decode(payload(1710), with: plan)
    }
    #expect(error.code == .limitExceeded)
  }

  // MARK: Recursion

  @Test(
    "A recursive record becomes JSON",
    arguments: [
      // A list, a tree by arrays, by maps, two records inside each other, and an open union.
      (
        #"{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}"#,
        [2, 2, 4, 2, 6, 0], #"{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}"#
      ),
      (
        #"{"type":"record","name":"T","fields":[{"name":"c","type":{"type":"array","items":"T"}}]}"#,
        [4, 0, 2, 0, 0, 0], #"{"c":[{"c":[]},{"c":[{"c":[]}]}]}"#
      ),
      (
        #"{"type":"record","name":"T","fields":[{"name":"c","type":{"type":"map","values":"T"}}]}"#,
        [2, 2, 0x61, 0, 0], #"{"c":{"a":{"c":{}}}}"#
      ),
      (
        #"{"type":"record","name":"A","fields":[{"name":"b","type":["null",{"type":"record","name":"B","fields":[{"name":"a","type":["null","A"]}]}]}]}"#,
        [2, 2, 2, 0], #"{"b":{"a":{"b":{"a":null}}}}"#
      ),
      (
        #"{"type":"record","name":"E","fields":[{"name":"e","type":["string","E","null","int"]}]}"#,
        [2, 2, 6, 8], #"{"e":{"e":{"e":4}}}"#
      ),
    ] as [(String, [UInt8], String)])
  func recursiveRecords(schema: String, payload: [UInt8], json: String) throws {
    let plan = try DecodePlan(Schema(parsing: Array(schema.utf8)))
    #expect(try JSONVisitor.decode(payload, with: plan) == json)
    for length in payload.indices {
      #expect(throws: AvroError.self) {
        try JSONVisitor.decode(Array(payload[..<length]), with: plan)
      }
    }
  }

  @Test("A record that contains itself is an error at the depth limit") func endlessRecord() throws
  {
    let plan = try DecodePlan(
      Schema(
        parsing: Array(
          #"{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}"#.utf8)))
    let error = try #require(throws: AvroError.self) { try JSONVisitor.decode([], with: plan) }
    #expect(error.code == .limitExceeded)
    #expect(error.path.hasPrefix("r.r.r.r"))
    #expect(error.byteOffset == 0)
  }
}
