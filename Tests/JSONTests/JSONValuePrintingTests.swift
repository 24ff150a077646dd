import JSON
import Testing

@Suite("JSONValue printing")
struct JSONValuePrintingTests {
  private let value: JSONValue = [
    "name": "a\"\\\n\u{1}é/", "list": [1, [], nil], "empty": JSONValue(.object([])),
    "number": JSONValue(.number("1.50e3")), "flag": true,
  ]

  @Test("Compact text has no white space and keeps numbers as written")
  func compact() {
    #expect(
      self.value.text()
        == #"{"name":"a\"\\\n\u0001é/","list":[1,[],null],"empty":{},"number":1.50e3,"flag":true}"#)
  }

  @Test("Spaced text is one line with a space after each colon and comma")
  func spaced() {
    #expect(
      self.value.text(.spaced)
        == #"{"name": "a\"\\\n\u0001é/", "list": [1, [], null], "empty": {}, "number": 1.50e3, "flag": true}"#
    )
  }

  @Test("Pretty text has a line for each member and element")
  func pretty() {
    #expect(
      self.value.text(.pretty) == #"""
        {
          "name": "a\"\\\n\u0001é/",
          "list": [
            1,
            [],
            null
          ],
          "empty": {},
          "number": 1.50e3,
          "flag": true
        }
        """#)
  }

  @Test(
    "Printed text reads as the same value",
    arguments: [JSONValue.Format.compact, .spaced, .pretty])
  func roundTrip(format: JSONValue.Format) throws {
    #expect(try JSONValue(parsing: self.value.text(format)) == self.value)
  }
}
