/// A parsed expression, not yet checked.
indirect enum Expression {
  case literal(Literal, at: Int)
  /// `isRooted`: with a dot before it, which passes over the variables of macros.
  case name(String, isRooted: Bool, at: Int)
  case select(Expression, field: String, at: Int)
  case index(Expression, Expression, at: Int)
  /// Operators too, under their symbol: `+`, `?:`, `-_` for the sign.
  case call(String, receiver: Expression?, arguments: [Expression], at: Int)
  case list([Expression], at: Int)
  case map([(key: Expression, value: Expression)], at: Int)

  enum Literal {
    case null
    case bool(Bool)
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case string([UInt8])
    case bytes([UInt8])
  }

  /// Where the operator, the name or the literal stands: bytes from the start of the text.
  var offset: Int {
    switch self {
    case .literal(_, let offset), .name(_, _, let offset), .select(_, _, let offset),
      .index(_, _, let offset), .call(_, _, _, let offset), .list(_, let offset),
      .map(_, let offset):
      offset
    }
  }
}
