internal import PostgresClient

/// A part of a formula in SQL. The server computes it without an error whatever the values are.
struct FormulaExpression {
  enum Kind: String {
    case text, number, boolean, date, time, picklist, null
    case dateTime = "date and time"
    case multiPicklist = "multi-select picklist"

    /// The type of a null.
    var sqlName: String {
      switch self {
      case .text, .picklist, .null: "text"
      case .number: "numeric"
      case .boolean: "boolean"
      case .date: "date"
      case .time: "time"
      case .dateTime: "timestamptz"
      case .multiPicklist: "text[]"
      }
    }
  }

  var kind: Kind
  /// Numbers are `numeric`. Texts are never null: an empty text is blank.
  var sql: String
  /// SQL: the formula has no value, because of a division by zero and the like; nil if that cannot
  /// be.
  var error: String?
  var isNullable = false
  /// The number has all its digits, so that its text is certain.
  var isExact = true
  /// The number has more decimal places than anybody needs.
  var isLong = false
  /// A condition that Salesforce may treat as blank where this one is false, so that its negation is
  /// not certain.
  var isUncertain = false
  /// The digits or the text of a constant.
  var constant: String?
  /// SQL: an ID with 18 characters; `sql` has the 15 that formulas see.
  var wholeID: String?
  /// Choices of the picklist have labels that differ from their values.
  var hasOtherLabels = false
  /// The value depends on the time at which it is computed.
  var isOfMoment = false

  init(_ kind: Kind, _ sql: String) {
    self.kind = kind
    self.sql = sql
  }

  /// An expression of others, which has no value if one of them has none.
  init(_ kind: Kind, _ sql: String, of parts: [FormulaExpression], error: String? = nil) {
    self.init(kind, sql)
    self.error = Self.any(parts.map(\.error) + [error])
    self.isNullable = parts.contains(where: \.isNullable)
    self.isExact = parts.allSatisfy(\.isExact)
    self.isLong = parts.contains(where: \.isLong)
    self.isOfMoment = parts.contains(where: \.isOfMoment)
  }

  static func text(_ text: String) -> Self {
    var expression = Self(.text, SQLIdentifier.literal(text) + "::text")
    expression.constant = text
    return expression
  }

  static func number(_ digits: String) -> Self {
    var expression = Self(.number, "\(digits)::numeric")
    expression.constant = digits
    return expression
  }

  static let null: Self = {
    var expression = Self(.null, "NULL")
    expression.isNullable = true
    return expression
  }()

  static func any(_ conditions: [String?]) -> String? {
    let conditions = conditions.compactMap { $0 }
    return conditions.isEmpty ? nil : "(\(conditions.joined(separator: " OR ")))"
  }

  /// The constant if it is a whole number.
  var wholeNumber: Int? { self.kind == .number ? self.constant.flatMap { Int($0) } : nil }

  /// SQL: the condition, which is never null.
  var condition: String { self.isNullable ? "coalesce(\(self.sql), false)" : self.sql }

  /// A null of a kind.
  func typed(_ kind: Kind) -> Self {
    guard self.kind == .null, kind != .null else { return self }
    guard kind != .text else { return .text("") }
    var expression = Self(kind, "NULL::\(kind.sqlName)")
    expression.isNullable = true
    return expression
  }
}
