/// A parser of CEL's grammar by precedence.
struct Parser {
  private var lexer: Lexer
  private let text: [UInt8]
  private let limits: ExpressionLimits
  var token = Token(kind: .end, offset: 0)
  /// The depth of the calls that parse.
  private var depth = 0
  /// The depth of the tree that was parsed last: a deep tree is not always parsed deeply, as in
  /// `a + b + c`.
  var height = 0
  private var nodeCount = 0

  /// - Throws: `CELError` (`syntax`, `unsupported`) for the first mistake of the text.
  static func parse(_ text: [UInt8], limits: ExpressionLimits) throws(CELError) -> Expression {
    var parser = Parser(text, limits)
    guard text.count <= limits.byteCount else {
      throw CELError(
        .syntax, "the expression has \(text.count) bytes; the limit is \(limits.byteCount)",
        at: SourcePosition(offset: 0, in: text))
    }
    try parser.advance()
    let expression = try parser.expression()
    guard parser.token.kind == .end else {
      throw parser.error("expected an operator, found \(parser.token.description)")
    }
    return expression
  }

  private init(_ text: [UInt8], _ limits: ExpressionLimits) {
    self.lexer = Lexer(text)
    self.text = text
    self.limits = limits
  }

  // MARK: Operators

  /// Binary operators by how tightly they bind; `&&` and `||` have functions of their own.
  private static let precedence: [String: Int] = [
    "==": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "in": 1, "+": 2, "-": 2, "*": 3, "/": 3,
    "%": 3,
  ]

  mutating func expression() throws(CELError) -> Expression {
    try self.enter()
    defer { self.depth -= 1 }
    let condition = try self.chain("||")
    guard self.isSymbol("?") else { return condition }
    let offset = self.token.offset
    var height = self.height
    try self.advance()
    let first = try self.chain("||")
    height = max(height, self.height)
    try self.expect(":", "after the first choice of '?'")
    let second = try self.expression()
    height = max(height, self.height)
    return try self.call("?:", [condition, first, second], offset, over: height)
  }

  /// Terms between `||`, or between `&&`, as a balanced tree: both operators are associative, and a
  /// long chain is then not deep.
  private mutating func chain(_ symbol: String) throws(CELError) -> Expression {
    var terms = [symbol == "||" ? try self.chain("&&") : try self.binary(1)]
    var offsets: [Int] = []
    var height = self.height
    while self.isSymbol(symbol) {
      offsets.append(self.token.offset)
      try self.advance()
      terms.append(symbol == "||" ? try self.chain("&&") : try self.binary(1))
      height = max(height, self.height)
    }
    self.height = height
    return try self.balanced(symbol, terms[...], offsets[...])
  }

  private mutating func balanced(
    _ symbol: String, _ terms: ArraySlice<Expression>, _ offsets: ArraySlice<Int>
  ) throws(CELError) -> Expression {
    guard terms.count > 1 else { return terms[terms.startIndex] }
    let half = terms.count / 2
    let termHeight = self.height
    let left = try self.balanced(symbol, terms.prefix(half), offsets.prefix(half - 1))
    let leftHeight = self.height
    self.height = termHeight
    let right = try self.balanced(symbol, terms.dropFirst(half), offsets.dropFirst(half))
    return try self.call(
      symbol, [left, right], offsets[offsets.startIndex + half - 1],
      over: max(leftHeight, self.height))
  }

  private mutating func binary(_ lowest: Int) throws(CELError) -> Expression {
    var left = try self.unary()
    while let symbol = self.binaryOperator, let precedence = Self.precedence[symbol],
      precedence >= lowest
    {
      let offset = self.token.offset
      let height = self.height
      try self.advance()
      let right = try self.binary(precedence + 1)
      left = try self.call(symbol, [left, right], offset, over: max(height, self.height))
    }
    return left
  }

  private var binaryOperator: String? {
    switch self.token.kind {
    case .symbol(let text): text
    case .identifier("in"): "in"
    default: nil
    }
  }

  private mutating func unary() throws(CELError) -> Expression {
    for symbol in ["!", "-"] where self.isSymbol(symbol) {
      let offset = self.token.offset
      try self.advance()
      if symbol == "-", case .int(let magnitude) = self.token.kind,
        magnitude == UInt64(Int64.max) + 1
      {
        return try self.member(of: try self.literal(.int(.min), at: offset))
      }
      if symbol == "-", case .int(let magnitude) = self.token.kind, magnitude <= UInt64(Int64.max) {
        return try self.member(of: try self.literal(.int(-Int64(magnitude)), at: offset))
      }
      try self.enter()
      defer { self.depth -= 1 }
      guard !self.isSymbol(symbol == "!" ? "-" : "!") else {
        throw self.error("'!' and '-' cannot be next to each other; use parentheses")
      }
      let operand = try self.unary()
      return try self.call(symbol == "!" ? "!_" : "-_", [operand], offset, over: self.height)
    }
    return try self.member(of: try self.primary())
  }

  // MARK: Pieces

  mutating func call(
    _ name: String, _ arguments: [Expression], _ offset: Int, over height: Int
  ) throws(CELError) -> Expression {
    try self.count(over: height)
    return .call(name, receiver: nil, arguments: arguments, at: offset)
  }

  mutating func advance() throws(CELError) { self.token = try self.lexer.next() }

  func isSymbol(_ symbol: String) -> Bool { self.token.kind == .symbol(symbol) }

  mutating func expect(_ symbol: String, _ place: String) throws(CELError) {
    guard self.isSymbol(symbol) else {
      throw self.error("expected '\(symbol)' \(place), found \(self.token.description)")
    }
    try self.advance()
  }

  private mutating func enter() throws(CELError) {
    self.depth += 1
    guard self.depth <= self.limits.depth else { throw self.tooDeep() }
  }

  private func tooDeep() -> CELError {
    self.error("the expression is nested more than \(self.limits.depth) levels deep")
  }

  /// Counts a node over parts of that height.
  mutating func count(over height: Int) throws(CELError) {
    self.height = height + 1
    guard self.height <= self.limits.depth else { throw self.tooDeep() }
    self.nodeCount += 1
    guard self.nodeCount <= self.limits.nodeCount else {
      throw self.error("the expression has more than \(self.limits.nodeCount) parts")
    }
  }

  func checkCount(_ count: Int) throws(CELError) {
    guard count <= self.limits.elementCount else {
      throw self.error("more than \(self.limits.elementCount) elements")
    }
  }

  func error(_ message: String) -> CELError {
    CELError(.syntax, message, at: SourcePosition(offset: self.token.offset, in: self.text))
  }

  func unsupported(_ thing: String) -> CELError {
    CELError(
      .unsupported, "unsupported: \(thing) are not part of this profile of CEL",
      at: SourcePosition(offset: self.token.offset, in: self.text))
  }
}
