/// A word of an expression.
struct Token: Equatable {
  enum Kind: Equatable {
    case identifier(String)
    /// Between backticks; a field's name only.
    case quotedIdentifier(String)
    case int(UInt64)
    case uint(UInt64)
    case double(Double)
    case string([UInt8])
    case bytes([UInt8])
    /// One of `Lexer.symbols`.
    case symbol(String)
    case end
  }

  var kind: Kind
  /// Bytes from the start of the text.
  var offset: Int

  /// How a message names the token.
  var description: String {
    switch self.kind {
    case .identifier(let name): "'\(name)'"
    case .quotedIdentifier(let name): "`\(name)`"
    case .int, .uint, .double: "a number"
    case .string: "a string"
    case .bytes: "bytes"
    case .symbol(let text): "'\(text)'"
    case .end: "the end of the expression"
    }
  }
}

/// Words that cannot be names.
enum ReservedWord {
  /// Literals and an operator. Fields cannot have these names either.
  static let keywords: Set<String> = ["false", "in", "null", "true"]
  /// Reserved for languages that embed expressions. Fields may have these names.
  static let all: Set<String> = keywords.union([
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while",
  ])
}
