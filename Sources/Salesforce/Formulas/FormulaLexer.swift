/// Splits the text of a formula.
struct FormulaLexer {
  enum Token: Equatable {
    case number(String)
    case text(String)
    /// A name of a field or function, with its points and in the author's letters.
    case name(String)
    case symbol(String)
    case end
  }

  private var rest: Substring.UnicodeScalarView

  init(_ text: String) { self.rest = text.unicodeScalars[...] }

  mutating func next() throws(FormulaRefusal) -> Token {
    try self.skipSpace()
    guard let first = self.rest.first else { return .end }
    if first == "\"" || first == "'" { return .text(try self.text(quote: first)) }
    if Self.isDigit(first) { return .number(self.number()) }
    if Self.isNameStart(first) { return .name(self.take { Self.isNamePart($0) }) }
    return .symbol(try self.symbol())
  }

  private mutating func skipSpace() throws(FormulaRefusal) {
    while let first = self.rest.first {
      if first == "/", self.rest.dropFirst().first == "*" {
        try self.skipComment()
      } else if [" ", "\t", "\n", "\r", "\u{C}", "\u{A0}"].contains(first) {
        self.rest.removeFirst()
      } else {
        return
      }
    }
  }

  private mutating func skipComment() throws(FormulaRefusal) {
    self.rest.removeFirst(2)
    while let first = self.rest.popFirst() {
      if first == "*", self.rest.first == "/" {
        self.rest.removeFirst()
        return
      }
    }
    throw FormulaRefusal("a comment has no end")
  }

  private mutating func text(quote: Unicode.Scalar) throws(FormulaRefusal) -> String {
    self.rest.removeFirst()
    var text = String.UnicodeScalarView()
    while let scalar = self.rest.popFirst() {
      if scalar == quote { return String(text) }
      guard scalar == "\\" else {
        text.append(scalar)
        continue
      }
      switch self.rest.popFirst() {
      case "n": text.append("\n")
      case "r": text.append("\r")
      case "t": text.append("\t")
      case "\"": text.append("\"")
      case "'": text.append("'")
      case "\\": text.append("\\")
      default: throw FormulaRefusal("a text has an unknown escape sequence")
      }
    }
    throw FormulaRefusal("a text has no end")
  }

  private mutating func number() -> String {
    var number = self.take(Self.isDigit)
    if self.rest.first == ".", let next = self.rest.dropFirst().first, Self.isDigit(next) {
      self.rest.removeFirst()
      number += "." + self.take(Self.isDigit)
    }
    return number
  }

  private mutating func symbol() throws(FormulaRefusal) -> String {
    for symbol in ["&&", "||", "==", "!=", "<>", "<=", ">="]
    where self.rest.starts(with: symbol.unicodeScalars) {
      self.rest.removeFirst(2)
      return symbol == "==" ? "=" : symbol == "!=" ? "<>" : symbol
    }
    let first = self.rest.removeFirst()
    guard "()+-*/^&=<>!,".unicodeScalars.contains(first) else {
      throw FormulaRefusal("it has a character that is not part of the translated language")
    }
    return String(first)
  }

  private mutating func take(_ isPart: (Unicode.Scalar) -> Bool) -> String {
    let part = self.rest.prefix(while: isPart)
    self.rest.removeFirst(part.count)
    return String(part)
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

  private static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
    ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || scalar == "$"
  }

  private static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    Self.isNameStart(scalar) || Self.isDigit(scalar) || ["_", ".", ":", "#"].contains(scalar)
  }
}
