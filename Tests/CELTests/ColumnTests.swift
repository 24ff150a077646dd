import CEL
import Testing

@Suite("Columns")
struct ColumnTests {
  private static let scope = ExpressionScope(columns: [
    .init("StageName", .string), .init("Amount", .double), .init("Price", .decimal),
    .init("Tags", .list(.string)), .init("IsWon", .bool), .init("Closed", .timestamp),
    .init("Address", .dyn), .init("while", .int), .init("a.b", .int), .init("x y", .int),
  ])

  /// - Parameter values: of the columns; all others are absent.
  private func evaluate(_ source: String, _ values: [String: Value]) throws -> String {
    let frame = Frame(try CompiledExpression(source, scope: Self.scope))
    for (name, value) in values { frame.set(try #require(Self.scope.index(of: name)), to: value) }
    return description(frame.evaluate(), frame)
  }

  @Test(
    "An absent column makes a result absent only if nothing else decides it",
    arguments: [
      ("Amount > 5.0", "absent"), ("Amount == null", "absent"), ("!IsWon", "absent"),
      ("IsWon && false", "bool false"), ("false && IsWon", "bool false"),
      ("IsWon || true", "bool true"), ("IsWon || false", "absent"), ("true && IsWon", "absent"),
      ("IsWon || 1 / 0 > 0", "absent"), ("1 / 0 > 0 || IsWon", "absent"),
      ("IsWon ? 1 : 2", "absent"), ("true ? 1 : while", "syntax error"),
      ("true ? 1 : row.while", "int 1"), ("has(row.Amount)", "bool false"),
      ("has(row.Amount) && Amount > 5.0", "bool false"),
      ("has(row.Amount) ? Amount : 0.0", "double 0.0"),
      ("[1].exists(x, IsWon)", "absent"), ("[1, 2].exists(x, x == 2 || IsWon)", "bool true"),
      ("'Amount' in row", "bool false"), ("size(row)", "int 0"), ("row", "map {}"),
      ("StageName.startsWith('a') || 'x'.contains('x')", "bool true"),
    ])
  func absence(source: String, expected: String) throws {
    do {
      #expect(try self.evaluate(source, [:]) == expected)
    } catch let error as CELError {
      #expect(error.code == .syntax && expected == "syntax error")
    }
  }

  @Test(
    "A column is a variable and a member of row",
    arguments: [
      ("Amount", "double 12.5"), ("row.Amount", "double 12.5"), ("row['Amount']", "double 12.5"),
      (".Amount", "double 12.5"), ("has(row.Amount)", "bool true"), ("row.while + 1", "int 8"),
      ("a.b", "int 3"), ("row.`x y`", "int 4"), ("size(row)", "int 4"),
      ("'Amount' in row", "bool true"),
      ("[1].map(Amount, Amount)", "list [1]"), ("[1].map(Amount, .Amount)", "list [12.5]"),
    ])
  func names(source: String, expected: String) throws {
    let row: [String: Value] = [
      "Amount": .double(12.5), "while": .int(7), "a.b": .int(3), "x y": .int(4),
    ]
    #expect(try self.evaluate(source, row) == expected)
  }

  @Test(
    "Mistakes are found without a row, and the errors list the choices",
    arguments: [
      ("StageNam == 'x'", "'StageNam' is not a column; did you mean 'StageName'?"),
      ("row.amount > 1", "'amount' is not a column; did you mean 'Amount'?"),
      ("has(row.Amuont)", "'Amuont' is not a column; did you mean 'Amount'?"),
      (
        "StageName > 1",
        "'>' does not take (string, int); it orders numbers, or two of one type: bool, string, bytes, timestamp, duration"
      ),
      ("StageName == 1", "'==' does not compare string with int"),
      (
        "Amount + 1",
        "'+' does not take (double, int); arithmetic does not mix types; convert with int(), uint() or double()"
      ),
      (
        "Price * 2",
        "'*' does not take (decimal, int); decimals can be compared, not calculated with; convert with double()"
      ),
      (
        "-Price",
        "'-' does not take (decimal); decimals can be compared, not calculated with; convert with double()"
      ),
      ("StageName && true", "'&&' does not take (string, bool); it takes (bool, bool)"),
      ("StageName.startWith('a')", "there is no function 'startWith'; did you mean 'startsWith'?"),
      ("Amount.Value", "double has no field 'Value'"),
      ("StageName[0]", "string has no elements that are found with int"),
      ("'a' in StageName", "'in' does not look for string in string"),
      ("1 in Tags", "'in' does not look for int in list(string)"),
      ("StageName ? 1 : 2", "the condition before '?' is string, not bool"),
      (
        "Tags.all(t, t > 1)",
        "'>' does not take (string, int); it orders numbers, or two of one type: bool, string, bytes, timestamp, duration"
      ),
      (
        "Closed > '2026-01-01'",
        "'>' does not take (timestamp, string); it orders numbers, or two of one type: bool, string, bytes, timestamp, duration"
      ),
    ])
  func mistakes(source: String, message: String) {
    let error = #expect(throws: CELError.self) { try CompiledExpression(source, scope: Self.scope) }
    #expect(error?.message == message)
    #expect(error?.code == .type)
  }

  @Test(
    "The type of the result is known before there is a row",
    arguments: [
      ("StageName == 'a'", .bool), ("Amount * 2.0", .double), ("Tags", .list(.string)),
      ("Tags[0]", .string), ("Tags.map(t, size(t))", .list(.int)), ("Address.City", .dyn),
      ("Address.City == 'x'", .bool), ("IsWon ? 'a' : null", .string),
      ("{'a': [1]}", .map(.string, .list(.int))),
      ("Closed - duration('1s')", .timestamp), ("Closed - Closed", .duration),
      ("Address + 1", .int),
      ("[1, 'a']", .list(.dyn)), ("row", .map(.string, .dyn)),
    ] as [(String, CELType)])
  func resultType(source: String, expected: CELType) throws {
    #expect(try CompiledExpression(source, scope: Self.scope).type == expected)
  }

  @Test("An expression lists the columns that it reads")
  func columns() throws {
    #expect(
      try CompiledExpression("Amount > 1 || StageName == 'a'", scope: Self.scope).columns == [0, 1])
    #expect(try CompiledExpression("has(row.Price)", scope: Self.scope).columns == [2])
    #expect(try CompiledExpression("size(row) > 1", scope: Self.scope).columns == Array(0..<10))
    #expect(try CompiledExpression("1 + 1", scope: Self.scope).columns == [])
  }

  @Test(
    "Decimals are compared exactly",
    arguments: [
      // 12.50
      ([0x04, 0xE2], 2, "Price == 12.5", true), ([0x04, 0xE2], 2, "Price > 12", true),
      ([0x04, 0xE2], 2, "Price < 13u", true),
      ([0x04, 0xE2], 2, "Price >= 12.500000000000002", false),
      // 0.1, which no double is.
      ([0x01], 1, "Price == 0.1", false), ([0x01], 1, "Price < 0.1", true),
      ([0xFF], 1, "Price > -0.1", true), ([0xFF], 1, "Price == -0.1", false),
      // -1.00, 0, an empty zero
      ([0x9C], 2, "Price == -1", true), ([0x9C], 2, "Price < 0u", true),
      ([], 2, "Price == 0", true),
      ([0x9C], 2, "Price in [-1.0]", true), ([0x9C], 2, "string(Price) == '-1.00'", true),
      ([0x04, 0xE2], 2, "double(Price) * 2.0 == 25.0", true),
      // 2^136, beyond 128 bits, and with a large scale
      (
        [1] + [UInt8](repeating: 0, count: 17), 0,
        "Price == 87112285931760246646623899502532662132736.0", true
      ),
      ([1] + [UInt8](repeating: 0, count: 17), 0, "Price > 9223372036854775807", true),
      ([1] + [UInt8](repeating: 0, count: 17), 60, "Price > 0", true),
      ([1] + [UInt8](repeating: 0, count: 17), 60, "Price < 1e-19", true),
      ([0x01], 0, "Price < double('inf')", true), ([0x01], 0, "Price == double('nan')", false),
      ([0x01], 0, "Price > 5e-324", true), ([0x01], 0, "Price > -1e308", true),
    ] as [([UInt8], Int32, String, Bool)])
  func decimals(unscaled: [UInt8], scale: Int32, source: String, expected: Bool) throws {
    let arena = ByteArena()
    let decimal = Decimal(unscaled: arena.store(unscaled), scale: scale)
    #expect(try self.evaluate(source, ["Price": .decimal(decimal)]) == "bool \(expected)")
  }

  @Test("An evaluation ends with an error instead of taking too many steps or too much memory")
  func costs() {
    let digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    let nested = (1...6).reduce("true") { body, level in "\(digits).all(x\(level), \(body))" }
    let message = "error: the evaluation takes too many steps or too much memory"
    #expect(outcome(nested) == message)
    let doubled = (1...40).reduce("['0123456789']") { list, _ in "\(list).map(x, x + x)" }
    #expect(outcome(doubled) == message)
    #expect(outcome("\(nested) || true") == "bool true")
    // Little memory, and 2^40 elements to write or compare.
    let shared = (1...40).reduce("[1]") { list, _ in "\(list).map(x, [x, x])" }
    #expect(outcome(shared) == message)
    #expect(outcome("\(shared) == \(shared)") == message)
  }

  @Test("A pass through a macro counts as many steps as its predicate has parts")
  func countsParts() throws {
    let terms = (0..<2000).map { "x != \($0 + 10)" }.joined(separator: " && ")
    let digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    func passes(_ depth: Int) -> String {
      (0..<depth).reduce("\(digits).all(x, \(terms))") { "\(digits).all(y\($1), \($0))" }
    }
    #expect(outcome(passes(1)) == "bool true")
    // Far fewer passes than the limit.
    #expect(
      outcome(passes(3)) == "error: the evaluation takes too many steps or too much memory")
  }

