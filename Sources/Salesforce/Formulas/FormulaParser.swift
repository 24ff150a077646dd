/// Reads the text of a formula. The text comes from the org, so its length and depth have limits.
struct FormulaParser {
  typealias Operator = FormulaSyntax.Operator

  private var lexer: FormulaLexer
  private var token = FormulaLexer.Token.end
  private var depth = 0
  /// Operators in chains, each of which makes the tree deeper.
  private var chained = 0

  /// Salesforce allows 3,900 characters.
  static let maxLength = 4000
  private static let maxDepth = 60
  private static let maxChained = 300

  private init(_ text: String) throws(FormulaRefusal) {
    self.lexer = FormulaLexer(text)
    self.token = try self.lexer.next()
  }

  static func parse(_ text: String) throws(FormulaRefusal) -> FormulaSyntax {
    guard text.unicodeScalars.count <= Self.maxLength else {
      throw FormulaRefusal("it is longer than \(Self.maxLength) characters")
    }
    var parser = try Self(text)
    let syntax = try parser.expression()
    guard parser.token == .end else { throw parser.unexpected() }
    return syntax
  }

  private func unexpected() -> FormulaRefusal {
    switch self.token {
    case .end: FormulaRefusal("it ends too early")
    case .symbol(let symbol): FormulaRefusal("'\(symbol)' is in an unexpected place")
    case .number, .text, .name: FormulaRefusal("an operator is missing")
    }
  }

  private mutating func advance() throws(FormulaRefusal) { self.token = try self.lexer.next() }

  private mutating func expression() throws(FormulaRefusal) -> FormulaSyntax {
    try self.nested { parser throws(FormulaRefusal) in try parser.chain(0) }
  }

  private mutating func nested(
    _ body: (inout Self) throws(FormulaRefusal) -> FormulaSyntax
  ) throws(FormulaRefusal) -> FormulaSyntax {
    self.depth += 1
    guard self.depth <= Self.maxDepth else {
      throw FormulaRefusal("it is nested more than \(Self.maxDepth) levels deep")
    }
    let syntax = try body(&self)
    self.depth -= 1
    return syntax
  }

  /// From the weakest to the strongest. In Salesforce, `^` is weaker than `*`.
  private static let levels: [[Operator]] = [
    [.or], [.and], [.equal, .unequal], [.less, .lessOrEqual, .greater, .greaterOrEqual],
    [.plus, .minus, .concatenate], [.power], [.times, .divide],
  ]

  private mutating func chain(_ level: Int) throws(FormulaRefusal) -> FormulaSyntax {
    guard level < Self.levels.count else { return try self.unary() }
    var left = try self.chain(level + 1)
    while case .symbol(let symbol) = self.token, let found = Operator(rawValue: symbol),
      Self.levels[level].contains(found)
    {
      self.chained += 1
      guard self.chained <= Self.maxChained else {
        throw FormulaRefusal("it has more than \(Self.maxChained) operators")
      }
      try self.advance()
      let right = try self.chain(level + 1)
      if found == .power { try Self.checkPower(left, right) }
      left = .binary(found, left, right)
    }
    return left
  }

  /// What the documentation of Salesforce says about the order of `^` differs from what it computes.
  private static func checkPower(
    _ left: FormulaSyntax, _ right: FormulaSyntax
  ) throws(FormulaRefusal) {
    for side in [left, right] {
      switch side {
      case .binary, .negative, .not:
        throw FormulaRefusal("the order of ^ and the operator beside it is not certain")
      default: continue
      }
    }
  }

  private mutating func unary() throws(FormulaRefusal) -> FormulaSyntax {
    switch self.token {
    case .symbol("-"):
      try self.advance()
      return .negative(
        try self.nested { parser throws(FormulaRefusal) in try parser.unary() })
    case .symbol("+"):
      try self.advance()
      return try self.nested { parser throws(FormulaRefusal) in try parser.unary() }
    case .symbol("!"):
      try self.advance()
      return .not(try self.nested { parser throws(FormulaRefusal) in try parser.unary() })
    case .name(let name) where name.uppercased() == "NOT":
      try self.advance()
      return .not(try self.nested { parser throws(FormulaRefusal) in try parser.unary() })
    default: return try self.primary()
    }
  }

  private mutating func primary() throws(FormulaRefusal) -> FormulaSyntax {
    switch self.token {
    case .number(let digits):
      try self.advance()
      return .number(digits)
    case .text(let text):
      try self.advance()
      return .text(text)
    case .symbol("("):
      try self.advance()
      let inner = try self.expression()
      try self.close()
      return .group(inner)
    case .name(let name):
      try self.advance()
      guard self.token == .symbol("(") else { return Self.named(name) }
      return .call(name.uppercased(), try self.arguments())
    case .symbol, .end: throw self.unexpected()
    }
  }

  private static func named(_ name: String) -> FormulaSyntax {
    switch name.uppercased() {
    case "TRUE": .boolean(true)
    case "FALSE": .boolean(false)
    case "NULL": .null
    default: .field(name.split(separator: ".", omittingEmptySubsequences: false).map(String.init))
    }
  }

  private mutating func arguments() throws(FormulaRefusal) -> [FormulaSyntax] {
    try self.advance()
    var arguments: [FormulaSyntax] = []
    if self.token == .symbol(")") {
      try self.advance()
      return []
    }
    while true {
      arguments.append(try self.expression())
      guard self.token == .symbol(",") else { break }
      try self.advance()
    }
    try self.close()
    return arguments
  }

  private mutating func close() throws(FormulaRefusal) {
    guard self.token == .symbol(")") else { throw self.unexpected() }
    try self.advance()
  }
}
