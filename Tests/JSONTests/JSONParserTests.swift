import JSON
import Testing

@Suite("JSONParser")
struct JSONParserTests {
  @Test(
    "Text that follows the grammar is read",
    arguments: [
      ("null", .null), ("true", .boolean(true)), (" false\n", .boolean(false)),
      ("0", .number("0")), ("-0", .number("-0")), ("-12.50e+3", .number("-12.50e+3")),
      ("1E9", .number("1E9")),
      ("123456789012345678901234567890", .number("123456789012345678901234567890")),
      ("\"\"", .string("")), (#""a\"\\\/\b\f\n\r\tz""#, .string("a\"\\/\u{8}\u{c}\n\r\tz")),
      (#""\u0041\u00e9\u20AC\ud83D\uDe00""#, .string("Aé€😀")), (#""\u0000""#, .string("\0")),
      ("\"é€😀\u{7f}\"", .string("é€😀\u{7f}")), ("[]", .array([])), ("[ ]", .array([])),
      ("[1,\t[2 ],\r\n{}]", .array([1, [2], JSONValue(.object([]))])),
      ("{}", .object([])),
      (
        #"{"a":1,"":[null],"A":{"a":true}}"#,
        .object([
          JSONMember("a", 1), JSONMember("", [nil]), JSONMember("A", ["a": true]),
        ])
      ),
      ("\u{FEFF}1", .number("1")),
    ] as [(String, JSONValue.Content)])
  func accepts(text: String, content: JSONValue.Content) throws {
    #expect(try JSONValue(parsing: text).content == content)
  }

  @Test(
    "Text outside the grammar is refused with the place and what was expected",
    arguments: [
      ("", 1, 1, "expected a value, but the text ends here"),
      ("[1,]", 1, 4, "expected a value, found ']'; remove the ',' before it"),
      ("[1, \n ]", 2, 2, "expected a value, found ']'; remove the ',' before it"),
      ("[}", 1, 2, "expected a value, found '}'"),
      (
        "[1 [2]]", 1, 4,
        "expected ',' or ']' in the array of line 1, column 1, found '['; is a ',' missing before it?"
      ),
      (
        "{\"a\": 1, # x", 1, 10,
        "expected a name in double quotes after ',', found '#'; JSON has no comments; remove "
          + "it, or write it as a member, \"//\": \"text\""
      ),
      (
        "{\"a\": 1 /* x */}", 1, 9,
        "expected ',' or '}' in the object of line 1, column 1, found '/'; JSON has no "
          + "comments; remove it, or write it as a member, \"//\": \"text\""
      ),
      ("[1 2]", 1, 4, "expected ',' or ']' in the array of line 1, column 1, found '2'"),
      (
        "{\"a\":1,}", 1, 8,
        "expected a name in double quotes after ',', found '}'; remove the ',' before it"
      ),
      ("{a:1}", 1, 2, "expected a name in double quotes or '}', found 'a'"),
      ("{\"a\" 1}", 1, 6, "expected ':' after the name, found '1'"),
      (
        "{\n  \"a\": 1\n  \"b\": 2 }", 3, 3,
        "expected ',' or '}' in the object of line 1, column 1, found '\"'; is a ',' missing before it?"
      ),
      ("01", 1, 2, "a number must not begin with 0"),
      ("-", 1, 2, "expected a digit after '-', but the text ends here"),
      ("1.", 1, 3, "expected a digit after '.', but the text ends here"),
      ("1.e3", 1, 3, "expected a digit after '.', found 'e'"),
      (".5", 1, 1, "expected a value, found '.'"),
      ("+1", 1, 1, "expected a value, found '+'"),
      ("1e", 1, 3, "expected a digit in the exponent, but the text ends here"),
      ("0x10", 1, 2, "the text ends after one value, but 'x' follows"),
      ("1 2", 1, 3, "the text ends after one value, but '2' follows"),
      ("NaN", 1, 1, "expected a value, found 'N'"),
      ("nul1", 1, 1, "expected a value; did you mean 'null'?"),
      (
        "[\u{201C}a\u{201D}]", 1, 2,
        "expected a value, found U+201C; replace the curly quote by \""
      ),
      ("tru", 1, 4, "expected 'true', but the text ends here"),
      (
        "// x\n1", 1, 1,
        "expected a value, found '/'; JSON has no comments; remove it, or write it as a "
          + "member, \"//\": \"text\""
      ),
      ("'a'", 1, 1, "expected a value, found '''; strings need double quotes"),
      ("\"a", 1, 3, "the string that begins at column 1 is not closed, but the text ends here"),
      ("\"a\nb\"", 1, 3, "U+000A in a string must be escaped (a closing '\"' may be missing)"),
      ("\"\\x\"", 1, 2, "'\\' is followed by 'x', which is not a JSON escape"),
      ("\"\\u12g4\"", 1, 6, "expected four hexadecimal digits after '\\u', found 'g'"),
      ("\"\\ud800\"", 1, 2, "the escape names half a surrogate pair and no character"),
      ("\"\\udc00\\ud800\"", 1, 2, "the escape names half a surrogate pair and no character"),
      ("\"\\ud800\\u0041\"", 1, 2, "the escape names half a surrogate pair and no character"),
      ("\u{A0}1", 1, 1, "expected a value, found U+00A0"),
      ("[\"é😀\", é]", 1, 8, "expected a value, found U+00E9"),
      (
        "{\"a\":1,\n \"\\u0061\":2}", 2, 2,
        "the name 'a' is listed twice in this object, first at line 1, column 2"
      ),
    ])
  func refuses(text: String, line: Int, column: Int, message: String) {
    let error = #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    #expect(error?.message == message)
    #expect(error?.position == JSONValue.Position(line: line, column: column))
  }

  @Test("A duplicate name is found even in a large object")
  func largeDuplicate() {
    let names = (0..<40).map { "\"n\($0)\":0" }
    for repeated in [0, 7, 8, 9, 39] {
      let text = "{" + names.joined(separator: ",") + ",\"n\(repeated)\":1}"
      let error = #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
      #expect(error?.code == .duplicateName)
      #expect(error?.message.hasPrefix("the name 'n\(repeated)' is listed twice") == true)
    }
    #expect(throws: Never.self) {
      try JSONValue(parsing: "{" + names.joined(separator: ",") + "}")
    }
  }

  @Test(
    "Bytes that are not UTF-8 are refused at their place",
    arguments: [
      [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xE2, 0x82],
    ] as [[UInt8]])
  func invalidUTF8(bytes: [UInt8]) {
    let text = Array("[1,\n\"é".utf8) + bytes + Array("\"]".utf8)
    let error = #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    #expect(error?.code == .invalidText)
    #expect(error?.position == JSONValue.Position(line: 2, column: 3))
  }

  @Test("Lines end with LF, CR or both, and columns count characters")
  func positions() throws {
    let value = try JSONValue(
      parsing: "{\r\n\"ä\": [1,\r2,\n\n 😀]}".replacing("😀", with: "\"😀\", 3"))
    let member = try #require(value.members?.first)
    #expect(value.position == .init(line: 1, column: 1))
    #expect(member.namePosition == .init(line: 2, column: 1))
    #expect(member.value.position == .init(line: 2, column: 6))
    let places = member.value.array?.map(\.position)
    #expect(
      places == [
        .init(line: 2, column: 7), .init(line: 3, column: 1), .init(line: 5, column: 2),
        .init(line: 5, column: 7),
      ])
  }

