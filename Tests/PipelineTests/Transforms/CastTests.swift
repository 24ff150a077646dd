import Bytes
import JSON
import Testing

@testable import Pipeline

@Suite("Stage cast")
struct CastTests {
  private static let columns: [(String, ColumnType)] = [
    ("Text", .string), ("Double", .double), ("Int", .int32), ("Long", .int64), ("Bool", .boolean),
    ("Day", .date(.days)), ("At", .timestamp(.milliseconds, isLocal: false)), ("Json", .json),
    ("Length", .duration), ("Price", .decimal(precision: 18, scale: 4)),
  ]
  private typealias Case = (column: String, value: CellValue, target: String, expected: String?)

  private func stage(_ column: String, _ target: String, _ rest: String = "") -> String {
    #"{"type":"cast","columns":{"\#(column)":\#(target)}\#(rest)}"#
  }

  /// The text of a row's value, as lines of files have it; nil without a value.
  private func text(_ rows: StageRows, _ name: String, _ row: Int) -> String? {
    guard let column = rows.batch.layout.columns.first(where: { $0.name == name }),
      case .slot(let slot, let type) = column.content,
      let cell = rows.batch.row(row).value(slot)
    else { return nil }
    var buffer = ByteBuffer()
    ValueText.append(
      cell, type, rows.batch.row(row), lost: rows.batch.nonfinite, to: &buffer)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// Nil where the event is refused.
  private static let cases: [Case] = [
    ("Text", .text("12"), #""integer""#, "12"), ("Text", .text(" -7 "), #""bigint""#, "-7"),
    ("Text", .text("1e3"), #""bigint""#, "1000"), ("Text", .text("2.50"), #""integer""#, nil),
    ("Text", .text("2.50"), #"{"to":"integer","rounding":"half_even"}"#, "2"),
    ("Text", .text("2.50"), #"{"to":"integer","rounding":"half_up"}"#, "3"),
    ("Text", .text("-3.5"), #"{"to":"integer","rounding":"half_even"}"#, "-4"),
    ("Text", .text("1,200"), #""integer""#, nil), ("Text", .text(""), #""integer""#, nil),
    ("Text", .text("2147483647"), #""integer""#, "2147483647"),
    ("Text", .text("2147483648"), #""integer""#, nil),
    ("Text", .text("-2147483648"), #""integer""#, "-2147483648"),
    ("Text", .text("9223372036854775807"), #""bigint""#, "9223372036854775807"),
    ("Text", .text("9223372036854775808"), #""bigint""#, nil),
    ("Text", .text("-9223372036854775808"), #""bigint""#, "-9223372036854775808"),
    ("Text", .text("0000-12-31"), #""date""#, nil),
    ("Text", .text("0001-01-01"), #""date""#, "0001-01-01"),
    ("Text", .text("9999-12-31"), #""date""#, "9999-12-31"),
    ("Text", .text("9999-12-31T23:59:59-12:00"), #""timestamp""#, nil),
    ("Text", .text("0001-01-01T00:00:00+12:00"), #""timestamp""#, nil),
    ("Text", .text("1e9999"), #""bigint""#, nil), ("Text", .text("1e99999"), #""bigint""#, nil),
    ("Text", .text("0.1"), #""double""#, "0.1"), ("Text", .text("1e400"), #""double""#, nil),
    ("Text", .text("NaN"), #""double""#, nil), ("Text", .text("0x10"), #""double""#, nil),
    ("Text", .text("12.5"), #""decimal(18,2)""#, "12.50"),
    ("Text", .text("12.505"), #""decimal(18,2)""#, nil),
    ("Text", .text("12.500"), #""numeric(18, 2)""#, "12.50"),
    ("Text", .text("-0.00"), #""decimal(18,2)""#, "0.00"),
    ("Text", .text("99.995"), #"{"to":"decimal(4,2)","rounding":"half_up"}"#, nil),
    (
      "Text", .text("99999999999999999999999999999999999999"), #""decimal(38)""#,
      "99999999999999999999999999999999999999"
    ),
    (
      "Text", .text("-99999999999999999999999999999999999999"), #""decimal(38)""#,
      "-99999999999999999999999999999999999999"
    ),
    ("Text", .text("100000000000000000000000000000000000000"), #""decimal(38)""#, nil),
    ("Double", .double(1200), #""decimal(18,2)""#, "1200.00"),
    ("Double", .double(0.1), #""decimal(18,2)""#, "0.10"),
    ("Double", .double(-1.28), #""decimal(18,2)""#, "-1.28"),
    // By the shortest decimal text: the double itself is a little below 1.005.
    ("Double", .double(1.005), #""decimal(18,2)""#, "1.00"),
    ("Double", .double(1.015), #""decimal(18,2)""#, "1.02"),
    ("Double", .double(1.005), #"{"to":"decimal(18,2)","rounding":"half_up"}"#, "1.01"),
    ("Double", .double(1.005), #"{"to":"decimal(18,2)","rounding":"none"}"#, nil),
    ("Double", .double(-2.675), #""decimal(18,2)""#, "-2.68"),
    ("Double", .double(0.00501), #""decimal(18,2)""#, "0.01"),
    ("Double", .double(0.0004), #""decimal(18,2)""#, "0.00"),
    ("Double", .double(1e16), #""decimal(18,2)""#, nil),
    ("Double", .double(.nan), #""decimal(18,2)""#, nil),
    ("Double", .double(7), #""integer""#, "7"), ("Double", .double(7.5), #""integer""#, nil),
    ("Double", .double(1e19), #""bigint""#, nil), ("Double", .double(100), #""text""#, "100.0"),
    ("Double", .double(-128), #""decimal(5,0)""#, "-128"),
    ("Double", .double(128), #""decimal(5,0)""#, "128"),
    ("Long", .int(9_007_199_254_740_993), #""text""#, "9007199254740993"),
    ("Long", .int(9_007_199_254_740_993), #""double""#, nil),
    ("Long", .int(9_007_199_254_740_992), #""double""#, "9007199254740992.0"),
    ("Long", .int(2_147_483_648), #""integer""#, nil),
    ("Long", .int(5), #""decimal(3,2)""#, "5.00"),
    ("Long", .int(.min), #""decimal(38,0)""#, "-9223372036854775808"),
    ("Int", .int(1), #""boolean""#, "true"), ("Int", .int(2), #""boolean""#, nil),
    ("Bool", .bool(true), #""integer""#, "1"), ("Bool", .bool(false), #""text""#, "false"),
    ("Text", .text("true"), #""boolean""#, "true"), ("Text", .text("0"), #""boolean""#, "false"),
    ("Text", .text("TRUE"), #""boolean""#, nil),
    ("Text", .text("Y"), #"{"to":"boolean","true":["Y"],"false":["N"]}"#, "true"),
    ("Text", .text("Yes"), #"{"to":"boolean","true":["Y"],"false":["N"]}"#, nil),
    ("Text", .text("2026-02-17"), #""date""#, "2026-02-17"),
    ("Text", .text("2026-02-30"), #""date""#, nil),
    ("Text", .text("17.02.2026"), #"{"to":"date","format":"%d.%m.%Y"}"#, "2026-02-17"),
    ("Text", .text("17.02.2026 "), #"{"to":"date","format":"%d.%m.%Y"}"#, nil),
    ("Text", .text("31.11.2026"), #"{"to":"date","format":"%d.%m.%Y"}"#, nil),
    ("Text", .text("2026-02-17"), #""timestamp""#, "2026-02-17T00:00:00.000000Z"),
    ("Text", .text("2026-02-17T04:03:15.25+01:00"), #""timestamp""#, "2026-02-17T03:03:15.250000Z"),
    (
      "Text", .text("2026-02-17 04:03:15"), #"{"to":"timestamp","time_zone":"-05:00"}"#,
      "2026-02-17T09:03:15.000000Z"
    ),
    ("Text", .text("2026-02-17T04:03:15.1234567Z"), #""timestamp""#, nil),
    (
      "Text", .text("02/17/2026 12:05 AM"), #"{"to":"timestamp","format":"%m/%d/%Y %I:%M %p"}"#,
      "2026-02-17T00:05:00.000000Z"
    ),
    (
      "Text", .text("02/17/2026 12:05 pm"), #"{"to":"timestamp","format":"%m/%d/%Y %I:%M %p"}"#,
      "2026-02-17T12:05:00.000000Z"
    ),
    (
      "Text", .text("20260217040315.5+0100"), #"{"to":"timestamp","format":"%Y%m%d%H%M%S.%f%z"}"#,
      "2026-02-17T03:03:15.500000Z"
    ),
    ("Day", .int(20_501), #""timestamp""#, "2026-02-17T00:00:00.000000Z"),
    ("Day", .int(20_501), #"{"to":"text","format":"%d.%m.%Y"}"#, "17.02.2026"),
    ("At", .int(-1), #""date""#, "1969-12-31"),
    ("At", .int(0), #""text""#, "1970-01-01T00:00:00.000Z"),
    ("At", .int(0), #"{"to":"date","time_zone":"-01:00"}"#, "1969-12-31"),
    (
      "At", .int(1_771_300_995_250),
      #"{"to":"text","format":"%d %H:%M:%S.%f %I%p %z%%","time_zone":"+05:30"}"#,
      "17 09:33:15.250000 09AM +0530%"
    ),
    ("Json", .text("[1]"), #""text""#, "[1]"),
  ]

  @Test(
    "A value is converted to the type, or its event is refused, and the error hides the value",
    arguments: 0..<Self.cases.count)
  func values(number: Int) throws {
    let (column, value, target, expected) = Self.cases[number]
    let rows = StageRows(Self.columns)
    for cell in [value, .null, .absent] { rows.add(.init(cells: [column: cell])) }
    let chain = try StageChain(json: [self.stage(column, target)])
    try chain.apply(to: rows.batch)
    let refused = chain.takeRefusedEvents()
    #expect(refused.map(\.ordinal) == (expected == nil ? [0] : []), "\(target) \(value)")
    if expected == nil {
      #expect(refused.first?.reason.contains("column '\(column)'") == true)
      if case .text(let text) = value, text.utf8.count > 2 {
        #expect(refused.first?.reason.contains(text) == false)
      }
    } else {
      #expect(self.text(rows, column, 0) == expected, "\(target) \(value)")
    }
    let rest = expected == nil ? 0 : 1
    #expect((rest...rest + 1).map { self.presence(rows, column, $0) } == [1, 0])
  }

  private func presence(_ rows: StageRows, _ name: String, _ row: Int) -> UInt8? {
    guard let column = rows.batch.layout.columns.first(where: { $0.name == name }),
      case .slot(let slot, _) = column.content
    else { return nil }
    return rows.batch.row(row).presence[slot]
  }

  @Test("A diff of a long text causes its event to be refused, whatever on_error says")
  func diffs() throws {
    let fixture = StageRows([("Text", .string)])
    fixture.add(StageRows.Row(cells: ["Text": .text("12")]))
    let slot = MetadataSlot.count
    var bits = [UInt8](repeating: 0, count: slot / 8 + 1)
    bits[slot / 8] = 1 << UInt8(slot % 8)
    let list = bits.withUnsafeBufferPointer { fixture.batch.append($0) }
    fixture.batch.row(0).set(MetadataSlot.diffFields, to: list)
    let chain = try StageChain(json: [
      #"{"type":"cast","columns":{"Text":"integer"},"on_error":"null"}"#
    ])
    try chain.apply(to: fixture.batch)
    #expect(fixture.batch.rowCount == 0)
    #expect(chain.takeRefusedEvents().count == 1)
  }

  @Test("With on_error null, an unconvertible value becomes an explicit null")
  func nulls() throws {
    let rows = StageRows(Self.columns)
    rows.add(.init(cells: ["Text": .text("x")]))
    rows.add(.init(kind: .snapshot, changeType: "SNAPSHOT", cells: ["Text": .text("x")]))
    rows.add(.init(cells: ["Text": .text("5")]))
    let chain = try StageChain(json: [self.stage("Text", #""integer""#, #","on_error":"null""#)])
    try chain.apply(to: rows.batch)
    #expect(chain.takeRefusedEvents().isEmpty)
    #expect((0..<3).map { rows.value("Text", ofRow: $0) } == [.null, .null, .int(5)])
    #expect(rows.list(MetadataSlot.nulledFields, ofRow: 0) == ["Text"])
    #expect(rows.list(MetadataSlot.nulledFields, ofRow: 2) == [])
  }

  @Test("The next schema may have another type in the column")
  func schemas() throws {
    let chain = try StageChain(json: [self.stage("Text", #""decimal(18,2)""#)])
    for (type, value) in [(ColumnType.string, CellValue.text("1.5")), (.double, .double(1.5))] {
      let rows = StageRows([("Text", type)])
      rows.add(.init(cells: ["Text": value]))
      try chain.apply(to: rows.batch)
      #expect(self.text(rows, "Text", 0) == "1.50")
    }
  }

  @Test(
    "Types that cannot be converted are refused when the schema is seen",
    arguments: [
      ("Json", #""integer""#), ("Bool", #""double""#), ("Day", #""integer""#),
      ("Length", #""text""#),
      ("Double", #""boolean""#), ("Int", #""date""#), ("_record_id", #""bigint""#),
      ("Double", #"{"to":"text","format":"%Y"}"#),
    ])
  func impossible(column: String, target: String) throws {
    let chain = try StageChain(json: [self.stage(column, target)])
    let error = #expect(throws: TransformError.self) {
      try chain.layout(for: StageRows(Self.columns).layout)
    }
    #expect(error?.message.contains("'\(column)'") == true)
  }

  @Test(
    "Mistakes in the configuration are reported",
    arguments: [
      (#""money""#, "/s/columns/A: unknown type 'money'; known: text"),
      (#""decimal(39,2)""#, "/s/columns/A: unknown type"),
      (#""decimal(4,5)""#, "/s/columns/A: unknown type"),
      (#""decimal(,)""#, "/s/columns/A: unknown type"), (#"7"#, "/s/columns/A: expected a string"),
      (#"{"format":"%d"}"#, "/s/columns/A/to: is required"),
      (#"{"to":"date","format":"%d.%m"}"#, "/s/columns/A/format: needs %Y"),
      (#"{"to":"date","format":"%Q"}"#, "/s/columns/A/format: expected a text with"),
      (#"{"to":"date","format":"%"}"#, "/s/columns/A/format: expected a text with"),
      (#"{"to":"date","time_zone":"Berlin"}"#, "/s/columns/A/time_zone: expected UTC"),
      (#"{"to":"integer","format":"%Y"}"#, "/s/columns/A/format: does not apply to integer"),
      (#"{"to":"text","rounding":"half_up"}"#, "/s/columns/A/rounding: does not apply"),
      (#"{"to":"boolean","true":["x"],"false":["x"]}"#, "/s/columns/A/false: 'x' is also listed"),
      (#"{"to":"text","tpye":1}"#, "/s/columns/A/tpye: unknown key"),
    ])
  func mistakes(target: String, expected: String) throws {
    let mistakes = JSONMistakes()
    let value = try JSONValue(parsing: self.stage("A", target))
    _ = TransformRegistry.stage(reading: JSONReader(value, path: "/s", mistakes: mistakes))
    let found = mistakes.inTextOrder.map { "\($0.path): \($0.message)" }
    #expect(found.contains { $0.hasPrefix(expected) }, "\(found)")
  }
}