  @Test(
    "A pattern that makes a large automaton is refused, in the expression and in a row",
    arguments: [#"(\\pL{100}){9}"#, ".{1000}.{1000}.{1000}"])
  func refusesLargePatterns(pattern: String) throws {
    let arena = ByteArena()
    let scope = ExpressionScope(columns: [.init("Name", .string), .init("Pattern", .string)])
    let mistake = #expect(throws: CELError.self) {
      try CompiledExpression("Name.matches('\(pattern)')", scope: scope)
    }
    #expect(mistake?.message.hasPrefix("invalid regular expression: ") == true)
    let frame = Frame(try CompiledExpression("Name.matches(Pattern)", scope: scope))
    frame.set(0, to: .string(arena.store("a")))
    frame.set(1, to: .string(arena.store(pattern.replacing(#"\\"#, with: #"\"#))))
    #expect(
      description(frame.evaluate(), frame) == "error: the text is an invalid regular expression")
  }

  @Test(
    "Searching long texts with large patterns has a limit, and usual searches stay far below it")
  func countsSearches() throws {
    let arena = ByteArena()
    let scope = ExpressionScope(columns: [.init("Description", .string)])
    let text = Value.string(arena.store(String(repeating: "x", count: 131_072)))
    func result(_ source: String) throws -> String {
      let frame = Frame(try CompiledExpression(source, scope: scope))
      frame.set(0, to: text)
      return description(frame.evaluate(), frame)
    }
    let usual = "Description.matches('(?i)urgent|overdue|final notice|#[0-9]{4,8}')"
    let several = Array(repeating: usual, count: 8).joined(separator: " || ")
    #expect(try result(several) == "bool false")
    let large = Array(repeating: "Description.matches('(x{250}y){4}')", count: 8)
    #expect(
      try result(large.joined(separator: " || "))
        == "error: the evaluation takes too many steps or too much memory")
  }

  @Test("An expression has a limited number of patterns")
  func limitsPatterns() {
    func source(_ count: Int) -> String {
      Array(repeating: "'a'.matches('a')", count: count).joined(separator: " && ")
    }
    #expect(outcome(source(256)) == "bool true")
    let mistake = #expect(throws: CELError.self) {
      try CompiledExpression(source(257), scope: ExpressionScope(columns: []))
    }
    #expect(mistake?.message.contains("256") == true)
  }

  @Test("A frame forgets the previous row")
  func frames() throws {
    let frame = Frame(
      try CompiledExpression(
        "StageName + '!'", scope: ExpressionScope(columns: [.init("StageName", .string)])))
    let arena = ByteArena()
    for text in ["a", "bb", String(repeating: "c", count: 5000), ""] {
      frame.set(0, to: .string(arena.store(text)))
      #expect(description(frame.evaluate(), frame) == "string \"\(text)!\"")
    }
    frame.set(0, to: .absent)
    #expect(description(frame.evaluate(), frame) == "absent")
  }
}
