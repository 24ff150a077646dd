import Testing

@testable import PubSubETL

@Suite("Line buffer") struct LineBufferTests {
  private static func lines(
    _ text: String, pieces: Int, maxLineBytes: Int = 8
  ) -> [String] {
    var buffer = LineBuffer(maxLineBytes: maxLineBytes)
    var lines: [String] = []
    func take(isEnd: Bool) {
      while let line = buffer.next(isEnd: isEnd) {
        lines.append(
          "\(line.number):" + (line.text.map { String(decoding: $0, as: UTF8.self) } ?? "long"))
      }
    }
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      buffer.append(Array(bytes[start..<min(start + pieces, bytes.count)]))
      take(isEnd: false)
    }
    take(isEnd: true)
    return lines
  }

  @Test(
    "Lines keep their numbers however their bytes are split",
    arguments: [
      ("", []), ("a", ["1:a"]), ("a\n", ["1:a"]), ("a\nbc\n", ["1:a", "2:bc"]),
      ("\n \t\r\na\n\nb", ["3:a", "5:b"]), ("a\r\nb", ["1:a\r", "2:b"]),
      ("12345678\n123456789\nx", ["1:12345678", "2:long", "3:x"]),
      ("1234567890123456789012345\nx\n", ["1:long", "2:x"]), ("123456789", ["1:long"]),
      ("123456789\n123456789\n", ["1:long", "2:long"]),
    ] as [(String, [String])])
  func divides(text: String, expected: [String]) {
    for pieces in 1...30 { #expect(Self.lines(text, pieces: pieces) == expected, "\(pieces)") }
  }

  @Test("An endless line takes no more memory than the line limit")
  func isBounded() {
    var buffer = LineBuffer(maxLineBytes: 100)
    for _ in 0..<1000 {
      buffer.append([UInt8](repeating: 0x78, count: 64))
      #expect(buffer.next(isEnd: false) == nil)
      #expect(buffer.byteCount <= 164)
    }
    #expect(buffer.next(isEnd: true)?.text == nil)
  }
}
