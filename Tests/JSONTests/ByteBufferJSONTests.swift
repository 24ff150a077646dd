import Bytes
import JSON
import TestSupport
import Testing

@Suite("Appending JSON strings")
struct ByteBufferJSONTests {
  @Test(
    "Only quotes, backslashes and control characters are escaped",
    arguments: [
      ("", #""""#),
      ("a", #""a""#),
      ("Closed Won", #""Closed Won""#),
      ("say \"hi\"", #""say \"hi\"""#),
      (#"C:\temp"#, #""C:\\temp""#),
      ("\u{8}\u{9}\u{A}\u{C}\u{D}", #""\b\t\n\f\r""#),
      ("\u{0}\u{1}\u{B}\u{1F}", #""\u0000\u0001\u000b\u001f""#),
      ("/\u{20}\u{7F}\u{2028}é😀", "\"/\u{20}\u{7F}\u{2028}é😀\""),
      ("12345678", #""12345678""#),
      ("1234567\n", #""1234567\n""#),
      ("12345678\n", #""12345678\n""#),
      ("!#[]~ \u{80}\u{FF}", "\"!#[]~ \u{80}\u{FF}\""),
    ])
  func escapes(text: String, expected: String) {
    #expect(appended { $0.appendJSONString(text) } == expected)
  }

  /// Escapes one scalar at a time, by the table of RFC 8259 section 7.
  private func escapedByTable(_ text: String) -> String {
    let short: [Unicode.Scalar: String] = [
      "\"": "\\\"", "\\": "\\\\", "\u{8}": "\\b", "\t": "\\t", "\n": "\\n", "\u{C}": "\\f",
      "\r": "\\r",
    ]
    var out = "\""
    for scalar in text.unicodeScalars {
      if let escape = short[scalar] {
        out += escape
      } else if scalar.value < 0x20 {
        let hex = String(scalar.value, radix: 16)
        out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      } else {
        out.unicodeScalars.append(scalar)
      }
    }
    return out + "\""
  }

  @Test("Every byte is escaped correctly at every place of short and long strings")
  func everyBytePlace() {
    for scalar in (0..<0x100).map({ Unicode.Scalar(UInt8($0)) }) {
      for length in [0, 1, 2, 6, 7, 8, 9, 15, 16, 17, 31] {
        for place in 0...length {
          var text = String(repeating: "x", count: place)
          text.unicodeScalars.append(scalar)
          text += String(repeating: "y", count: length - place)
          let result = appended { $0.appendJSONString(text) }
          if result != escapedByTable(text) {
            Issue.record("U+\(String(scalar.value, radix: 16)) at \(place) of \(length): \(result)")
          }
        }
      }
    }
  }

  @Test("The buffer stays usable after a long string full of escapes")
  func longEscapes() {
    let text = String(repeating: "\u{1}\"\n", count: 3000) + "end"
    let result = appended {
      $0.appendJSONString(text)
      $0.append(utf8: ",")
    }
    #expect(result == escapedByTable(text) + ",")
  }

  @Test("Nothing is written beyond the reserved space")
  func staysInItsRoom() {
    for count in 0..<200 {
      var buffer = ByteBuffer(capacity: 16)
      buffer.appendJSONString(String(repeating: "a", count: count))
      #expect(buffer.count == count + 2)
      #expect(buffer.count <= buffer.capacity)
    }
  }

  @Test("Booleans are written, and null for values that JSON cannot express")
  func literals() {
    #expect(appended { $0.appendJSON(true) } == "true")
    #expect(appended { $0.appendJSON(false) } == "false")
    #expect(appended { $0.appendJSON(Double.nan) } == "null")
    #expect(appended { $0.appendJSON(-Float.infinity) } == "null")
    #expect(appended { $0.appendJSON(2.5) } == "2.5")
    #expect(appended { $0.appendJSON(Float(2)) } == "2.0")
  }
}
