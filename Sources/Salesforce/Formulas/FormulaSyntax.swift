/// A formula as its author wrote it: a tree of operators and calls.
indirect enum FormulaSyntax: Equatable {
  enum Operator: String {
    case or = "||"
    case and = "&&"
    case equal = "="
    case unequal = "<>"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case plus = "+"
    case minus = "-"
    case concatenate = "&"
    case times = "*"
    case divide = "/"
    case power = "^"
  }

  /// Digits, perhaps with a point in between.
  case number(String)
  case text(String)
  case boolean(Bool)
  case null
  /// The names between the points.
  case field([String])
  case not(FormulaSyntax)
  case negative(FormulaSyntax)
  case binary(Operator, FormulaSyntax, FormulaSyntax)
  /// The function's name in capitals.
  case call(String, [FormulaSyntax])
  case group(FormulaSyntax)

  /// The expression without parentheses around it.
  var content: FormulaSyntax {
    var content = self
    while case .group(let inner) = content { content = inner }
    return content
  }
}
