import JSON
import Testing

@testable import PubSubETL

@Suite("Printable text")
struct PrintableTextTests {
  private let none = SecretMask()

  @Test(
    "Characters that a terminal would interpret or hide are replaced",
    arguments: [
      ("\u{1B}[2J\u{1B}]0;title\u{7}", "\u{FFFD}[2J\u{FFFD}]0;title\u{FFFD}"),
      ("\u{9B}31m\u{9D}x", "\u{FFFD}31m\u{FFFD}x"),
      ("a\rb\u{8}c\u{7F}", "a\u{FFFD}b\u{FFFD}c\u{FFFD}"),
      ("user\u{202E}txt.exe", "user\u{FFFD}txt.exe"),
      ("\u{2066}a\u{2069}\u{200F}\u{61C}", "\u{FFFD}a\u{FFFD}\u{FFFD}\u{FFFD}"),
      ("a\u{2028}b\u{2029}c", "a\u{FFFD}b\u{FFFD}c"),
      ("\u{FEFF}a\u{200B}b\u{E0041}", "\u{FFFD}a\u{FFFD}b\u{FFFD}"),
      ("tab\tand Ünïcödé 漢字 👩\u{200D}🚀", "tab and Ünïcödé 漢字 👩\u{200D}🚀"),
    ])
  func cleans(text: String, printed: String) {
    #expect(PrintableText(line: text, hiding: self.none).text == "\(printed)\n")
  }

  @Test("A peer's line ends stay within the line, and our own start new lines")
  func lineEnds() {
    let text = "said a\nerror: forged\r\nb"
    #expect(
      PrintableText(line: text, hiding: self.none).text
        == "said a\\nerror: forged\u{FFFD}\\nb\n")
    #expect(PrintableText(lines: "a\nb\u{1B}\n", hiding: self.none).text == "a\nb\u{FFFD}\n")
    #expect(
      PipelineStatus.text([("topic", "a\nhealth        good")]).split(separator: "\n").count == 1)
  }

  @Test("A line that is too long is shortened and says by how much")
  func long() {
    let printed = PrintableText(
      line: String(repeating: "ä", count: 5234), hiding: self.none
    ).text
    #expect(printed.hasSuffix("ä… (1,234 more characters)\n"))
    #expect(printed.count == 4000 + "… (1,234 more characters)\n".count)
  }

  @Test("JSON is escaped, so that its values do not change")
  func json() throws {
    let value: JSONValue = ["m": "\u{1B}[2J\u{9B}1m\u{202E}\u{E0041}\u{7F}é\n"]
    let printed = PrintableText(json: value, .compact, hiding: self.none).text
    #expect(
      printed
        == "{\"m\":\"\\u001b[2J\\u009b1m\\u202e\\udb40\\udc41\\u007fé\\n\"}\n")
    #expect(try JSONValue(parsing: printed) == value)
  }

  @Test("SQL keeps its lines and loses terminal control characters")
  func sql() {
    let printed = PrintableText(sql: "CREATE TABLE\n\t\"a\u{1B}[2J\"", hiding: self.none).text
    #expect(printed == "CREATE TABLE\n\t\"a\u{FFFD}[2J\"")
  }

  @Test("A secret is removed before the text is shortened or replaced")
  func secretsFirst() {
    let secrets = SecretMask()
    secrets.add("multi\nline\u{1B}secret")
    let long = String(repeating: "x", count: 3990) + "multi\nline\u{1B}secret"
    for printed in [
      PrintableText(line: long, hiding: secrets), PrintableText(lines: long, hiding: secrets),
      PrintableText(json: .string(long), hiding: secrets), .unended(long, hiding: secrets),
      PrintableText(sql: long, hiding: secrets),
    ] {
      #expect(!printed.text.contains("secret"))
      #expect(!printed.text.contains("multi"))
    }
  }
}
