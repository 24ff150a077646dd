import CEL
import JSON
import Testing

@testable import Pipeline

@Suite("Stage set")
struct SetColumnsTests {
  private static let columns: [(String, ColumnType)] = [
    ("Name", .string), ("Amount", .double), ("IsWon", .boolean), ("Count", .int32),
    ("Price", .decimal(precision: 18, scale: 2)),
  ]

  private func rows(_ stage: String, _ rows: [StageRows.Row]) throws -> StageRows {
    let fixture = StageRows(Self.columns)
    for row in rows { fixture.add(row) }
    try StageChain(json: [stage]).apply(to: fixture.batch)
    return fixture
  }

  private func stage(_ columns: String) -> String { #"{"type":"set","columns":{\#(columns)}}"# }

  @Test(
    "Columns get the values of their expressions",
    arguments: [
      (#""X":"Name + '!'""#, CellValue.text("A!")), (#""X":"Amount * 2.0""#, .double(3)),
      (#""X":"Count + 1""#, .int(8)), (#""X":"!IsWon""#, .bool(false)),
      (#""X":"Name""#, .text("A")), (#""X":"[Count, 2]""#, .text("[7,2]")),
      (#""X":"{'n': Name}""#, .text(#"{"n":"A"}"#)), (#""X":"duration('90s')""#, .text("90s")),
      (#""X":"timestamp('1970-01-01T00:00:01Z')""#, .int(1_000_000)),
      (#""X":"IsWon ? null : 'x'""#, .null),
      (#""X":{"constant":"it's"}"#, .text("it's")), (#""X":{"constant":-7}"#, .int(-7)),
      (#""X":{"constant":true}"#, .bool(true)), (#""X":{"constant":1.5}"#, .double(1.5)),
      (#""X":{"run":"pipeline"}"#, .text("sales")),
      (#""X":{"run":"org"}"#, .text("00D000000000001AAA")),
      (#""X":{"expression":"dyn(Count)","type":"bigint"}"#, .int(7)),
      (#""X":{"expression":"Count","type":"json"}"#, .text("7")),
      (#""X":"_entity""#, .text("Account")),
      (#""X":"has(row.Name)""#, .bool(true)),
    ])
  func values(columns: String, expected: CellValue) throws {
    let row = StageRows.Row(
      cells: [
        "Name": .text("A"), "Amount": .double(1.5), "IsWon": .bool(true), "Count": .int(7),
      ])
    let rows = try self.rows(self.stage(columns), [row, row])
    for number in 0..<2 { #expect(rows.value("X", ofRow: number) == expected) }
    #expect(rows.value("Name", ofRow: 1) == .text("A"))
  }

  @Test("An event whose text would make a batch too large is refused")
  func tooLarge() throws {
    let columns = (1...40).map { #""X\#($0)":"Name + Name""# }.joined(separator: ",")
    let fixture = StageRows(Self.columns)
    let long = String(repeating: "x", count: 4 << 20)
    for name in ["A", long, "B"] { fixture.add(StageRows.Row(cells: ["Name": .text(name)])) }
    let chain = try StageChain(json: [self.stage(columns)])
    try chain.apply(to: fixture.batch)
    let refused = chain.takeRefusedEvents()
    #expect(refused.count == 1)
    #expect(refused.first?.reason.contains("would have more than 256 MiB") == true)
    #expect((0..<2).map { fixture.value("X40", ofRow: $0) } == [.text("AA"), .text("BB")])
    #expect(fixture.batch.byteCount < 64 << 20)
  }

  @Test("A column that is computed from an absent field is absent")
  func absent() throws {
    let rows = try self.rows(
      self.stage(#""X":"Amount * 2.0","Count":"Count + 1""#),
      [
        StageRows.Row(cells: ["Name": .text("A")]), StageRows.Row(cells: ["Amount": .double(1)]),
        StageRows.Row(cells: ["Count": .int(1)]),
      ])
    #expect((0..<3).map { rows.value("X", ofRow: $0) } == [.absent, .double(2), .absent])
    #expect((0..<3).map { rows.value("Count", ofRow: $0) } == [.absent, .absent, .int(2)])
  }

  @Test("A null result becomes absent except in updates, as in the decoder")
  func nulls() throws {
    let rows = try self.rows(
      self.stage(#""X":{"expression":"null","type":"text"}"#),
      ["CREATE", "UPDATE", "DELETE"].map { StageRows.Row(changeType: $0) })
    #expect((0..<3).map { rows.value("X", ofRow: $0) } == [.absent, .null, .absent])
  }

  @Test("The field lists of an update follow the columns that were set")
  func lists() throws {
    let rows = try self.rows(
      self.stage(#""X":"Amount * 2.0","Name":"IsWon ? 'won' : null","Count":"int(Amount)""#),
      [
        StageRows.Row(cells: ["Name": .text("A"), "Amount": .double(1)]),
        StageRows.Row(cells: ["IsWon": .bool(false), "Count": .int(3)]),
      ])
    // Name is computed from IsWon, which the first event does not carry.
    #expect(rows.list(MetadataSlot.changedFields, ofRow: 0) == ["Amount", "Count", "X"])
    #expect(rows.list(MetadataSlot.nulledFields, ofRow: 0) == [])
    #expect(rows.list(MetadataSlot.changedFields, ofRow: 1) == ["Name", "IsWon"])
    #expect(rows.list(MetadataSlot.nulledFields, ofRow: 1) == ["Name"])
  }

  @Test("An event with duplicate JSON keys is refused")
  func repeatedNames() throws {
    let fixture = StageRows(Self.columns)
    fixture.add(StageRows.Row(cells: ["Count": .int(1)]))
    let chain = try StageChain(json: [self.stage(#""X":"{1: Count, '1': Count}""#)])
    try chain.apply(to: fixture.batch)
    #expect(
      chain.takeRefusedEvents().map(\.reason) == [
        "stage set (stages[0]): column 'X': two keys of a map have the same text in JSON"
      ])
  }

  @Test("All expressions see the row as it enters the stage")
  func simultaneous() throws {
    let rows = try self.rows(
      self.stage(#""Amount":"double(Count)","Count":"int(Amount)""#),
      [StageRows.Row(changeType: "CREATE", cells: ["Amount": .double(5), "Count": .int(7)])])
    #expect(rows.value("Amount", ofRow: 0) == .double(7))
    #expect(rows.value("Count", ofRow: 0) == .int(5))
  }

  @Test("An event is refused after a failure, and the error names the column, not the value")
  func failure() throws {
    let fixture = StageRows(Self.columns)
    fixture.add(StageRows.Row(cells: ["Name": .text("secret")]))
    fixture.add(StageRows.Row(cells: ["Name": .text("12")]))
    let chain = try StageChain(json: [self.stage(#""X":"int(Name)""#)])
    try chain.apply(to: fixture.batch)
    #expect(fixture.value("X", ofRow: 0) == .int(12))
    let reasons = chain.takeRefusedEvents().map(\.reason)
    #expect(
      reasons == [
        "stage set (stages[0]): column 'X': line 1, column 1: the text cannot be converted to this type"
      ])
  }

  @Test(
    "Columns that cannot be set are refused",
    arguments: [
      (#""_record_id":"'x'""#, "is a metadata column"), (#""X":"dyn(Name)""#, "state it with"),
      (#""X":{"expression":"Count","type":"double"}"#, "yields int, not double"),
      (#""X":"null""#, "state it with"), (#""X":"Name + 1""#, "line 1, column 6"),
    ])
  func mistakes(columns: String, part: String) throws {
    let chain = try StageChain(json: [self.stage(columns)])
    #expect(throws: TransformError.self) {
      do {
        _ = try chain.layout(for: StageRows(Self.columns).layout)
      } catch {
        #expect("\(error)".contains(part), "\(error)")
        throw error
      }
    }
  }

  @Test("For an object that lacks its columns, an expression gives what is known without them")
  func otherObjects() throws {
    let rows = try self.rows(
      self.stage(
        #""X":"has(row.Stage) ? Stage : 'unknown'","Y":"Stage + '!'","Name":"Stage","Z":"Stage == null""#
      ), [StageRows.Row(cells: ["Name": .text("A")])])
    #expect(rows.value("X", ofRow: 0) == .text("unknown"))
    #expect(rows.value("Y", ofRow: 0) == .absent)
    #expect(rows.value("Name", ofRow: 0) == .text("A"))
    #expect(rows.value("Z", ofRow: 0) == .absent)
  }

  @Test("A column set in one sink's stages does not change the batch of other sinks")
  func copies() throws {
    let fixture = StageRows(Self.columns)
    fixture.add(StageRows.Row(cells: ["Amount": .double(1)]))
    let copy = RecordBatch(layout: fixture.layout)
    let chain = try StageChain(json: [self.stage(#""X":"Amount * 2.0""#)])
    for _ in 0..<2 {
      copy.replaceAll(with: fixture.batch)
      try chain.apply(to: copy)
      #expect(copy.row(0).value(fixture.layout.slotCount) == (2.0).bitPattern)
    }
    #expect(fixture.list(MetadataSlot.changedFields, ofRow: 0) == ["Amount"])
  }

  /// The columns whose values an expression keeps, of a layout with a thousand.
  private func keptColumns(_ expression: String) throws -> [String] {
    let types = ["Name", "Tags", "int", "Other.Last"].map {
      ($0, $0 == "Tags" ? ColumnType.json : .string)
    }
    let fields = (0..<1000).map { ("Field\($0)__c", ColumnType.string) }
    let layout = StageRows(types.filter { expression.contains($0.0) } + fields).layout
    return try StageExpression(ExpressionText(expression)).compiled(for: layout, stage: "set")
      .program.scope.columns.map(\.name)
  }

  @Test(
    "An expression retains only the columns that it names",
    arguments: [
      ("Name + '!'", ["Name"]), ("has(row.Name) ? Field7__c : ''", ["Name", "Field7__c"]),
      ("Tags.exists(t, t == Field1__c)", ["Tags", "Field1__c"]), ("int('1') + 1", ["int"]),
      ("1 + 1", []),
    ])
  func keptColumns(expression: String, expected: [String]) throws {
    #expect(try self.keptColumns(expression) == expected)
  }

  @Test("Expressions find a column whose name has a dot")
  func namesWithDots() throws {
    let layout = StageRows([("Name.First", .string), ("Name", .json)]).layout
    let expression = try StageExpression(ExpressionText("Name.First + '!'"))
    let program = try expression.compiled(for: layout, stage: "set").program
    #expect(program.unknownNames.isEmpty)
    #expect(program.type == .string)
  }

  @Test("Expressions of one stage that read too many columns are refused")
  func boundedReads() throws {
    let layout = StageRows((0..<1000).map { ("Field\($0)__c", .string) }).layout
    func columns(_ count: Int, _ expression: String) -> String {
      (0..<count).map { #""X\#($0)":"\#(expression)""# }.joined(separator: ",")
    }
    let allowed = try StageChain(json: [self.stage(columns(200, "size(row)"))])
    #expect(try allowed.layout(for: layout).columns.count == layout.columns.count + 200)
    let refused = try StageChain(json: [self.stage(columns(300, "size(row)"))])
    let error = #expect(throws: TransformError.self) { try refused.layout(for: layout) }
    #expect(error?.message.contains("read more than 262144 columns in all") == true)
  }
}
