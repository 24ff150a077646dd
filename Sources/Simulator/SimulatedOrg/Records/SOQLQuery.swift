/// A SOQL statement over one object: the subset of RESTAndBulk.md#soql.
package struct SOQLQuery: Sendable {
  indirect enum Condition: Sendable {
    case compare(OrgField, Comparison, Literal)
    case isOneOf(OrgField, Set<[UInt8]>)
    case and(Condition, Condition)
    case or(Condition, Condition)
    case not(Condition)
  }

  enum Comparison: String, Sendable {
    case equal = "="
    case unequal = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
  }

  enum Literal: Sendable {
    case null
    case boolean(Bool)
    case number(Double)
    case text([UInt8])
    case time(Int64)
  }

  enum Aggregate: String, Sendable {
    case count = "COUNT"
    case min = "MIN"
    case max = "MAX"
  }

  enum Column: Sendable {
    case field(OrgField)
    case aggregate(Aggregate, OrgField, alias: String)
  }

  package var object: Int
  var columns: [Column]
  /// `COUNT()`: the number alone.
  package var countsOnly = false
  var condition: Condition?
  var order: (field: OrgField, isDescending: Bool)?
  package var limit: Int?
  package var offset = 0

  package var isAggregate: Bool {
    self.columns.contains { if case .aggregate = $0 { true } else { false } }
  }
  package var fields: [OrgField] {
    self.columns.compactMap { if case .field(let field) = $0 { field } else { nil } }
  }
}

/// Reads a statement, by recursive descent.
struct SOQLParser {
  private var tokens: ArraySlice<SOQLToken>
  private let store: RecordStore
  private var object = 0

  static func query(_ text: String, in store: RecordStore) throws(APIRefusal) -> SOQLQuery {
    guard text.utf8.count <= 100_000 else {
      throw APIRefusal(
        "MALFORMED_QUERY", "SOQL statements cannot be longer than 100000 characters.")
    }
    var parser = SOQLParser(tokens: try SOQLLexer.tokens(of: text)[...], store: store)
    return try parser.statement()
  }

  private init(tokens: ArraySlice<SOQLToken>, store: RecordStore) {
    (self.tokens, self.store) = (tokens, store)
  }

  private mutating func statement() throws(APIRefusal) -> SOQLQuery {
    try self.expect("SELECT")
    // The object is known only after the columns.
    let start = self.tokens
    guard
      let from = self.tokens.firstIndex(where: {
        if case .name(let name) = $0 { name.uppercased() == "FROM" } else { false }
      })
    else { throw .malformed("unexpected end of query: FROM is missing") }
    self.tokens = self.tokens[(from + 1)...]
    let name = try self.name()
    guard let object = self.store.object(named: name) else { throw .unknownObject(name) }
    self.object = object
    let rest = self.tokens
    self.tokens = start[..<from]
    var query = SOQLQuery(object: object, columns: [])
    try self.readColumns(into: &query)
    self.tokens = rest
    if self.take("WHERE") { query.condition = try self.alternatives() }
    if self.take("ORDER") {
      try self.expect("BY")
      let field = try self.field(try self.name())
      let isDescending = self.take("DESC")
      if !isDescending { _ = self.take("ASC") }
      if self.take("NULLS"), !self.take("FIRST") { try self.expect("LAST") }
      query.order = (field, isDescending)
    }
    if self.take("LIMIT") { query.limit = try self.count() }
    if self.take("OFFSET") {
      query.offset = try self.count()
      guard query.offset <= 2000 else {
        throw APIRefusal("NUMBER_OUTSIDE_VALID_RANGE", "Maximum SOQL offset allowed is 2000")
      }
    }
    guard self.tokens.isEmpty else { throw .malformed("unexpected token: \(self.shown)") }
    return query
  }

  private mutating func readColumns(into query: inout SOQLQuery) throws(APIRefusal) {
    repeat {
      let name = try self.name()
      guard let aggregate = SOQLQuery.Aggregate(rawValue: name.uppercased()),
        self.takeSymbol("(")
      else {
        query.columns.append(.field(try self.field(name)))
        continue
      }
      if self.takeSymbol(")") {
        guard aggregate == .count, query.columns.isEmpty, self.tokens.isEmpty else {
          throw .malformed("COUNT() must be the only column")
        }
        query.countsOnly = true
        return
      }
      let field = try self.field(try self.name())
      try self.expectSymbol(")")
      var alias = "expr\(query.columns.count)"
      if case .name(let name) = self.tokens.first {
        alias = name
        self.tokens.removeFirst()
      }
      query.columns.append(.aggregate(aggregate, field, alias: alias))
    } while self.takeSymbol(",")
    guard self.tokens.isEmpty else { throw .malformed("unexpected token: \(self.shown)") }
    if query.isAggregate, !query.fields.isEmpty {
      throw .malformed("Grouped field should not be aggregated: GROUP BY is missing")
    }
  }

