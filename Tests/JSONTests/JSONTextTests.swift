import JSON
import Testing

@Suite("Changes in a JSON text") struct JSONTextTests {
  /// The text with the content of another in it.
  private static func replacing(_ text: String, with other: String) throws -> String {
    let document = try JSONValue(parsing: text)
    let result = JSONText(Array(text.utf8), parsedTo: document).replacing(
      document, with: try JSONValue(parsing: other))
    return String(decoding: result, as: UTF8.self)
  }

  @Test(
    "Only differing values change, and the rest keeps its layout",
    arguments: [
      // A value.
      (#"{ "a" : 1.50,"b":[ 1,2 ]  }"#, #"{"a":1.50,"b":[1,3]}"#, #"{ "a" : 1.50,"b":[ 1,3 ]  }"#),
      // A member more, one less.
      (#"{"a":1,  "b":2}"#, #"{"a":1,"b":2,"c":3}"#, #"{"a":1,  "b":2,  "c": 3}"#),
      (#"{"a":1,  "b":2 }"#, #"{"b":2}"#, #"{"b":2 }"#),
      (#"{"a":1,  "b":2, "c":3}"#, #"{"a":1,"c":3}"#, #"{"a":1,  "c":3}"#),
      // An element more, one less, all.
      ("[\n  {\"a\":1}\n]\n", #"[{"a":1},{"a":2}]"#, "[\n  {\"a\":1},\n  {\"a\": 2}\n]\n"),
      ("[ 1, 2,3 ]", "[1]", "[ 1 ]"), ("[1, 2]", "[]", "[]"), ("[]", "[1]", "[1]"),
      // Characters of several bytes, and escapes, before the place.
      (#"{"é\"}": "ü]", "b": 1}"#, #"{"é\"}":"ü]","b":2}"#, #"{"é\"}": "ü]", "b": 2}"#),
      // Another kind; a whole document.
      (#"{"a": "x"}"#, #"{"a":{"b":1}}"#, #"{"a": {"b": 1}}"#), (" 1 ", "true", " true "),
      // Another order.
      (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, #"{"b": 2, "a": 1}"#),
      // A byte order mark and line ends of Windows.
      (
        "\u{FEFF}{\r\n\t\"a\": 1\r\n}", #"{"a":1,"b":2}"#,
        "\u{FEFF}{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}"
      ),
    ])
  func change(text: String, other: String, expected: String) throws {
    #expect(Array(try Self.replacing(text, with: other).utf8) == Array(expected.utf8))
  }

  @Test("New text follows the author's indentation")
  func indentation() throws {
    let long = String(repeating: "x", count: 100)
    let text = "{\n\t\"cases\": [\n\t\t{ \"a\": 1 }\n\t]\n}"
    #expect(
      try Self.replacing(text, with: #"{"cases":[{"a":1,"b":["\#(long)"]}]}"#)
        == "{\n\t\"cases\": [\n\t\t{ \"a\": 1, \"b\": [\n\t\t\t\"\(long)\"\n\t\t] }\n\t]\n}")
  }

  @Test("A changed text reads as the new value")
  func isReadBack() throws {
    let documents = [
      #"{"a":[1,{"b":null,"c":[]},"x"],"d":{}}"#, #"{"a":[],"d":{"e":1}}"#, #"{"d":{"e":[2]}}"#,
      #"[{"a":1},[2,[3]],"\u00e9"]"#, #"[[2,[3,4]],{"a":{}}]"#, "null", #"{"d":1,"a":{"b":false}}"#,
    ]
    for text in documents {
      for other in documents {
        let layouts = [text, try JSONValue(parsing: text).text(.pretty)]
        for layout in layouts {
          let found = try JSONValue(parsing: try Self.replacing(layout, with: other))
          #expect(try found == JSONValue(parsing: other), "\(layout) → \(other)")
        }
      }
    }
  }
}
