// Parses literals, names, calls, lists and maps, and the members after them.

extension Parser {
  mutating func member(of primary: Expression) throws(CELError) -> Expression {
    var expression = primary
    while true {
      if self.isSymbol(".") {
        try self.advance()
        expression = try self.selection(of: expression)
      } else if self.isSymbol("[") {
        let offset = self.token.offset
        try self.advance()
        guard !self.isSymbol("?") else { throw self.unsupported("optional values ('[?')") }
        let height = self.height
        let index = try self.expression()
        try self.expect("]", "after the index")
        try self.count(over: max(height, self.height))
        expression = .index(expression, index, at: offset)
      } else if self.isSymbol("{"), expression.isQualifiedName {
        throw self.unsupported("messages ('Name{…}')")
      } else {
        return expression
      }
    }
  }

  /// Parses what follows a dot.
  private mutating func selection(of operand: Expression) throws(CELError) -> Expression {
    let offset = self.token.offset
    switch self.token.kind {
    case .symbol("?"): throw self.unsupported("optional values ('.?')")
    case .quotedIdentifier(let name):
      try self.advance()
      try self.count(over: self.height)
      return .select(operand, field: name, at: offset)
    case .identifier(let name) where !ReservedWord.keywords.contains(name):
      try self.advance()
      let height = self.height
      guard self.isSymbol("(") else {
        try self.count(over: height)
        return .select(operand, field: name, at: offset)
      }
      let arguments = try self.arguments()
      try self.count(over: max(height, self.height))
      return .call(name, receiver: operand, arguments: arguments, at: offset)
    default:
      throw self.error("expected a name after '.', found \(self.token.description)")
    }
  }

  private mutating func arguments() throws(CELError) -> [Expression] {
    try self.advance()
    return try self.elements(until: ")", "in the arguments")
  }

  /// Expressions between commas. A comma may follow the last one of a list.
  private mutating func elements(
    until end: String, _ place: String
  ) throws(CELError) -> [Expression] {
    var elements: [Expression] = []
    var height = 0
    while !self.isSymbol(end) {
      guard !self.isSymbol("?") else { throw self.unsupported("optional values ('[?')") }
      elements.append(try self.expression())
      height = max(height, self.height)
      try self.checkCount(elements.count)
      guard self.isSymbol(",") else { break }
      try self.advance()
      if end == ")", self.isSymbol(end) {
        throw self.error("expected an argument after ',', found ')'")
      }
    }
    try self.expect(end, place)
    self.height = height
    return elements
  }

  // MARK: Primaries

  mutating func primary() throws(CELError) -> Expression {
    let offset = self.token.offset
    switch self.token.kind {
    case .symbol("("):
      try self.advance()
      let expression = try self.expression()
      try self.expect(")", "after the expression in parentheses")
      return expression
    case .symbol("["):
      try self.advance()
      let elements = try self.elements(until: "]", "in the list")
      try self.count(over: self.height)
      return .list(elements, at: offset)
    case .symbol("{"):
      try self.advance()
      return try self.map(at: offset)
    case .symbol("."):
      try self.advance()
      guard case .identifier(let name) = self.token.kind else {
        throw self.error("expected a name after '.', found \(self.token.description)")
      }
      return try self.name(name, isRooted: true)
    case .identifier("true"): return try self.take(.bool(true))
    case .identifier("false"): return try self.take(.bool(false))
    case .identifier("null"): return try self.take(.null)
    case .identifier(let name): return try self.name(name, isRooted: false)
    case .int(let value):
      guard let value = Int64(exactly: value) else {
        throw self.error("the number is beyond the range of int")
      }
      return try self.take(.int(value))
    case .uint(let value): return try self.take(.uint(value))
    case .double(let value): return try self.take(.double(value))
    case .string(let bytes): return try self.take(.string(bytes))
    case .bytes(let bytes): return try self.take(.bytes(bytes))
    case .quotedIdentifier, .symbol, .end:
      throw self.error("expected an expression, found \(self.token.description)")
    }
  }

  private mutating func take(_ literal: Expression.Literal) throws(CELError) -> Expression {
    try self.literal(literal, at: self.token.offset)
  }

  mutating func literal(
    _ literal: Expression.Literal, at offset: Int
  ) throws(CELError) -> Expression {
    try self.advance()
    try self.count(over: 0)
    return .literal(literal, at: offset)
  }

  private mutating func name(_ name: String, isRooted: Bool) throws(CELError) -> Expression {
    let offset = self.token.offset
    guard !ReservedWord.all.contains(name) else {
      throw self.error("'\(name)' is a reserved word; a column of this name is 'row.\(name)'")
    }
    try self.advance()
    guard self.isSymbol("(") else {
      try self.count(over: 0)
      return .name(name, isRooted: isRooted, at: offset)
    }
    return try self.call(name, try self.arguments(), offset, over: self.height)
  }

  private mutating func map(at offset: Int) throws(CELError) -> Expression {
    var height = 0
    var entries: [(key: Expression, value: Expression)] = []
    while !self.isSymbol("}") {
      guard !self.isSymbol("?") else { throw self.unsupported("optional values ('{?')") }
      let key = try self.expression()
      height = max(height, self.height)
      try self.expect(":", "after the key")
      entries.append((key, try self.expression()))
      height = max(height, self.height)
      try self.checkCount(entries.count)
      guard self.isSymbol(",") else { break }
      try self.advance()
    }
    try self.expect("}", "in the map")
    try self.count(over: height)
    return .map(entries, at: offset)
  }
}

extension Expression {
  /// A name, or names between dots.
  fileprivate var isQualifiedName: Bool {
    switch self {
    case .name: true
    case .select(let operand, _, _): operand.isQualifiedName
    default: false
    }
  }
}