  private mutating func alternatives() throws(APIRefusal) -> SOQLQuery.Condition {
    var left = try self.conjunction()
    while self.take("OR") { left = .or(left, try self.conjunction()) }
    return left
  }

  private mutating func conjunction() throws(APIRefusal) -> SOQLQuery.Condition {
    var left = try self.term()
    while self.take("AND") { left = .and(left, try self.term()) }
    return left
  }

  private mutating func term() throws(APIRefusal) -> SOQLQuery.Condition {
    if self.take("NOT") { return .not(try self.term()) }
    if self.takeSymbol("(") {
      let condition = try self.alternatives()
      try self.expectSymbol(")")
      return condition
    }
    let field = try self.field(try self.name())
    guard !field.isLong, !field.type.isCompound else {
      throw APIRefusal(
        "INVALID_FIELD", "field '\(field.name)' can not be filtered in a query call")
    }
    if self.take("NOT") {
      try self.expect("IN")
      return .not(.isOneOf(field, try self.list()))
    }
    if self.take("IN") { return .isOneOf(field, try self.list()) }
    guard case .symbol(let symbol) = self.tokens.popFirst(),
      let comparison = SOQLQuery.Comparison(rawValue: symbol)
    else { throw .malformed("unexpected token after '\(field.name)'") }
    return .compare(field, comparison, try self.literal(field))
  }

  private mutating func list() throws(APIRefusal) -> Set<[UInt8]> {
    try self.expectSymbol("(")
    var texts: Set<[UInt8]> = []
    repeat {
      guard case .string(let text) = self.tokens.popFirst() else {
        throw .malformed("a list of texts is expected after IN")
      }
      texts.insert(text)
    } while self.takeSymbol(",")
    try self.expectSymbol(")")
    return texts
  }

  private mutating func literal(_ field: OrgField) throws(APIRefusal) -> SOQLQuery.Literal {
    let type = field.type
    let literal: SOQLQuery.Literal
    switch self.tokens.popFirst() {
    case .string(let text) where type.isText: literal = .text(text)
    case .number(let number) where [.int, .double, .currency, .percent].contains(type):
      literal = .number(number)
    case .date(let day) where type == .date: literal = .time(day)
    case .dateTime(let time) where type == .datetime: literal = .time(time)
    case .name(let name):
      switch name.lowercased() {
      case "null": literal = .null
      case "true" where type == .boolean: literal = .boolean(true)
      case "false" where type == .boolean: literal = .boolean(false)
      default: throw Self.mismatch(field)
      }
    default: throw Self.mismatch(field)
    }
    return literal
  }

  private static func mismatch(_ field: OrgField) -> APIRefusal {
    APIRefusal(
      "INVALID_FIELD",
      "value of filter criterion for field '\(field.name)' must be of type "
        + "\(field.type.rawValue) and should be enclosed in quotes only if it is a text")
  }

  private func field(_ name: String) throws(APIRefusal) -> OrgField {
    let object = self.store.objects[self.object]
    guard let index = object.index(of: name) else {
      throw .unknownField(name, of: object.name)
    }
    return object.fields[index]
  }

  // MARK: Tokens

  private var shown: String { self.tokens.first.map { "\($0)" } ?? "<EOF>" }

  private mutating func name() throws(APIRefusal) -> String {
    guard case .name(let name) = self.tokens.popFirst() else {
      throw .malformed("unexpected token: a name is expected")
    }
    return name
  }

  private mutating func count() throws(APIRefusal) -> Int {
    guard case .number(let number) = self.tokens.popFirst(), number >= 0, number <= 1e9 else {
      throw .malformed("a number is expected after LIMIT or OFFSET")
    }
    return Int(number)
  }

  private mutating func take(_ keyword: String) -> Bool {
    guard case .name(let name) = self.tokens.first, name.uppercased() == keyword else {
      return false
    }
    self.tokens.removeFirst()
    return true
  }

  private mutating func expect(_ keyword: String) throws(APIRefusal) {
    guard self.take(keyword) else {
      throw .malformed("unexpected token: \(self.shown); expected \(keyword)")
    }
  }

  private mutating func takeSymbol(_ symbol: String) -> Bool {
    guard self.tokens.first == .symbol(symbol) else { return false }
    self.tokens.removeFirst()
    return true
  }

  private mutating func expectSymbol(_ symbol: String) throws(APIRefusal) {
    guard self.takeSymbol(symbol) else {
      throw .malformed("unexpected token: \(self.shown); expected \(symbol)")
    }
  }
}
