extension FormulaTranslator {
  func binary(
    _ symbol: FormulaSyntax.Operator, _ left: FormulaSyntax, _ right: FormulaSyntax
  ) throws(FormulaRefusal) -> Expression {
    switch symbol {
    case .or: return try self.or([left, right])
    case .and: return try self.and([left, right])
    case .concatenate: return try self.concatenation(left, right)
    case .power: return try self.power(left, right)
    case .equal, .unequal, .less, .lessOrEqual, .greater, .greaterOrEqual, .plus, .minus, .times,
      .divide:
      break
    }
    let (one, other) = (try self.translate(left), try self.translate(right))
    guard one.kind != .null, other.kind != .null else {
      throw FormulaRefusal("\(symbol.rawValue) with NULL is not translated")
    }
    return switch symbol {
    case .equal, .unequal: try self.equality(symbol, one, other)
    case .less, .lessOrEqual, .greater, .greaterOrEqual: try self.order(symbol, one, other)
    case .plus, .minus: try self.sum(symbol, one, other)
    default: try self.product(symbol, one, other)
    }
  }

  private func mismatch(
    _ symbol: FormulaSyntax.Operator, _ one: Expression, _ other: Expression
  ) -> FormulaRefusal {
    FormulaRefusal(
      "\(symbol.rawValue) of a \(one.kind.rawValue) and a \(other.kind.rawValue) is not translated")
  }

  // MARK: Comparisons

  private func equality(
    _ symbol: FormulaSyntax.Operator, _ one: Expression, _ other: Expression
  ) throws(FormulaRefusal) -> Expression {
    guard one.kind == other.kind, one.kind != .picklist, one.kind != .multiPicklist else {
      throw self.mismatch(symbol, one, other)
    }
    for (id, constant) in [(one, other), (other, one)] where id.wholeID != nil {
      // An ID in a formula has 15 characters.
      guard constant.constant.map({ $0.isEmpty || $0.unicodeScalars.count == 15 }) ?? true else {
        throw FormulaRefusal("an ID is compared with a text that does not have 15 characters")
      }
    }
    guard one.kind == .boolean else {
      return Expression(
        .boolean, "(\(one.sql) \(symbol.rawValue) \(other.sql))", of: [one, other])
    }
    var expression = Expression(
      .boolean, "(\(one.condition) \(symbol.rawValue) \(other.condition))", of: [one, other])
    expression.isNullable = false
    expression.isUncertain = one.isUncertain || other.isUncertain
    return expression
  }

  private func order(
    _ symbol: FormulaSyntax.Operator, _ one: Expression, _ other: Expression
  ) throws(FormulaRefusal) -> Expression {
    guard one.kind == other.kind, [.number, .date, .dateTime, .time].contains(one.kind) else {
      throw self.mismatch(symbol, one, other)
    }
    return Expression(.boolean, "(\(one.sql) \(symbol.rawValue) \(other.sql))", of: [one, other])
  }

  // MARK: Arithmetic

  private func sum(
    _ symbol: FormulaSyntax.Operator, _ one: Expression, _ other: Expression
  ) throws(FormulaRefusal) -> Expression {
    let parts = [one, other]
    switch (one.kind, symbol, other.kind) {
    case (.number, _, .number):
      return Expression(.number, "(\(one.sql) \(symbol.rawValue) \(other.sql))", of: parts)
    case (.text, .plus, .text): return Expression(.text, "(\(one.sql) || \(other.sql))", of: parts)
    case (.date, _, .number): return self.shifted(one, symbol, by: other)
    case (.number, .plus, .date): return self.shifted(other, .plus, by: one)
    case (.dateTime, _, .number): return self.shifted(one, symbol, by: other)
    case (.number, .plus, .dateTime): return self.shifted(other, .plus, by: one)
    case (.date, .minus, .date):
      return Expression(.number, "(\(one.sql) - \(other.sql))::numeric", of: parts)
    case (.dateTime, .minus, .dateTime):
      var expression = Expression(
        .number,
        "(round(\(Self.seconds(one)) - \(Self.seconds(other)), 40) / 86400)", of: parts)
      (expression.isExact, expression.isLong) = (false, true)
      return expression
    default: throw self.mismatch(symbol, one, other)
    }
  }

