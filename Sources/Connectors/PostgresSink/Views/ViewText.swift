internal import PostgresClient

/// The definition of a view as the server prints it.
struct ViewText: Equatable {
  /// On one line, without the semicolon at the end.
  let text: String

  init(_ definition: String) {
    var text = Self.tokens(definition).map { $0.kind == .space ? " " : $0.text }.joined()
    while let last = text.last, last == ";" || last == " " { text.removeLast() }
    self.text = String(text.drop { $0 == " " })
  }

  /// The definition with an expression in place of each use of a column.
  ///
  /// - Parameter expression: receives the qualifier with its point, or nothing.
  func replacing(_ column: String, by expression: (_ qualifier: String) -> String) -> ViewText {
    let tokens = Self.tokens(self.text)
    let column = SQLIdentifier.quoted(column)
    var result = ""
    var qualifier = ""
    var isAlias = false
    for (place, token) in tokens.enumerated() {
      let isQualifier = place + 1 < tokens.count && tokens[place + 1].text == "."
      switch token.kind {
      case .name where isQualifier: qualifier += token.text
      case .name:
        let isUse = !isAlias && token.quotedName == column
        result += isUse ? expression(qualifier) : qualifier + token.text
        qualifier = ""
        isAlias = token.text == "AS"
      case .space: result += " "
      case .other where token.text == ".": qualifier += "."
      case .other:
        result += token.text
        isAlias = false
      }
    }
    return ViewText(result)
  }

  // MARK: Tokens

  private struct Token {
    enum Kind { case space, name, other }
    var kind: Kind
    var text: String

    var quotedName: String {
      self.text.hasPrefix("\"") ? self.text : SQLIdentifier.quoted(self.text)
    }
  }

  /// The server prints neither comments nor dollar quotes.
  private static func tokens(_ definition: String) -> [Token] {
    var tokens: [Token] = []
    var rest = definition.unicodeScalars[...]
    while let first = rest.first {
      let length: Int
      let kind: Token.Kind
      if first.properties.isWhitespace {
        (kind, length) = (.space, rest.prefix { $0.properties.isWhitespace }.count)
      } else if first == "\"" {
        (kind, length) = (.name, Self.quotedLength(rest, by: "\"", escapes: false))
      } else if first == "'" {
        (kind, length) = (.other, Self.quotedLength(rest, by: "'", escapes: false))
      } else if first == "E", rest.dropFirst().first == "'" {
        (kind, length) = (.other, 1 + Self.quotedLength(rest.dropFirst(), by: "'", escapes: true))
      } else if ("0"..."9").contains(first) {
        (kind, length) = (.other, rest.prefix { Self.isWord($0) || $0 == "." }.count)
      } else if Self.isWord(first) {
        (kind, length) = (.name, rest.prefix { Self.isWord($0) }.count)
      } else {
        (kind, length) = (.other, 1)
      }
      tokens.append(Token(kind: kind, text: String(rest.prefix(length))))
      rest = rest.dropFirst(length)
    }
    return tokens
  }

  /// Returns the length of a literal or name with its quotes; a doubled quote is part of it.
  private static func quotedLength(
    _ text: Substring.UnicodeScalarView, by quote: Unicode.Scalar, escapes: Bool
  ) -> Int {
    var length = 1
    var rest = text.dropFirst()
    while let scalar = rest.first {
      let isPair = scalar == quote ? rest.dropFirst().first == quote : escapes && scalar == "\\"
      length += isPair ? 2 : 1
      if scalar == quote, !isPair { break }
      rest = rest.dropFirst(isPair ? 2 : 1)
    }
    return length
  }

  private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar == "$" || scalar.properties.isAlphabetic
      || ("0"..."9").contains(scalar)
  }
}