  private static let sample =
    #"{"é\ud83d\ude00": [1.5e-3, true, null, {"x": "a\n\u00e9"}], "y": {"z": [[], {}]}} "#

  @Test("A text truncated at any byte is refused as truncated")
  func truncation() {
    let bytes = Array(Self.sample.utf8)
    for count in 0..<bytes.count - 1 {
      let error = #expect(throws: JSONError.self) { try JSONValue(parsing: Array(bytes[..<count])) }
      // A cut inside a character is no UTF-8, and half of a surrogate pair is half of one.
      #expect(
        error?.code == .truncated || error?.code == .invalidText, "cut at \(count): \(error as Any)"
      )
    }
    #expect(throws: Never.self) { try JSONValue(parsing: bytes) }
  }

  @Test("Changing any byte gives a value or an error")
  func mutation() {
    let bytes = Array(Self.sample.utf8)
    // What the grammar knows, and bytes that are or begin no character.
    let replacements =
      Array("{}[]\",:\\/u0-+.eEtfn \n\r\u{0}\u{1F}".utf8) + [0x80, 0xC3, 0xF0, 0xFF]
    var (values, errors) = (0, 0)
    for offset in bytes.indices {
      for byte in replacements {
        var changed = bytes
        changed[offset] = byte
        guard let value = try? JSONValue(parsing: changed) else {
          errors += 1
          continue
        }
        values += 1
        #expect((try? JSONValue(parsing: value.text())) == value)
      }
    }
    #expect(values > 100)
    #expect(errors > 100)
  }

  @Test("Depth and length are limited")
  func limits() {
    let limits = JSONLimits(depth: 3, byteCount: 20)
    #expect(throws: Never.self) { try JSONValue(parsing: "[[[1]],[{}]]", limits: limits) }
    let deep = #expect(throws: JSONError.self) {
      try JSONValue(parsing: "[[[[1]]]]", limits: limits)
    }
    #expect(deep?.code == .limitExceeded)
    #expect(deep?.position == .init(line: 1, column: 4))
    let long = #expect(throws: JSONError.self) {
      try JSONValue(parsing: "[0,0,0,0,0,0,0,0,0,0]", limits: limits)
    }
    #expect(long?.code == .limitExceeded)
    let hostile = String(repeating: "[{\"a\":", count: 100_000)
    let endless = #expect(throws: JSONError.self) { try JSONValue(parsing: hostile) }
    #expect(endless?.code == .limitExceeded)
  }
}
