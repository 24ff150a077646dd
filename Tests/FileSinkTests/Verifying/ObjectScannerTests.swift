import JSON
import TestSupport
import Testing

@testable import FileSink

/// Lines of files, taken apart without a parser.
@Suite("Scanning JSON objects") struct ObjectScannerTests {
  private static func members(_ text: String) throws -> [[String]] {
    try Array(text.utf8).withUnsafeBufferPointer { line in
      var members: [ObjectScanner.Member] = []
      try ObjectScanner.scan(line, into: &members)
      return members.map { member in
        [member.key, member.value].map { String(decoding: line[$0], as: UTF8.self) }
      }
    }
  }

  @Test("Members are found as written")
  func members() throws {
    let text = #"{"a":"x\"y\\","b":-1.5e+10,"c":null, "d" : [1,{"e":"]"}],"":true}"#
    #expect(
      try Self.members(text) == [
        ["a", #""x\"y\\""#], ["b", "-1.5e+10"], ["c", "null"], ["d", #"[1,{"e":"]"}]"#],
        ["", "true"],
      ])
    #expect(try Self.members("{}").isEmpty)
  }

  @Test("A line that is truncated anywhere is refused")
  func truncation() {
    let text = #"{"a":"x\u00e9","b":[1,{"c":"]"}],"d":12,"e":false}"#
    for count in 0..<text.utf8.count {
      #expect(throws: ObjectScanner.Fault.self, "\(count)") {
        try Self.members(String(text.prefix(count)))
      }
    }
  }

  @Test(
    "Text that is not an object is refused",
    arguments: [
      "[]", "{} x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{a:1}"#, #"{"a":nul}"#, #"{"a":"\x"}"#,
      #"{"a":"\u12g4"}"#, "{\"a\":\"\u{1}\"}", #"{"a":[}]}"#, #"{"a":1.}"#, #"{"a":+1}"#,
      #"{"a":1 2}"#,
    ])
  func malformed(text: String) {
    #expect(throws: ObjectScanner.Fault.self) { try Self.members(text) }
  }

  @Test("Brackets nested beyond the depth of a value are refused")
  func depth() throws {
    func text(_ depth: Int) -> String {
      #"{"a":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
    }
    #expect(try Self.members(text(128)).count == 1)
    #expect(throws: ObjectScanner.Fault.self) { try Self.members(text(129)) }
  }

  @Test("Elements of an array are found as written")
  func elements() throws {
    let text = Array(#"["a", "b\"c",{"d":1}]"#.utf8)
    try text.withUnsafeBufferPointer { bytes in
      var elements: [Range<Int>] = []
      try ObjectScanner.elements(bytes, into: &elements)
      let texts = elements.map { String(decoding: bytes[$0], as: UTF8.self) }
      #expect(texts == [#""a""#, #""b\"c""#, #"{"d":1}"#])
    }
  }

  @Test(
    "Times are read in the form that this program writes",
    arguments: [
      ("1970-01-01T00:00:00.000Z", 0), ("2026-02-17T04:03:15.123Z", 1_771_300_995_123),
      ("1969-12-31T23:59:59.999Z", -1), ("2024-02-29T12:00:00.000Z", 1_709_208_000_000),
      ("+012026-02-17T04:03:15.000Z", 317_340_820_995_000), ("2026-02-17T04:03:15Z", nil),
      ("2026-13-17T04:03:15.000Z", nil), ("2026-02-17 04:03:15.000Z", nil),
      ("2026-02-17T04:03:15.00xZ", nil), ("", nil), ("-", nil),
      ("+999999999-01-01T00:00:00.000Z", 9_158_400_000_000_000_000),
      ("-999999999-12-31T23:59:59.999Z", -9_158_399_999_913_600_001),
    ] as [(String, Int64?)])
  func times(text: String, expected: Int64?) {
    let time = Array(text.utf8).withUnsafeBufferPointer { TimestampText.milliseconds($0) }
    #expect(time == expected)
  }

  @Test(
    "Equal values in different forms are equal",
    arguments: [
      (#""a\r\nb""#, #""a\nb""#, true), (#""a\\r\\nb""#, #""a\\nb""#, false),
      (#""a\rb""#, #""ab""#, false), (#"["x","y"]"#, #"["y","x"]"#, true),
      (#"["x","y"]"#, #"["x","x"]"#, false), (#"{"a":1,"b":null}"#, #"{"a":1}"#, true),
      (#"{"a":"x\r\n"}"#, #"{"a":"x\n"}"#, true), ("1", "1.0", false), ("100.0", "1e+02", true),
      ("100.0", "100.5", false),
      ("9007199254740993", "9007199254740992", false), ("", "null", false),
      (#""""#, "", false),
    ])
  func forms(left: String, right: String, isSame: Bool) {
    for (left, right) in [(left, right), (right, left)] {
      let result = Array(left.utf8).withUnsafeBufferPointer { left in
        Array(right.utf8).withUnsafeBufferPointer { ValueForm.isSame(left, $0) }
      }
      #expect(result == isSame)
    }
  }
}
