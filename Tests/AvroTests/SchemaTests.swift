import Avro
import Cryptography
import JSON
import Testing

/// Avro 1.12 specification, "Schema Declaration" to "Schema Fingerprints".
@Suite("Schemas") struct SchemaTests {
  @Test(
    "A mistake is reported at its place in the schema",
    arguments: [
      ("", ""), ("{", ""), ("17", ""), (#""no_such""#, ""), (#"{"type":"record"}"#, ""),
      (#"{"name":"R","fields":[]}"#, ""),
      (#"{"type":"record","name":"R"}"#, ""),
      (#"{"type":"record","name":"R","fields":{}}"#, "/fields"),
      (#"{"type":"record","name":"R","fields":[1]}"#, "/fields/0"),
      (#"{"type":"record","name":"R","fields":[{"type":"int"}]}"#, "/fields/0"),
      (#"{"type":"record","name":"R","fields":[{"name":"a"}]}"#, "/fields/0"),
      (#"{"type":"record","name":"R","fields":[{"name":"a","type":"strin"}]}"#, "/fields/0/type"),
      (#"{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}"#, "/fields/0/name"),
      (
        #"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#,
        "/fields/1"
      ),
      (
        #"{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}"#,
        "/fields/0/order"
      ),
      (
        #"{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":[1]}]}"#,
        "/fields/0/aliases/0"
      ),
      (#"{"type":"record","name":"R","fields":[],"aliases":"x"}"#, "/aliases"),
      (#"{"type":"record","name":"R","fields":[],"doc":1}"#, "/doc"),
      (#"{"type":"record","name":"1R","fields":[]}"#, "/name"),
      (#"{"type":"record","name":"a..R","fields":[]}"#, "/name"),
      (#"{"type":"record","name":"R","namespace":"a.","fields":[]}"#, "/name"),
      (#"{"type":"record","name":"int","fields":[]}"#, ""),
      (#"{"type":"fixed","name":"a.b.string","size":1}"#, ""),
      (#"{"type":"enum","name":"null","namespace":"a","symbols":["A"]}"#, ""),
      (#"{"type":"record","name":7,"fields":[]}"#, "/name"),
      (#"{"type":"enum","name":"E"}"#, ""),
      (#"{"type":"enum","name":"E","symbols":["a","a"]}"#, "/symbols"),
      (#"{"type":"enum","name":"E","symbols":["a b"]}"#, "/symbols"),
      (#"{"type":"enum","name":"E","symbols":[3]}"#, "/symbols/0"),
      (#"{"type":"enum","name":"E","symbols":["a"],"default":"b"}"#, "/default"),
      (#"{"type":"fixed","name":"F"}"#, ""), (#"{"type":"fixed","name":"F","size":-1}"#, "/size"),
      (#"{"type":"fixed","name":"F","size":1.5}"#, "/size"),
      (#"{"type":"fixed","name":"F","size":99999999999}"#, "/size"),
      (#"{"type":"array"}"#, ""), (#"{"type":"map","items":"int"}"#, ""),
      (#"{"type":"array","items":"x.Y"}"#, "/items"), (#"["int","int"]"#, "/1"),
      (#"["null",["null","int"]]"#, "/1"),
      (#"[{"type":"array","items":"int"},{"type":"array","items":"long"}]"#, "/1"),
      (#"[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":1}]"#, "/1"),
      (#"[{"type":"fixed","name":"F","size":1},"F"]"#, "/1"),
      (#"[{"type":"int","logicalType":"date"},"int"]"#, "/1"),
    ])
  func mistakes(text: String, path: String) {
    let error = #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
    #expect(error?.code == .schema)
    #expect(error?.path == path)
    #expect(error?.byteOffset == nil)
  }

  @Test(
    "A default has to fit its type",
    arguments: [
      (#""int""#, "1", true), (#""int""#, "2147483648", false), (#""int""#, "1.0", false),
      (#""long""#, "9223372036854775807", true), (#""double""#, "1", true),
      (#""double""#, #""1""#, false), (#""null""#, "null", true), (#""null""#, "0", false),
      (#""boolean""#, "true", true), (#""string""#, #""x""#, true), (#""string""#, "null", false),
      (#""bytes""#, #""\u00ff""#, true), (#""bytes""#, #""\u0100""#, false),
      (#"{"type":"fixed","name":"F","size":2}"#, #""ab""#, true),
      (#"{"type":"fixed","name":"F","size":2}"#, #""a""#, false),
      (#"{"type":"enum","name":"E","symbols":["A"]}"#, #""A""#, true),
      (#"{"type":"enum","name":"E","symbols":["A"]}"#, #""B""#, false),
      (#"{"type":"array","items":"int"}"#, "[1,2]", true),
      (#"{"type":"array","items":"int"}"#, #"[1,"2"]"#, false),
      (#"{"type":"map","values":"int"}"#, #"{"a":1}"#, true),
      (#"{"type":"map","values":"int"}"#, "[]", false), (#"["null","int"]"#, "null", true),
      (#"["null","int"]"#, "5", true), (#"["null","int"]"#, #""5""#, false),
      (#"{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}"#, #"{"x":1}"#, true),
      (#"{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}"#, "{}", false),
      (
        #"{"type":"record","name":"S","fields":[{"name":"x","type":"int","default":3}]}"#, "{}",
        true
      ),
    ])
  func defaults(type: String, value: String, isValid: Bool) throws {
    let text =
      #"{"type":"record","name":"R","fields":[{"name":"f","type":\#(type),"default":\#(value)}]}"#
    if isValid {
      _ = try Schema(parsing: Array(text.utf8))
    } else {
      let error = #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
      #expect(error?.path == "/fields/0/default")
    }
  }

  @Test("Documentation, aliases, orders and defaults are kept") func attributes() throws {
    let schema = try Schema(
      parsing: Array(
        """
        {"type":"record","name":"R","namespace":"a.b","doc":"root","aliases":["Old","x.Older","1 illegal"],
         "fields":[
          {"name":"f","type":["null","R"],"default":null,"doc":"Data:Text:00N","aliases":["g","h-1"],
           "order":"descending","unknown":[1]},
          {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"],"default":"B"}},
          {"name":"again","type":"a.b.E"},{"name":"short","type":"E"}]}
        """.utf8))
    let root = schema[schema.root]
    #expect(root.name?.full == "a.b.R")
    #expect(root.doc == "root")
    #expect(root.aliases.map(\.full) == ["a.b.Old", "x.Older", "a.b.1 illegal"])
    guard case .record(let fields) = root.kind else {
      Issue.record("no record")
      return
    }
    #expect(fields[0].doc == "Data:Text:00N")
    #expect(fields[0].aliases == ["g", "h-1"])
    #expect(fields[0].order == .descending)
    #expect(fields[0].defaultValue == .some(nil as JSONValue))
    guard case .union(let branches) = schema[fields[0].type].kind else {
      Issue.record("no union")
      return
    }
    #expect(branches[1] == schema.root)
    #expect(fields[1].type == fields[2].type && fields[2].type == fields[3].type)
    guard case .enumeration(["A", "B"], "B") = schema[fields[1].type].kind else {
      Issue.record("no enum with default")
      return
    }
  }

  @Test(
    "Logical types are recognized, and unknown or invalid ones are ignored",
    arguments: [
      (
        #"{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}"#,
        .decimal(precision: 9, scale: 2)
      ),
      (
        #"{"type":"bytes","logicalType":"decimal","precision":9}"#, .decimal(precision: 9, scale: 0)
      ),
      (#"{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal","precision":0}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal","precision":3,"scale":-1}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal"}"#, nil),
      (#"{"type":"string","logicalType":"decimal","precision":9}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal","precision":"9"}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal","precision":9,"scale":1.5}"#, nil),
      (#"{"type":"bytes","logicalType":"decimal","precision":1e999}"#, nil),
      (#"{"type":"bytes","logicalType":"big-decimal"}"#, .bigDecimal),
      (#"{"type":"fixed","name":"F","size":4,"logicalType":"big-decimal"}"#, nil),
      (#"{"type":"array","items":"int","logicalType":"date"}"#, nil),
      (#"{"type":"enum","name":"E","symbols":["A"],"logicalType":"uuid"}"#, nil),
      (#"{"type":"record","name":"R","fields":[],"logicalType":"duration"}"#, nil),
      (#"{"type":"fixed","name":"F","size":0,"logicalType":"decimal","precision":1}"#, nil),
      (
        #"{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":9}"#,
        .decimal(precision: 9, scale: 0)
      ),
      (#"{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":10}"#, nil),
      (#"{"type":"string","logicalType":"uuid"}"#, .uuid),
      (#"{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}"#, .uuid),
      (#"{"type":"fixed","name":"F","size":15,"logicalType":"uuid"}"#, nil),
      (#"{"type":"int","logicalType":"date"}"#, .date),
      (#"{"type":"long","logicalType":"date"}"#, nil),
      (#"{"type":"int","logicalType":"time-millis"}"#, .time(.milliseconds)),
      (#"{"type":"long","logicalType":"time-micros"}"#, .time(.microseconds)),
      (
        #"{"type":"long","logicalType":"timestamp-millis"}"#,
        .timestamp(.milliseconds, isLocal: false)
      ),
      (
        #"{"type":"long","logicalType":"timestamp-micros"}"#,
        .timestamp(.microseconds, isLocal: false)
      ),
      (
        #"{"type":"long","logicalType":"timestamp-nanos"}"#,
        .timestamp(.nanoseconds, isLocal: false)
      ),
      (
        #"{"type":"long","logicalType":"local-timestamp-millis"}"#,
        .timestamp(.milliseconds, isLocal: true)
      ),
      (
        #"{"type":"long","logicalType":"local-timestamp-micros"}"#,
        .timestamp(.microseconds, isLocal: true)
      ),
      (
        #"{"type":"long","logicalType":"local-timestamp-nanos"}"#,
        .timestamp(.nanoseconds, isLocal: true)
      ),
      (#"{"type":"fixed","name":"F","size":12,"logicalType":"duration"}"#, .duration),
      (#"{"type":"fixed","name":"F","size":11,"logicalType":"duration"}"#, nil),
      (#"{"type":"long","logicalType":"no-such"}"#, nil),
      (#"{"type":"long","logicalType":7}"#, nil),
    ] as [(String, LogicalType?)])
  func logicalTypes(text: String, expected: LogicalType?) throws {
    let schema = try Schema(parsing: Array(text.utf8))
    #expect(schema[schema.root].logicalType == expected)
  }

  /// Values of the Avro project's own test data (schema-tests.txt).
  @Test(
    "Fingerprints of primitive types equal the published ones",
    arguments: [
      ("null", 0x63dd_24e7_cc25_8f8a), ("boolean", 0x9f42_fc78_a4d4_f764),
      ("int", 0x7275_d51a_3f39_5c8f), ("long", 0xd054_e144_93f4_1db7),
      ("float", 0x4d7c_02cb_3ea8_d790), ("double", 0x8e75_35c0_32ab_957e),
      ("bytes", 0x4fc0_16da_c320_1965), ("string", 0x8f01_4872_6345_03c7),
    ] as [(String, UInt64)])
  func fingerprints(name: String, expected: UInt64) throws {
    #expect(try Schema(parsing: Array("\"\(name)\"".utf8)).fingerprint == expected)
    #expect(
      try Schema(parsing: Array(#"{"type":"\#(name)","doc":"x"}"#.utf8)).fingerprint == expected)
  }

  /// Computed from the text `"int"` by the tools of the system.
  @Test("MD5 and SHA-256 fingerprints are digests of the canonical form") func digests() throws {
    let schema = try Schema(parsing: Array(#"{"type":"int","doc":"x"}"#.utf8))
    #expect(
      schema.sha256Fingerprint.hex
        == "3f2b87a9fe7cc9b13835598c3981cd45e3e355309e5090aa0933d7becb6fba45")
    #expect(try schema.md5Fingerprint().hex == "ef524ea1b91e73173d938ade36c1db32")
  }

  @Test("A name without a namespace takes the enclosing one") func namespaces() throws {
    let schema = try Schema(
      parsing: Array(
        """
        {"type":"record","name":"Example","fields":[
          {"name":"a","type":{"type":"enum","name":"Simple","symbols":["A"]}},
          {"name":"b","type":{"type":"fixed","name":"Simple","namespace":"explicit","size":12}},
          {"name":"c","type":{"type":"record","name":"a.full.Name","namespace":"ignored","fields":[
            {"name":"d","type":{"type":"enum","name":"Understanding","symbols":["D"]}},
            {"name":"e","type":"Understanding"},
            {"name":"f","type":{"type":"fixed","name":"Top","namespace":"","size":1}},
            {"name":"g","type":"Top"},{"name":"h","type":"Name"},{"name":"i","type":"Simple"}]}},
          {"name":"record","type":{"type":"record","name":"record","fields":[]}},
          {"name":"again","type":"record"},{"name":"other","type":"explicit.Simple"}]}
        """.utf8))
    let text = schema.canonicalForm
    for part in [
      #""a","type":{"name":"Simple","type":"enum""#, #""b","type":{"name":"explicit.Simple""#,
      #""d","type":{"name":"a.full.Understanding""#, #""e","type":"a.full.Understanding""#,
      #""f","type":{"name":"Top""#, #""g","type":"Top""#, #""h","type":"a.full.Name""#,
      #""i","type":"Simple""#, #""again","type":"record""#, #""other","type":"explicit.Simple""#,
    ] {
      #expect(text.contains(part), "\(part)")
    }
  }

  @Test("The canonical form has full names and no optional attributes") func canonicalForm() throws
  {
    let schema = try Schema(
      parsing: Array(
        """
        {"doc":"d","fields":[
          {"type":{"size":"0012","type":"fixed","name":"F","logicalType":"duration"},
           "name":"a","default":"xxxxxxxxxxxx"},
          {"name":"b","type":[{"type":"null"},"F"]},
          {"name":"c","type":{"values":{"type":"array","items":"x.R"},"type":"map"}}],
         "type":"record","namespace":"x","name":"R"}
        """.utf8))
    #expect(
      schema.canonicalForm
        == #"{"name":"x.R","type":"record","fields":["#
        + #"{"name":"a","type":{"name":"x.F","type":"fixed","size":12}},"#
        + #"{"name":"b","type":["null","x.F"]},"#
        + #"{"name":"c","type":{"type":"map","values":{"type":"array","items":"x.R"}}}]}"#)
  }

  @Test("A damaged schema gives a schema or an error, never a crash") func damaged() throws {
    let text = Array(
      """
      {"type":"record","name":"R","namespace":"a","fields":[{"name":"f","type":["null","R"],\
      "default":null},{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},\
      {"name":"m","type":{"type":"map","values":{"type":"fixed","name":"F","size":12,\
      "logicalType":"duration"}}},{"name":"d","type":{"type":"bytes","logicalType":"decimal",\
      "precision":9,"scale":2}}]}
      """.utf8)
    for length in text.indices {
      #expect(throws: AvroError.self) { try Schema(parsing: Array(text[..<length])) }
    }
    var random = SplitMix(state: 7)
    var schemas = 0
    for _ in 0..<3000 {
      var damaged = text
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let from = Int.random(in: 0..<damaged.count, using: &random)
        damaged[Int.random(in: 0..<damaged.count, using: &random)] = damaged[from]
      }
      if let schema = try? Schema(parsing: damaged) {
        _ = schema.canonicalForm
        _ = try? DecodePlan(schema)
        schemas += 1
      }
    }
    #expect(schemas > 0)
  }
}
