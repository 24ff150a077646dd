internal import PostgresClient

/// Translates a formula into an SQL expression for PostgreSQL.
///
/// What is not known exactly is refused. The rules are those of the help pages "Formula Operators and
/// Functions" of Salesforce and, where they are silent, those of its published formula engine
/// (github.com/salesforce/formula-engine), which computes both in memory and in SQL.
package struct FormulaTranslator {
  typealias Expression = FormulaExpression
  typealias Kind = FormulaExpression.Kind

  let fields: any FormulaFields
  let treatsBlankAsZero: Bool
  /// Names before those of the formula's own fields.
  private let path: [String]
  /// Formulas that this one is part of.
  private let outer: [Formula]
  /// The collation for letters beyond ASCII; nil if the server has none.
  let collation: String?

  /// Bytes of SQL.
  private static let maxByteCount = 60_000
  private static let maxOuter = 10

  package struct Translation: Sendable, Equatable {
    /// Its type is `numeric`, `text`, `boolean`, `date`, `time` or `timestamptz`. It is null where
    /// the formula has no value, or an error.
    package var sql: String
    /// The value changes with time alone.
    package var isOfMoment: Bool
  }

  /// - Parameter collation: the name of a collation that knows the letters of all languages.
  package static func translate(
    _ formula: Formula, fields: any FormulaFields, collation: String?
  ) throws(FormulaRefusal) -> Translation {
    let translator = Self(formula, [], outer: [], fields: fields, collation: collation)
    let expression = try translator.result(of: formula)
    return Translation(
      sql: Self.column(expression, formula.type), isOfMoment: expression.isOfMoment)
  }

  private init(
    _ formula: Formula, _ path: [String], outer: [Formula], fields: any FormulaFields,
    collation: String?
  ) {
    self.fields = fields
    self.treatsBlankAsZero = formula.treatsBlankAsZero
    self.path = path
    self.outer = outer + [formula]
    self.collation = collation
  }

  private func result(of formula: Formula) throws(FormulaRefusal) -> Expression {
    let expression = try self.translate(FormulaParser.parse(formula.text))
    let kind: Kind =
      switch formula.type {
      case .text, .id, .picklist: .text
      case .number, .percent: .number
      case .boolean: .boolean
      case .date: .date
      case .dateTime: .dateTime
      case .time: .time
      case .multiPicklist: .multiPicklist
      }
    guard expression.kind == kind || expression.kind == .null else {
      throw FormulaRefusal(
        "its result is a \(expression.kind.rawValue), and the field is a \(formula.type.rawValue)")
    }
    return expression.typed(kind)
  }

  /// The value as REST shows it. Numbers have at most 18 digits before the point, and are not
  /// rounded to the field's decimal places.
  private static func column(_ expression: Expression, _ type: FormulaType) -> String {
    var sql = expression.sql
    switch expression.kind {
    case .text: sql = "NULLIF(\(sql), '')"
    case .boolean: sql = expression.condition
    case .number:
      if type == .percent { sql = "\(sql) * 100" }
      if expression.isLong { sql = "round(\(sql), 18)" }
      sql = "(SELECT CASE WHEN abs(_s.n) < 1e18 THEN _s.n END FROM (SELECT \(sql) AS n) AS _s)"
    case .date, .dateTime, .time, .picklist, .multiPicklist, .null: break
    }
    guard let error = expression.error else { return sql }
    return "CASE WHEN \(error) THEN NULL ELSE \(sql) END"
  }

  // MARK: Syntax

  func translate(_ syntax: FormulaSyntax) throws(FormulaRefusal) -> Expression {
    let expression = try self.untested(syntax)
    guard expression.sql.utf8.count + (expression.error?.utf8.count ?? 0) <= Self.maxByteCount
    else { throw FormulaRefusal("its SQL would be longer than \(Self.maxByteCount) bytes") }
    return expression
  }

  private func untested(_ syntax: FormulaSyntax) throws(FormulaRefusal) -> Expression {
    switch syntax {
    case .number(let digits):
      guard digits.utf8.count <= 40 else { throw FormulaRefusal("a number has over 40 digits") }
      return .number(digits)
    case .text(let text): return .text(text)
    case .boolean(let value): return Expression(.boolean, value ? "true" : "false")
    case .null: return .null
    case .field(let names): return try self.field(names)
    case .group(let inner): return try self.translate(inner)
    case .negative(let inner):
      let number = try self.number(inner, "-")
      var expression = Expression(.number, "(- \(number.sql))", of: [number])
      expression.constant = number.constant.map { "-\($0)" }
      return expression
    case .not(let inner): return try self.not(inner)
    case .binary(let symbol, let left, let right): return try self.binary(symbol, left, right)
    case .call(let name, let arguments): return try self.call(name, arguments)
    }
  }

  // MARK: Fields

  private func field(_ names: [String]) throws(FormulaRefusal) -> Expression {
    let name = names.joined(separator: ".")
    guard !name.hasPrefix("$") else {
      throw FormulaRefusal("\(name) is a global variable, which is not translated")
    }
    let field = try self.fields.field(at: self.path + names)
    switch field.content {
    case .formula(let formula, let path):
      guard self.outer.count <= Self.maxOuter, !self.outer.contains(formula) else {
        throw FormulaRefusal("it refers to formula \(name), which refers to too many others")
      }
      let translator = Self(
        formula, path, outer: self.outer, fields: self.fields, collation: self.collation)
      do throws(FormulaRefusal) {
        return self.valued(try translator.result(of: formula))
      } catch {
        throw FormulaRefusal(
          "it refers to formula \(name), which is not translated: \(error.reason)")
      }
    case .column(let sql): return self.column(sql, field)
    }
  }

  private func column(_ sql: String, _ field: FormulaField) -> Expression {
    switch field.type {
    case .text: return Expression(.text, "coalesce(\(sql), '')")
    case .id:
      var expression = Expression(.text, "coalesce(left(\(sql), 15), '')")
      expression.wholeID = "coalesce(\(sql), '')"
      return expression
    case .boolean: return Expression(.boolean, "coalesce(\(sql), false)")
    case .picklist:
      var expression = Expression(.picklist, "coalesce(\(sql), '')")
      expression.hasOtherLabels = field.hasOtherLabels
      return expression
    case .number: return self.valued(.nullable(.number, sql))
    case .percent: return self.valued(.nullable(.number, "(\(sql) * 0.01)"))
    case .date: return .nullable(.date, sql)
    case .dateTime: return .nullable(.dateTime, sql)
    case .time: return .nullable(.time, sql)
    case .multiPicklist:
      var expression = Expression.nullable(.multiPicklist, sql)
      expression.hasOtherLabels = field.hasOtherLabels
      return expression
    }
  }

  /// The value of a field, in which empty numbers are zero if the formula says so.
  private func valued(_ expression: Expression) -> Expression {
    guard expression.kind == .number, expression.isNullable, self.treatsBlankAsZero else {
      return expression
    }
    var valued = expression
    valued.sql = "coalesce(\(expression.sql), 0)"
    valued.isNullable = false
    return valued
  }

  // MARK: Kinds

  func number(_ syntax: FormulaSyntax, _ user: String) throws(FormulaRefusal) -> Expression {
    try self.expression(syntax, .number, user)
  }

  func text(_ syntax: FormulaSyntax, _ user: String) throws(FormulaRefusal) -> Expression {
    try self.expression(syntax, .text, user)
  }

  func boolean(_ syntax: FormulaSyntax, _ user: String) throws(FormulaRefusal) -> Expression {
    try self.expression(syntax, .boolean, user)
  }

  /// - Parameter user: the function or operator that needs the kind.
  func expression(
    _ syntax: FormulaSyntax, _ kind: Kind, _ user: String
  ) throws(FormulaRefusal) -> Expression {
    let expression = try self.translate(syntax)
    guard expression.kind == kind || expression.kind == .null else {
      throw FormulaRefusal("\(user) of a \(expression.kind.rawValue) is not translated")
    }
    return expression.typed(kind)
  }

  /// Values of one kind, whatever it is; nulls get it.
  func alike(_ expressions: [Expression], _ user: String) throws(FormulaRefusal) -> [Expression] {
    let kind = expressions.first { $0.kind != .null }?.kind ?? .null
    guard expressions.allSatisfy({ $0.kind == kind || $0.kind == .null }),
      kind != .picklist, kind != .multiPicklist
    else { throw FormulaRefusal("the values of \(user) have different types") }
    return expressions.map { $0.typed(kind) }
  }

  func count(
    _ arguments: [FormulaSyntax], _ range: ClosedRange<Int>, _ name: String
  ) throws(FormulaRefusal) {
    guard range.contains(arguments.count) else {
      throw FormulaRefusal("\(name) has \(arguments.count) arguments")
    }
  }
}

extension FormulaExpression {
  static func nullable(_ kind: Kind, _ sql: String) -> Self {
    var expression = Self(kind, sql)
    expression.isNullable = true
    return expression
  }
}
