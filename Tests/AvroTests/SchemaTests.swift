import Avro
import JSON
import Testing

/// Avro 1.12 specification, "Schema Declaration" to "Schema Fingerprints".
@Suite struct SchemaTests {
  @Test(arguments: [
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
      #"{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":["1"]}]}"#,
      "/fields/0/aliases"
    ),
    (#"{"type":"record","name":"R","fields":[],"aliases":"x"}"#, "/aliases"),
    (#"{"type":"record","name":"R","fields":[],"doc":1}"#, "/doc"),
    (#"{"type":"record","name":"1R","fields":[]}"#, "/name"),
    (#"{"type":"record","name":"a..R","fields":[]}"#, "/name"),
    (#"{"type":"record","name":"R","namespace":"a.","fields":[]}"#, "/name"),
    (#"{"type":"record","name":"int","fields":[]}"#, ""),
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
  func mistakesAreFoundWhereTheyAre(text: String, path: String) {
    let error = #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
    #expect(error?.code == .schema)
    #expect(error?.path == path)
    #expect(error?.byteOffset == nil)
  }

  @Test(arguments: [
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
  func defaultsFitTheirTypes(type: String, value: String, isValid: Bool) throws {
    let text =
      #"{"type":"record","name":"R","fields":[{"name":"f","type":\#(type),"default":\#(value)}]}"#
    if isValid {
      _ = try Schema(parsing: Array(text.utf8))
    } else {
      let error = #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
      #expect(error?.path == "/fields/0/default")
    }
  }

  @Test func attributesAreKept() throws {
    let schema = try Schema(
      parsing: Array(
        """
        {"type":"record","name":"R","namespace":"a.b","doc":"root","aliases":["Old","x.Older"],
         "fields":[
          {"name":"f","type":["null","R"],"default":null,"doc":"Data:Text:00N","aliases":["g"],
           "order":"descending","unknown":[1]},
          {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"],"default":"B"}},
          {"name":"again","type":"a.b.E"},{"name":"short","type":"E"}]}
        """.utf8))
    let root = schema[schema.root]
    #expect(root.name?.full == "a.b.R")
    #expect(root.doc == "root")
    #expect(root.aliases.map(\.full) == ["a.b.Old", "x.Older"])
    guard case .record(let fields) = root.kind else {
      Issue.record("no record")
      return
    }
    #expect(fields[0].doc == "Data:Text:00N")
    #expect(fields[0].aliases == ["g"])
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
  func logicalTypesAreKnownOrIgnored(text: String, expected: LogicalType?) throws {
    let schema = try Schema(parsing: Array(text.utf8))
    #expect(schema[schema.root].logicalType == expected)
  }

  /// Values of the Avro project's own test data (schema-tests.txt).
  @Test(
    arguments: [
      ("null", 0x63dd_24e7_cc25_8f8a), ("boolean", 0x9f42_fc78_a4d4_f764),
      ("int", 0x7275_d51a_3f39_5c8f), ("long", 0xd054_e144_93f4_1db7),
      ("float", 0x4d7c_02cb_3ea8_d790), ("double", 0x8e75_35c0_32ab_957e),
      ("bytes", 0x4fc0_16da_c320_1965), ("string", 0x8f01_4872_6345_03c7),
    ] as [(String, UInt64)])
  func fingerprintsOfPrimitivesAreThePublishedOnes(name: String, expected: UInt64) throws {
    #expect(try Schema(parsing: Array("\"\(name)\"".utf8)).fingerprint == expected)
    #expect(
      try Schema(parsing: Array(#"{"type":"\#(name)","doc":"x"}"#.utf8)).fingerprint == expected)
  }

  @Test func theCanonicalFormHasFullNamesOnceAndNothingElse() throws {
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

  @Test func sizesAreLimited() {
    func code(_ text: String, _ limits: SchemaLimits) -> AvroError.Code? {
      #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8), limits: limits) }?
        .code
    }
    let nested = { (depth: Int) in
      String(repeating: #"{"type":"array","items":"#, count: depth) + #""int""#
        + String(repeating: "}", count: depth)
    }
    #expect(throws: Never.self) { try Schema(parsing: Array(nested(64).utf8)) }
    #expect(code(nested(65), SchemaLimits()) == .limitExceeded)
    #expect(code(nested(100_000), SchemaLimits()) == .limitExceeded)
    let wide =
      #"{"type":"record","name":"R","fields":["#
      + (0..<300).map { #"{"name":"f\#($0)","type":"int"}"# }.joined(separator: ",") + "]}"
    #expect(code(wide, SchemaLimits(elements: 500)) == .limitExceeded)
    #expect(code(wide, SchemaLimits(byteCount: 100)) == .limitExceeded)
  }

  /// Each level tries two records, each of which tries two records: 2^n without a budget.
  @Test func defaultsThatTakeExponentialTimeAreRefused() {
    let union = #"["A","B","int"]"#
    let value =
      String(repeating: #"{"x":"#, count: 45) + "\"no\"" + String(repeating: "}", count: 45)
    let text =
      #"[{"type":"record","name":"A","fields":[{"name":"x","type":["A",{"type":"record","name":"B","#
      + #""fields":[{"name":"x","type":\#(union)}]},"int"]},"#
      + #"{"name":"y","type":\#(union),"default":\#(value)}]},"null"]"#
    #expect(throws: AvroError.self) { try Schema(parsing: Array(text.utf8)) }
  }

  @Test func damagedSchemasAreSchemasOrErrors() throws {
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
    for _ in 0..<3000 {
      var damaged = text
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let from = Int.random(in: 0..<damaged.count, using: &random)
        damaged[Int.random(in: 0..<damaged.count, using: &random)] = damaged[from]
      }
      if let schema = try? Schema(parsing: damaged) {
        _ = schema.canonicalForm
        _ = try? DecodePlan(schema)
      }
    }
  }
}
