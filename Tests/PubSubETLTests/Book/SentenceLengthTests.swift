import Testing

/// Messages, help texts and comments of tables are read by somebody who has never seen the program.
@Suite("English of the program's texts")
struct SentenceLengthTests {
  private static let limit = 25

  /// A semicolon or colon ends a sentence, as in `what happened; what to do`.
  private static func sentences(_ text: String) -> [[Substring]] {
    text.split(separator: "EXAMPLES:").prefix(1).flatMap { text in
      text.replacing(#/\n *(?:-- *)?\n|\n\| /#, with: ". ").split(separator: #/[.?!;:]["')]*\s+/#)
    }.map { $0.split { $0.isWhitespace } }
  }

  /// SQL has words in capitals, and no articles.
  private static func isProse(_ words: [Substring]) -> Bool {
    words.contains { ["the", "is", "are", "a", "of"].contains($0) }
      && !words.contains { ["FROM", "SELECT", "WHERE", "AND"].contains($0) }
  }

  @Test("No sentence of a text that the program prints has more than 25 words")
  func length() throws {
    var count = 0
    for path in try SourceTexts.paths() {
      for literal in try SourceTexts(path).literals {
        for words in Self.sentences(literal.text) where Self.isProse(words) {
          count += 1
          if words.count > Self.limit {
            Issue.record("\(path): \(words.count) words: \(words.joined(separator: " "))")
          }
        }
      }
    }
    #expect(count > 2000)
  }
}