  static func seconds(_ time: Expression) -> String {
    "extract(epoch FROM \(time.sql))::numeric"
  }

  /// A date or time some days later or earlier. A date ignores parts of a day, a time is rounded to
  /// seconds. A result outside the years of Salesforce is null.
  private func shifted(
    _ time: Expression, _ symbol: FormulaSyntax.Operator, by days: Expression
  ) -> Expression {
    let sign = symbol == .minus ? "-" : "+"
    let sql =
      time.kind == .date
      ? """
      (SELECT CASE WHEN _s.n BETWEEN 0 AND 3652058 THEN DATE '0001-01-01' + _s.n::integer END \
      FROM (SELECT (\(time.sql) - DATE '0001-01-01')::numeric \(sign) trunc(\(days.sql)) AS n) AS _s)
      """
      : """
      (SELECT CASE WHEN _s.n BETWEEN -62135596800 AND 253402300799 \
      THEN to_timestamp(_s.n::double precision) END FROM (SELECT \(Self.seconds(time)) \
      \(sign) round(\(days.sql) * 86400) AS n) AS _s)
      """
    var expression = Expression(time.kind, sql, of: [time, days])
    expression.isNullable = true
    return expression
  }

  private func product(
    _ symbol: FormulaSyntax.Operator, _ one: Expression, _ other: Expression
  ) throws(FormulaRefusal) -> Expression {
    guard one.kind == .number, other.kind == .number else {
      throw self.mismatch(symbol, one, other)
    }
    guard symbol == .divide else {
      return Expression(.number, "(\(one.sql) * \(other.sql))", of: [one, other])
    }
    // With digits enough that a third times three is one again.
    let dividend = "round(\(one.sql), 40)"
    if let divisor = other.constant, divisor.contains(where: { ("1"..."9").contains($0) }) {
      var quotient = Expression(.number, "(\(dividend) / \(other.sql))", of: [one, other])
      (quotient.isExact, quotient.isLong) = (one.isExact && Self.divides(divisor), true)
      return quotient
    }
    var quotient = Expression(
      .number, "(\(dividend) / NULLIF(\(other.sql), 0))", of: [one, other],
      error: "\(other.sql) = 0")
    (quotient.isExact, quotient.isLong, quotient.isNullable) = (false, true, true)
    return quotient
  }

  /// A division by this whole number ends after some digits.
  private static func divides(_ digits: String) -> Bool {
    guard var rest = Int(digits), rest > 0 else { return false }
    for factor in [2, 5] { while rest.isMultiple(of: factor) { rest /= factor } }
    return rest == 1
  }

  private func power(
    _ left: FormulaSyntax, _ right: FormulaSyntax
  ) throws(FormulaRefusal) -> Expression {
    let (base, exponent) = (try self.number(left, "^"), try self.number(right, "^"))
    guard let number = exponent.wholeNumber, (0...64).contains(number) else {
      throw FormulaRefusal("an exponent that is not a constant whole number is not translated")
    }
    // Salesforce computes no larger numbers.
    let isTooLarge = "abs(\(base.sql)) > 10 ^ (64.0 / \(max(number, 1)))"
    var expression = Expression(
      .number, "CASE WHEN \(isTooLarge) THEN NULL ELSE power(\(base.sql), \(number)) END",
      of: [base], error: isTooLarge)
    (expression.isExact, expression.isLong, expression.isNullable) = (false, true, true)
    return expression
  }

  private func concatenation(
    _ left: FormulaSyntax, _ right: FormulaSyntax
  ) throws(FormulaRefusal) -> Expression {
    let (one, other) = (try self.text(left, "&"), try self.text(right, "&"))
    return Expression(.text, "(\(one.sql) || \(other.sql))", of: [one, other])
  }
}
