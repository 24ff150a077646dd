import Avro
import JSON
import Testing

@Suite("JSON in the binary encoding of a schema") struct DatumEncoderTests {
  private static func encode(_ json: String, _ schema: String) throws -> ([UInt8], [String]) {
    let mistakes = JSONMistakes()
    let encoder = DatumEncoder(try Schema(parsing: Array(schema.utf8)))
    let bytes = encoder.encode(try JSONValue(parsing: json), path: "", mistakes: mistakes)
    return (bytes, mistakes.all.map(\.description))
  }

  @Test(
    "Values have the bytes of the specification",
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
    "Mistakes have a place and what is accepted",
    arguments: [
      (#"{"City":"Rome"}"#, "/Id: is required: the schema has no default for it"),
      (#"{"Id":1,"Citty":"Rome"}"#, "/Citty: unknown key; did you mean 'City'?"),
      (#"{"Id":2147483648}"#, "/Id: expected an integer of 32 bits, found a number"),
      (#"{"Id":1,"City":5}"#, "/City: expected a value of null, string, found a number"),
      ("[]", "expected an object, found an array"),
    ])
  func mistakes(json: String, message: String) throws {
    let (_, mistakes) = try Self.encode(json, Self.record)
    #expect(mistakes.first?.hasPrefix(message) == true, "\(mistakes)")
  }
}
