import Avro
import JSON
import Testing

@Suite("Encoding JSON as Avro") struct DatumEncoderTests {
  private static func encode(
    _ json: String, _ schema: String, bytes: DatumEncoder.BytesForm = .characters
  ) throws -> ([UInt8], [String]) {
    let mistakes = JSONMistakes()
    let encoder = DatumEncoder(try Schema(parsing: Array(schema.utf8)), bytes: bytes)
    let bytes = encoder.encode(try JSONValue(parsing: json), path: "", mistakes: mistakes)
    return (bytes, mistakes.all.map(\.description))
  }

  @Test(
    "Values have the bytes that the specification gives",
    arguments: [
      ("null", #""null""#, []), ("true", #""boolean""#, [1]), ("-64", #""int""#, [0x7F]),
      ("64", #""long""#, [0x80, 0x01]), (#""foo""#, #""string""#, [6, 0x66, 0x6F, 0x6F]),
      ("1.0", #""float""#, [0, 0, 0x80, 0x3F]),
      ("-2", #""double""#, [0, 0, 0, 0, 0, 0, 0, 0xC0]),
      (#""ÿ\u0001""#, #""bytes""#, [4, 0xFF, 1]),
      (#""ab""#, #"{"type":"fixed","name":"F","size":2}"#, [0x61, 0x62]),
      (#""B""#, #"{"type":"enum","name":"E","symbols":["A","B"]}"#, [2]),
      ("[3,27]", #"{"type":"array","items":"long"}"#, [4, 6, 54, 0]),
      ("[]", #"{"type":"array","items":"long"}"#, [0]),
      (#"{"a":1}"#, #"{"type":"map","values":"int"}"#, [2, 2, 0x61, 2, 0]),
      ("null", #"["null","string"]"#, [0]), (#""a""#, #"["null","string"]"#, [2, 2, 0x61]),
      ("5", #"["string","double","long"]"#, [2, 0, 0, 0, 0, 0, 0, 0x14, 0x40]),
      // Whole numbers of programs that hold them as doubles; in a union, the double is meant.
      ("3.0", #""long""#, [6]), ("1e2", #""int""#, [0xC8, 0x01]),
      // 2 * (2^53 + 1), which a double does not hold; 10^18 is above 2^53.
      (
        "9.007199254740993e15", #""long""#,
        [0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]
      ),
      ("1e18", #"["null", "long"]"#, [2] + [0x80, 0x80, 0xA0, 0xF6, 0xF4, 0xAC, 0xDB, 0xE0, 0x1B]),
      ("-0.0", #"["null","int"]"#, [2, 0]),
      ("5.0", #"["long","double"]"#, [2, 0, 0, 0, 0, 0, 0, 0x14, 0x40]),
      // 1 s after 1970, in milliseconds and in microseconds; 1970-01-02 in days.
      (#""1970-01-01T00:00:01Z""#, #""long""#, [0xD0, 0x0F]),
      (
        #""1970-01-01T00:00:01Z""#, #"{"type":"long","logicalType":"timestamp-micros"}"#,
        [0x80, 0x89, 0x7A]
      ),
      (#""1970-01-02""#, #"{"type":"int","logicalType":"date"}"#, [2]),
    ] as [(String, String, [UInt8])])
  func bytes(json: String, schema: String, expected: [UInt8]) throws {
    let (bytes, mistakes) = try Self.encode(json, schema)
    #expect(mistakes == [])
    #expect(bytes == expected)
  }

  private static let decimal =
    #"{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}"#
  private static let fixedDecimal =
    #"{"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":9,"scale":2}"#
  private static let uuid = #"{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}"#
  private static let duration =
    #"{"type":"fixed","name":"P","size":12,"logicalType":"duration"}"#
  private static let micros = #"{"type":"long","logicalType":"timestamp-micros"}"#

  @Test(
    "Values of logical types are encoded, and bytes may come as base64",
    arguments: [
      ("1.5", decimal, [4, 0, 150]), ("-1.28", decimal, [2, 0x80]),
      ("-1.29", decimal, [4, 0xFF, 0x7F]),
      ("0", decimal, [2, 0]), (#""99.99""#, decimal, [4, 0x27, 0x0F]),
      ("1e1", decimal, [4, 0x03, 0xE8]),
      ("150e-2", decimal, [4, 0, 150]), ("-0.01", fixedDecimal, [0xFF, 0xFF, 0xFF, 0xFF]),
      ("1", fixedDecimal, [0, 0, 0, 100]),
      (#""-12.50""#, #"{"type":"bytes","logicalType":"big-decimal"}"#, [8, 4, 0xFB, 0x1E, 4]),
      (
        #""00112233-4455-6677-8899-aabbCCDDEEFF""#, uuid,
        [
          0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE,
          0xFF,
        ]
      ),
      (
        #"{"months":1,"days":2,"milliseconds":4294967295}"#, duration,
        [1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]
      ),
      (#""1970-01-01T00:00:00.000001Z""#, micros, [2]),
      (#""1969-12-31T23:59:59.999999Z""#, micros, [1]),
      (
        #""1970-01-01T00:00:00.5""#, #"{"type":"long","logicalType":"local-timestamp-millis"}"#,
        [0xE8, 7]
      ),
      (#""00:00:00.064""#, #"{"type":"int","logicalType":"time-millis"}"#, [0x80, 1]),
      (#""/wE=""#, #""bytes""#, [4, 0xFF, 1]),
      (#""YWI=""#, #"{"type":"fixed","name":"F","size":2}"#, [0x61, 0x62]),
      // A union's branch by its kind, by its name, and by what fits.
      (#"{"bytes":"YQ=="}"#, #"["string","bytes"]"#, [2, 2, 0x61]),
      (#"{"string":"a"}"#, #"["null","bytes","string"]"#, [4, 2, 0x61]),
      (
        #"{"bytes":"x"}"#, #"[{"type":"map","values":"string"},"bytes"]"#,
        [0, 2, 10, 0x62, 0x79, 0x74, 0x65, 0x73, 2, 0x78, 0]
      ),
      (
        "1.25", #"["null",{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}]"#,
        [2, 2, 125]
      ),
    ] as [(String, String, [UInt8])])
  func logicalTypes(json: String, schema: String, expected: [UInt8]) throws {
    let (bytes, mistakes) = try Self.encode(json, schema, bytes: .base64)
    #expect(mistakes == [])
    #expect(bytes == expected)
  }

  @Test(
    "A value that a logical type cannot hold is a mistake",
    arguments: [
      ("1.234", decimal, "expected a decimal of up to 4 digits, 2 of them after the decimal point"),
      ("100", decimal, "expected a decimal"), (#""1,5""#, decimal, "expected a decimal"),
      (#""""#, decimal, "expected a decimal"), ("1e9999", decimal, "expected a decimal"),
      ("99999999", fixedDecimal, "expected a decimal of up to 9 digits"),
      (#""00112233-4455-6677-8899-aabbccddeef""#, uuid, "expected a UUID"),
      (#""x""#, #"{"type":"string","logicalType":"uuid"}"#, "expected a UUID"),
      (#"{"months":1,"days":2}"#, duration, "expected an object of months, days and milliseconds"),
      (#"{"months":-1,"days":2,"milliseconds":3}"#, duration, "expected an object of months"),
      (#""1970-01-01T00:00:00.0000001Z""#, micros, "expected a time such as"),
      (#""1970-01-01T00:00:00""#, micros, "expected a time such as"),
      (
        #""9999-12-31T00:00:00Z""#, #"{"type":"long","logicalType":"timestamp-nanos"}"#,
        "expected a time"
      ),
      (#""a""#, #""bytes""#, "expected base64"),
      (#""YQ==""#, #"{"type":"fixed","name":"F","size":2}"#, "expected base64 of 2 bytes"),
    ])
  func logicalMistakes(json: String, schema: String, message: String) throws {
    let (_, mistakes) = try Self.encode(json, schema, bytes: .base64)
    #expect(mistakes.first?.hasPrefix(message) == true, "\(mistakes)")
  }

  @Test("Defaults of bytes are read as characters, whatever the form of payloads")
  func defaultBytes() throws {
    let schema =
      #"{"type":"record","name":"R","fields":[{"name":"b","type":"bytes","default":"a"}]}"#
    #expect(try Self.encode("{}", schema, bytes: .base64).0 == [2, 0x61])
    #expect(try Self.encode("{}", schema).0 == [2, 0x61])
  }

  private static let record = """
    {"type":"record","name":"R","fields":[{"name":"Id","type":"int"},
      {"name":"City","type":["null","string"]},{"name":"Kind","type":"string","default":"x"}]}
    """

  @Test("Members that may be null or have a default may be left out")
  func defaults() throws {
    let (bytes, mistakes) = try Self.encode(#"{"Id":1}"#, Self.record)
    #expect(mistakes == [])
    #expect(bytes == [2, 0, 2, 0x78])
  }

  @Test(
    "A number beyond the range of its type is a mistake, and infinity is written as text",
    arguments: [
      ("double", "1e400", false), ("double", "-1e400", false), ("double", "1e308", true),
      ("float", "1e39", false), ("float", "1e38", true), ("float", "1e400", false),
      ("double", "\"Infinity\"", true), ("float", "\"-Infinity\"", true),
    ])
  func range(type: String, number: String, isValid: Bool) throws {
    for schema in ["\"\(type)\"", "[\"null\",\"\(type)\"]"] {
      let (_, mistakes) = try Self.encode(number, schema)
      #expect(mistakes.isEmpty == isValid, "\(mistakes)")
      #expect(mistakes.allSatisfy { $0.hasSuffix("found a number out of range") }, "\(mistakes)")
    }
  }

  @Test(
    "A mistake names its place and what is accepted",
    arguments: [
      (#"{"City":"Rome"}"#, "/Id: is required: the schema has no default for it"),
      (#"{"Id":1,"Citty":"Rome"}"#, "/Citty: unknown key; did you mean 'City'?"),
      (#"{"Id":2147483648}"#, "/Id: expected an integer of 32 bits, found a number out of range"),
      (#"{"Id":1.5}"#, "/Id: expected an integer of 32 bits, found a number with a fraction"),
      (#"{"Id":"1"}"#, "/Id: expected an integer of 32 bits, found a string"),
      (#"{"Id":1,"City":5}"#, "/City: expected a string, found a number"),
      ("[]", "expected an object, found an array"),
    ])
  func mistakes(json: String, message: String) throws {
    let (_, mistakes) = try Self.encode(json, Self.record)
    #expect(mistakes.first?.hasPrefix(message) == true, "\(mistakes)")
  }

  /// Records inside each other, each with two fields of the next; the innermost holds `leaf`.
  private static func doubling(levels: Int, leaf: String) -> String {
    var inner = leaf
    for level in 0..<levels {
      inner = """
        {"type":"record","name":"R\(level)","fields":[{"name":"a","type":\(inner),"default":{}},
        {"name":"b","type":"R\(level - 1)","default":{}}]}
        """
    }
    return inner
  }

  @Test(
    "A value whose defaults double at each level is refused at a limit",
    arguments: [
      (
        #"{"name":"x","type":"string","default":"\#(String(repeating: "x", count: 100))"}"#,
        "bytes in Avro"
      ),
      (#"{"name":"x","type":"null","default":null}"#, "values, defaults included"),
    ])
  func doublingDefaults(field: String, reason: String) throws {
    let leaf = #"{"type":"record","name":"R-1","fields":[\#(field)]}"#
      .replacing("R-1", with: "R_")
    let schema = Self.doubling(levels: 30, leaf: leaf).replacing("R-1", with: "R_")
    let (_, mistakes) = try Self.encode("{}", schema)
    #expect(mistakes.count == 1 && mistakes[0].contains(reason), "\(mistakes)")
  }

  @Test("A value is encoded up to each limit, and refused beyond it")
  func limits() throws {
    let schema = try Schema(parsing: Array(#"{"type":"array","items":"string"}"#.utf8))
    let value = try JSONValue(parsing: #"["a","b","c"]"#)
    // A count, three texts of two bytes, an end; the array and its items.
    for (limits, isTaken) in [
      (EncodeLimits(byteCount: 8, values: 4), true), (EncodeLimits(byteCount: 7), false),
      (EncodeLimits(values: 3), false),
    ] {
      let mistakes = JSONMistakes()
      _ = DatumEncoder(schema, limits: limits).encode(value, path: "", mistakes: mistakes)
      #expect(mistakes.isEmpty == isTaken)
    }
  }

  @Test("A decimal is not extended to a fixed size beyond the limit")
  func hugeFixed() throws {
    let schema = """
      {"type":"fixed","name":"F","size":2000000000,"logicalType":"decimal","precision":4}
      """
    let (_, mistakes) = try Self.encode("1", schema)
    #expect(mistakes.count == 1 && mistakes[0].contains("2000000000 bytes"), "\(mistakes)")
  }

  @Test("Mistakes of one value are reported up to a limit")
  func manyMistakes() throws {
    let items = String(repeating: "5,", count: 5000) + "5"
    let (_, mistakes) = try Self.encode(
      "[\(items)]", #"{"type":"array","items":"string"}"#)
    #expect(mistakes.count == EncodeLimits().mistakes)
    let members = (0..<5000).map { #""m\#($0)":1"# }.joined(separator: ",")
    let (_, unknown) = try Self.encode(
      "{\(members)}", #"{"type":"record","name":"R","fields":[]}"#)
    #expect(unknown.count == EncodeLimits().mistakes)
  }
}
