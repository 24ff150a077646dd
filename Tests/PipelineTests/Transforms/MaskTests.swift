import Cryptography
import JSON
import Testing

@testable import Pipeline

@Suite("Stage mask")
struct MaskTests {
  private static let columns: [(String, ColumnType)] = [
    ("Email", .string), ("Amount", .double), ("Count", .int64), ("IsWon", .boolean),
    ("Day", .date(.days)), ("At", .timestamp(.milliseconds, isLocal: false)),
    ("Micros", .timestamp(.microseconds, isLocal: false)), ("Old", .date(.milliseconds)),
    ("Stage", .enumeration(["New", "Gewählt"])), ("Tags", .json), ("Real", .float),
    ("Noon", .time(.milliseconds)), ("Length", .duration),
  ]
  private static let key = "0123456789abcdef"

  private static let replacements: [(String, CellValue, String, CellValue)] = [
    ("Email", CellValue.text("anna@example.com"), #""with":"redact""#, CellValue.text("***")),
    ("Email", .text("anna@example.com"), #""with":"redact","text":"""#, .text("")),
    ("Amount", .double(1.5), #""with":"redact","text":"x""#, .text("x")),
    ("IsWon", .bool(true), #""with":"redact""#, .text("***")),
    ("Tags", .text("[1]"), #""with":"redact""#, .text("***")),
    ("Email", .text("äöü😀x"), #""with":"truncate","length":4"#, .text("äöü😀")),
    ("Email", .text("ab"), #""with":"truncate","length":4"#, .text("ab")),
    ("Email", .text(""), #""with":"truncate","length":1"#, .text("")),
    ("Stage", .int(1), #""with":"truncate","length":4"#, .text("Gewä")),
    ("Day", .int(20_501), #""with":"year""#, .int(2026)),
    ("Day", .int(-1), #""with":"year""#, .int(1969)),
    ("Old", .int(-1), #""with":"year""#, .int(1969)),
    ("At", .int(1_771_300_000_000), #""with":"year""#, .int(2026)),
    ("Micros", .int(-1), #""with":"year""#, .int(1969)),
    ("Email", .text("1984-02-29"), #""with":"year""#, .int(1984)),
    ("Email", .text("1984-02-29T04:03:15Z"), #""with":"year""#, .int(1984)),
  ]

  private static let canonicalTexts: [(String, CellValue, String)] = [
    ("Email", CellValue.text("Anna@Example.com "), "Anna@Example.com "), ("Email", .text(""), ""),
    ("Amount", .double(100), "100"), ("Count", .int(100), "100"), ("Email", .text("100"), "100"),
    ("Amount", .double(-0.5), "-0.5"), ("Amount", .double(1e21), "1000000000000000000000"),
    ("Amount", .double(1e-7), "0.0000001"), ("Amount", .double(-0.0), "0"),
    ("Amount", .double(.nan), "NaN"), ("Amount", .double(-.infinity), "-Infinity"),
    ("Real", .int(Int64(Float(0.1).bitPattern)), "0.1"),
    ("IsWon", .bool(true), "true"), ("Day", .int(20_501), "2026-02-17"),
    ("Old", .int(20_501 * 86_400_000), "2026-02-17"),
    ("At", .int(20_501 * 86_400_000), "2026-02-17T00:00:00Z"),
    ("Micros", .int(20_501 * 86_400_000_000 + 120_000), "2026-02-17T00:00:00.12Z"),
    ("Noon", .int(43_200_000), "12:00:00"), ("Stage", .int(1), "Gewählt"),
    ("Tags", .text("[1,2]"), "[1,2]"),
  ]

  private func rows(_ stages: [String], _ rows: [StageRows.Row]) throws -> StageRows {
    let fixture = StageRows(Self.columns)
    for row in rows { fixture.add(row) }
    try StageChain(json: stages).apply(to: fixture.batch)
    return fixture
  }

  private func stage(_ column: String, _ rest: String) -> String {
    #"{"type":"mask","columns":["\#(column)"],\#(rest)}"#
  }

  private static func hash(_ text: String) -> CellValue {
    var code = [UInt8](repeating: 0, count: HMACSHA256.byteCount)
    Array(text.utf8).withUnsafeBufferPointer {
      HMACSHA256(key: Array(Self.key.utf8)).authenticate($0, into: &code)
    }
    return .text(HashValue(bytes: code).hex)
  }

  @Test(
    "Values are replaced, null stays null, and absent stays absent",
    arguments: Self.replacements)
  func values(
    column: String, value: CellValue, method: String, expected: CellValue
  ) throws {
    let rows = try self.rows(
      [self.stage(column, method)],
      [.init(cells: [column: value]), .init(cells: [column: .null]), .init()])
    #expect((0..<3).map { rows.value(column, ofRow: $0) } == [expected, .null, .absent])
  }

  @Test(
    "A hash is computed from the canonical text, so that equal values join",
    arguments: Self.canonicalTexts)
  func hashes(column: String, value: CellValue, text: String) throws {
    let rows = try self.rows(
      [self.stage(column, #""with":"hash","key":"\#(Self.key)""#)],
      [.init(cells: [column: value]), .init(cells: [column: value]), .init(cells: [column: .null])])
    #expect(rows.value(column, ofRow: 0) == Self.hash(text))
    #expect(rows.value(column, ofRow: 1) == Self.hash(text))
    #expect(rows.value(column, ofRow: 2) == .null)
  }

  @Test("drop removes columns that match names and patterns, and metadata columns are not fields")
  func dropAndPatterns() throws {
    let rows = try self.rows(
      [#"{"type":"mask","columns":["*mai?","A*"],"with":"drop"}"#],
      [.init(cells: ["Email": .text("anna"), "Count": .int(7)])])
    let names = rows.batch.layout.columns.map(\.name)
    #expect(names.filter { $0.hasPrefix("_") }.count == 5)
    #expect(!names.contains { ["Email", "Amount", "At"].contains($0) })
    #expect(rows.value("Count", ofRow: 0) == .int(7))
  }

  @Test("An event whose text contains no date is refused without showing the value")
  func noYear() throws {
    let fixture = StageRows(Self.columns)
    let texts = ["4 July 1984", "1984-02-30", "1984-02-281", "1984-02", ""]
    for text in texts { fixture.add(.init(cells: ["Email": .text(text)])) }
    fixture.add(.init(cells: ["Email": .text("1984-02-28")]))
    let chain = try StageChain(json: [self.stage("Email", #""with":"year""#)])
    try chain.apply(to: fixture.batch)
    let refused = chain.takeRefusedEvents()
    #expect(refused.map(\.ordinal) == [0, 1, 2, 3, 4])
    #expect(refused.allSatisfy { $0.reason.contains("column 'Email'") })
    #expect(!refused.contains { $0.reason.contains("July") || $0.reason.contains("1984") })
    #expect(fixture.value("Email", ofRow: 0) == .int(1984))
  }

  @Test("A diff of a long text can be redacted, and other methods refuse it")
  func diffs() throws {
    for (method, expected, isDiff) in [
      (#""with":"redact""#, "***", false), (#""with":"truncate","length":3"#, "", true),
      (#""with":"hash","key":"\#(Self.key)""#, "", true),
    ] {
      let fixture = StageRows(Self.columns)
      fixture.add(.init(cells: ["Email": .text("--- Anna\n+++ Bert")]))
      let bits =
        [UInt8](repeating: 1, count: 4).enumerated().map { $0.offset == 2 ? 1 : 0 } as [UInt8]
      let list = bits.withUnsafeBufferPointer { fixture.batch.append($0) }
      fixture.batch.row(0).set(MetadataSlot.diffFields, to: list)
      try StageChain(json: [self.stage("Email", method)]).apply(to: fixture.batch)
      #expect(fixture.value("Email", ofRow: 0) == .text(expected))
      #expect(fixture.list(MetadataSlot.diffFields, ofRow: 0) == (isDiff ? ["Email"] : []))
      #expect(fixture.list(MetadataSlot.changedFields, ofRow: 0) == ["Email"])
    }
  }

  @Test("Records that were read are masked like events, and so are those of other schemas")
  func readsAndSchemas() throws {
    let chain = try StageChain(json: [self.stage("Email", #""with":"redact""#)])
    for columns in [Self.columns, [("Other", .int32), ("Email", .string)], [("Other", .int32)]] {
      let fixture = StageRows(columns)
      fixture.add(.init(kind: .snapshot, changeType: "SNAPSHOT", cells: ["Email": .text("anna")]))
      fixture.add(.init(changeType: "CREATE", cells: ["Email": .text("anna")]))
      try chain.apply(to: fixture.batch)
      for row in 0..<2 {
        #expect(fixture.value("Email", ofRow: row) == (columns.count == 1 ? nil : .text("***")))
      }
    }
    #expect(chain.namedColumns.first?.unmatched == [])
  }

  @Test("A pattern without a match is reported like a name that no schema has")
  func unmatched() throws {
    let chain = try StageChain(
      json: [#"{"type":"mask","columns":["*Emial*","Em*"],"with":"redact"}"#])
    _ = try chain.layout(for: StageRows(Self.columns).layout)
    #expect(chain.namedColumns.first?.unmatched == ["*Emial*"])
    let strict = try StageChain(
      json: [#"{"type":"drop","columns":["*Emial*"],"missing":"fail"}"#])
    #expect(throws: TransformError.self) { try strict.layout(for: StageRows(Self.columns).layout) }
  }

  @Test("select keeps, and drop removes, columns that match a pattern")
  func otherStages() throws {
    let layout = StageRows(Self.columns).layout
    let selected = try StageChain(json: [#"{"type":"select","columns":["*o*"]}"#]).layout(
      for: layout)
    #expect(
      selected.names.filter { !$0.hasPrefix("_") } == [
        "Amount", "Count", "IsWon", "Micros", "Noon",
      ])
    let dropped = try StageChain(json: [#"{"type":"drop","columns":["*","_ch*"]}"#]).layout(
      for: layout)
    #expect(dropped.names == ["_entity", "_record_id", "_nulled_fields"])
  }

  @Test("Metadata that names people can be masked, and metadata that identifies rows cannot")
  func metadata() throws {
    let user = Column(metadata: "_commit_user", MetadataSlot.commitUser)
    let layout = RecordLayout.of([user, Column("Email", 16)], slotCount: 17)
    for (method, expected) in [("redact", "***"), ("drop", nil)] {
      let batch = RecordBatch(layout: layout)
      let row = batch.addRow()
      let text = Array("005000000000001AAA".utf8).withUnsafeBufferPointer { batch.append($0) }
      batch.row(row).set(MetadataSlot.commitUser, to: text)
      batch.events = [
        RecordBatch.Event(
          firstRow: 0, rowCount: 1, replayID: text, eventID: text, commitTimestamp: 1, kind: .change
        )
      ]
      try StageChain(json: [self.stage("_commit_user", #""with":"\#(method)""#)]).apply(to: batch)
      let found = batch.row(0).value(MetadataSlot.commitUser).map {
        String(decoding: batch.row(0).bytes($0), as: UTF8.self)
      }
      #expect(found == expected)
    }
    #expect(throws: TransformError.self) {
      try StageChain(json: [self.stage("_record_id", #""with":"redact""#)])
        .layout(for: StageRows(Self.columns).layout)
    }
  }

  @Test("A record that is not flattened is masked as a whole or not at all")
  func records() throws {
    let layout = RecordLayout.of(
      [Column(record: "Address", 16, children: ["Street", "City"])], slotCount: 19)
    let batch = RecordBatch(layout: layout)
    _ = batch.addRow()
    batch.row(0).set(16, to: 0)
    batch.row(0).set(17, to: Array("Elm".utf8).withUnsafeBufferPointer { batch.append($0) })
    let empty = RecordBatch.Range(offset: 0, count: 0)
    batch.events = [
      RecordBatch.Event(
        firstRow: 0, rowCount: 1, replayID: empty, eventID: empty, commitTimestamp: 1, kind: .change
      )
    ]
    try StageChain(json: [self.stage("Address", #""with":"redact""#)]).apply(to: batch)
    #expect(batch.layout.columns.first?.content == .slot(16, .string))
    #expect(batch.row(0).text(16).elementsEqual("***".utf8))
    for method in [#""with":"year""#, #""with":"hash","key":"\#(Self.key)""#] {
      let error = #expect(throws: TransformError.self) {
        try StageChain(json: [self.stage("Address", method)]).layout(for: layout)
      }
      #expect(error?.message.contains("flatten it first") == true)
    }
  }

  @Test(
    "A type that a method cannot mask is refused when the schema is seen",
    arguments: [
      ("Amount", #""with":"truncate","length":3"#), ("IsWon", #""with":"year""#),
      ("Length", #""with":"hash","key":"0123456789abcdef""#),
    ])
  func types(column: String, method: String) throws {
    let chain = try StageChain(json: [self.stage(column, method)])
    #expect(throws: TransformError.self) { try chain.layout(for: StageRows(Self.columns).layout) }
  }

  @Test(
    "Mistakes in the configuration are reported",
    arguments: [
      (#""with":"hash""#, "/s/key: is required by hash"),
      (#""with":"hash","key":"short""#, "/s/key: needs at least 16 bytes"),
      (#""with":"truncate""#, "/s/length: is required"),
      (#""with":"truncate","length":0"#, "/s/length: expected an integer from 1"),
      (#""with":"redact","length":3"#, "/s/length: belongs to \"with\": \"truncate\""),
      (#""with":"year","text":"x""#, "/s/text: belongs to \"with\": \"redact\""),
      (#""with":"drop","key":"0123456789abcdef""#, "/s/key: belongs to \"with\": \"hash\""),
      (#""with":"shuffle""#, "/s/with: unknown method"),
      (#""missing":"fail""#, "/s/with: is required"),
      (#""with":"drop","colums":[]"#, "/s/colums: unknown key"),
    ])
  func mistakes(members: String, expected: String) throws {
    let mistakes = JSONMistakes()
    let value = try JSONValue(parsing: self.stage("Email", members))
    _ = TransformRegistry.stage(reading: JSONReader(value, path: "/s", mistakes: mistakes))
    let found = mistakes.inTextOrder.map { "\($0.path): \($0.message)" }
    #expect(found.contains { $0.hasPrefix(expected) }, "\(found)")
  }

  @Test("A stage's description never shows a key")
  func printing() throws {
    let value = try JSONValue(
      parsing: self.stage("Email", #""with":"hash","key":"\#(Self.key)""#))
    let reader = JSONReader(value, path: "", mistakes: JSONMistakes())
    var text = ""
    dump(TransformRegistry.stage(reading: reader)?(), to: &text)
    #expect(!text.contains(Self.key) && !text.contains("49\n"))
  }
}
