import CEL
import Testing

@Suite("Parser")
struct ParserTests {
  @Test(
    "Literals of every type are read",
    arguments: [
      ("0x1F", "int 31"), ("-0x1F", "int -31"), ("0xFFu", "uint 255"), ("42U", "uint 42"),
      (".5", "double 0.5"), ("1.5e3", "double 1500.0"), ("1E-2", "double 0.01"),
      ("1e-400", "double 0.0"), ("'a\"b'", "string \"a\\\"b\""), ("\"a'b\"", "string \"a'b\""),
      ("'''a'b\n'''", "string \"a'b\\n\""), ("\"\"\"x\"\"\"", "string \"x\""),
      ("r'\\d'", "string \"\\\\d\""), ("R\"\\\"", "string \"\\\\\""),
      (#"'\a\b\f\n\r\t\v\\\?\"\'\`'"#, "string \"\\u0007\\b\\f\\n\\r\\t\\u000b\\\\?\\\"'`\""),
      (#"'\x41\101\u0041\U00000041\X41'"#, "string \"AAAAA\""), (#"'\377'"#, "string \"ÿ\""),
      (#"b'\377\xfF'"#, "bytes \"//8=\""), ("b'ÿ'", "bytes \"w78=\""),
      ("br'\\n'", "bytes \"XG4=\""),
      ("null", "null_type null"), ("true // why", "bool true"),
      ("\t1\r\n+\u{c}2 ", "int 3"), ("''", "string \"\""),
    ])
  func literals(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Operators bind as the language definition says",
    arguments: [
      ("1 + 2 * 3 == 7 && !false || false", "bool true"), ("2 - 1 - 1", "int 0"),
      ("8 / 2 / 2", "int 2"), ("true ? 1 : true ? 2 : 3", "int 1"),
      ("false ? 1 : false ? 2 : 3", "int 3"), ("-2 + 3", "int 1"), ("1 -2", "int -1"),
      ("1 in [1] == true", "bool true"), ("1in[1]", "bool true"), ("!true || true", "bool true"),
      ("--1", "int 1"),
      ("(1 + 2) * 3", "int 9"), ("-[1][0]", "int -1"), ("true || false && false", "bool true"),
      ("1 < 2 == true", "bool true"),
    ])
  func precedence(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Text outside the grammar is refused with the place and the reason",
    arguments: [
      ("", 1, 1, "expected an expression, found the end of the expression"),
      ("1 +", 1, 4, "expected an expression, found the end of the expression"),
      ("1 2", 1, 3, "expected an operator, found a number"),
      (
        "(1", 1, 3,
        "expected ')' after the expression in parentheses, found the end of the expression"
      ),
      ("[1 2]", 1, 4, "expected ']' in the list, found a number"),
      ("f(1,)", 1, 5, "expected an argument after ',', found ')'"),
      ("a = 1", 1, 3, "'=' is not an operator; compare with '=='"),
      ("a & b", 1, 3, "'and' is written '&&', 'or' is written '||'"),
      ("1 +\n  @", 2, 3, "unexpected character"),
      ("'é' + 'x", 1, 7, "the string that begins here does not end"),
      (
        "'a\nb'", 1, 1,
        "the string that begins here does not end on its line; write \\n, or use three quotes"
      ),
      (
        #"'\q'"#, 1, 2,
        #"unknown escape; a reverse solidus is written \\, or use a raw string: r'…'"#
      ),
      (#"'\ud800'"#, 1, 2, "the escape names no Unicode character"),
      (
        #"'\400'"#, 1, 2,
        #"unknown escape; a reverse solidus is written \\, or use a raw string: r'…'"#
      ),
      (#"b'\u0041'"#, 1, 3, "bytes have no \\u escapes; write \\x and two digits per byte"),
      (#"'\x4'"#, 1, 2, "the escape needs 2 digits of base 16"),
      ("9223372036854775808", 1, 1, "the number is beyond the range of int"),
      ("18446744073709551616u", 1, 1, "the number is beyond 64 bits"),
      ("1e999", 1, 1, "the number is beyond the range of double"),
      ("1a", 1, 2, "expected an operator, found 'a'"),
      ("if", 1, 1, "'if' is a reserved word; a column of this name is 'row.if'"),
      ("a.true", 1, 3, "expected a name after '.', found 'true'"),
      ("!-1", 1, 2, "'!' and '-' cannot be next to each other; use parentheses"),
      ("{1}", 1, 3, "expected ':' after the key, found '}'"),
    ])
  func refuses(source: String, line: Int, column: Int, message: String) {
    let error = #expect(throws: CELError.self) {
      try CompiledExpression(source, scope: ExpressionScope(columns: []))
    }
    #expect(error?.code == .syntax)
    #expect(error?.description == "line \(line), column \(column): \(message)")
  }

  @Test(
    "CEL features outside our profile are reported as unsupported",
    arguments: [
      "a.?b", "a[?0]", "[?1]", "{?'a': 1}", "Name{}", "google.protobuf.Duration{seconds: 1}",
      "math.greatest(1, 2)", "cel.bind(x, 1, x)", "TestAllTypes.NestedEnum.BAR",
      "optional.of(1)", "'a,b'.split(',')", "[1].transformList(i, v, v)", "base64.encode(b'a')",
    ])
  func unsupported(source: String) {
    let error = #expect(throws: CELError.self) {
      try CompiledExpression(source, scope: ExpressionScope(columns: [.init("a", .dyn)]))
    }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("unsupported") == true)
  }

  @Test("An error shows the line with a caret below the place")
  func diagram() {
    let source = "StageName == 'a' &&\n  Stage == 'é' || Amuont > 1"
    let scope = ExpressionScope(columns: [
      .init("StageName", .string), .init("Amount", .double), .init("Stage", .string),
    ])
    let error = #expect(throws: CELError.self) { try CompiledExpression(source, scope: scope) }
    #expect(
      error?.diagram(in: source) == """
        line 2, column 19: 'Amuont' is not a column; did you mean 'Amount'?
            Stage == 'é' || Amuont > 1
                            ^
        """)
  }

  private static let everything = """
    (a.b[0] + -1 * 2 >= 0x1F ? [1, 2u, .5e3,] : {'k': b"\\x00", r'\\d': \"\"\"t\"\"\"}.size())
      in l.filter(x, x != null && has(a.b) || !true) // end
    """

  @Test("A text truncated anywhere is refused or read, and never crashes the parser")
  func truncation() {
    let bytes = Array(Self.everything.utf8)
    let scope = ExpressionScope(columns: [.init("a", .dyn), .init("l", .list(.dyn))])
    for count in 0..<bytes.count {
      let text = String(decoding: bytes.prefix(count), as: UTF8.self)
      _ = try? CompiledExpression(text, scope: scope)
    }
    #expect(outcome("size('\(String(repeating: "x", count: 3000))')") == "int 3000")
  }

  @Test("Random text is refused or read, and never crashes the parser")
  func randomTexts() {
    var random = SeededGenerator(seed: 11)
    let words = [
      "1", "2u", "0.5", "'s'", "b'x'", "a", "row", "true", "null", "(", ")", "[", "]", "{", "}",
      ",",
      ".", ":", "?", "+", "-", "*", "/", "%", "!", "&&", "||", "==", "<", "in", "has", "all",
      "size", "x", "'", "\\", "\"\"\"", "matches", "timestamp", "`", "é", "\n",
    ]
    var readCount = 0
    let scope = ExpressionScope(columns: [.init("a", .dyn), .init("x", .int)])
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 1...12, using: &random))
        .map { _ in words[Int.random(in: 0..<words.count, using: &random)] }
        .joined(separator: Bool.random(using: &random) ? " " : "")
      if let program = try? CompiledExpression(text, scope: scope) {
        _ = Frame(program).evaluate()
        readCount += 1
      }
    }
    #expect(readCount > 100)
  }

  @Test(
    "Expressions within the limits of the specification are read",
    arguments: [
      String(repeating: "(", count: 32) + "7" + String(repeating: ")", count: 32),
      String(repeating: "!", count: 32) + "true", String(repeating: "-", count: 32) + "19",
      String(repeating: "[", count: 32) + "0" + String(repeating: "]", count: 32),
      "1" + String(repeating: " + 1", count: 60),
      "true" + String(repeating: " || true", count: 2000),
      String(repeating: "true ? 1 : ", count: 40) + "2",
      "[" + String(repeating: "1, ", count: 4000) + "1]",
    ])
  func accepts(source: String) throws {
    let program = try CompiledExpression(source, scope: ExpressionScope(columns: []))
    if case .failure = Frame(program).evaluate() { Issue.record("no value") }
  }

  @Test(
    "Expressions beyond the limits are refused",
    arguments: [
      String(repeating: "(", count: 5000), String(repeating: "[", count: 5000),
      String(repeating: "-", count: 5000) + "1", String(repeating: "!", count: 5000) + "true",
      "1" + String(repeating: "+1", count: 200), "a" + String(repeating: ".b", count: 200),
      "a" + String(repeating: "[0]", count: 200),
      String(repeating: "true ? 1 : ", count: 200) + "2",
      // Deep though no part of it is parsed deeply.
      String(repeating: "(", count: 60) + "1" + String(repeating: "+1+1)", count: 60),
      "[" + String(repeating: "1,", count: 5000) + "1]",
      String(repeating: " ", count: 70_000) + "1",
    ])
  func limits(source: String) {
    let error = #expect(throws: CELError.self) {
      try CompiledExpression(source, scope: ExpressionScope(columns: [.init("a", .dyn)]))
    }
    #expect(error?.code == .syntax)
  }
}

/// Numbers that are the same in every run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { self.state = seed }
  mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var value = self.state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
