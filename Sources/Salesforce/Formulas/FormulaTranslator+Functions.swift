extension FormulaTranslator {
  /// - Parameter name: in capitals.
  func call(_ name: String, _ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    switch name {
    case "IF": return try self.choice(arguments)
    case "CASE": return try self.cases(arguments)
    case "AND": return try self.and(arguments)
    case "OR": return try self.or(arguments)
    case "ISBLANK", "ISNULL": return try self.isBlank(arguments, name)
    case "BLANKVALUE", "NULLVALUE": return try self.replacement(arguments, name)
    case "ISPICKVAL": return try self.isChoice(arguments)
    case "INCLUDES": return try self.includes(arguments)
    case "ABS", "CEILING", "FLOOR", "MCEILING", "MFLOOR", "SQRT", "LN", "LOG", "EXP":
      return try self.function(of: arguments, name)
    case "ROUND", "TRUNC": return try self.rounded(arguments, name)
    case "MOD": return try self.remainder(arguments)
    case "MAX", "MIN": return try self.extreme(arguments, name)
    case "TODAY", "NOW", "DATE", "DATEVALUE", "DATETIMEVALUE", "TIMEVALUE", "ADDMONTHS", "YEAR",
      "MONTH", "DAY", "WEEKDAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "DAYOFYEAR",
      "ISOWEEK", "ISOYEAR":
      return try self.time(name, arguments)
    default: return try self.textFunction(name, arguments)
    }
  }

  // MARK: Numbers

  private func function(
    of arguments: [FormulaSyntax], _ name: String
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, name)
    let number = try self.number(arguments[0], name)
    let sql = number.sql
    func expression(_ sql: String, error: String? = nil) -> Expression {
      var expression = Expression(.number, sql, of: [number], error: error)
      (expression.isExact, expression.isLong) = (false, true)
      if error != nil { expression.isNullable = true }
      return expression
    }
    func whole(_ function: String) -> Expression {
      // Digits that a division left over do not count.
      var whole = expression("\(function)(round(\(sql), 33))")
      (whole.isExact, whole.isLong) = (true, false)
      return whole
    }
    func unsigned(_ function: String) -> Expression {
      var whole = expression(
        "(SELECT sign(_s.n) * \(function)(abs(_s.n)) FROM (SELECT round(\(sql), 33) AS n) AS _s)")
      (whole.isExact, whole.isLong) = (true, false)
      return whole
    }
    switch name {
    case "ABS": return Expression(.number, "abs(\(sql))", of: [number])
    case "CEILING": return unsigned("ceil")
    case "FLOOR": return unsigned("floor")
    case "MCEILING": return whole("ceil")
    case "MFLOOR": return whole("floor")
    case "SQRT":
      return expression(
        "CASE WHEN \(sql) >= 0 THEN sqrt(round(\(sql), 40)) END", error: "\(sql) < 0")
    case "EXP":
      return expression(
        """
        CASE WHEN \(sql) BETWEEN -90 AND 90 THEN exp(round(\(sql), 40)) \
        WHEN \(sql) < -90 THEN 0 END
        """, error: "\(sql) > 90")
    default:
      let function = name == "LN" ? "ln" : "log"
      return expression(
        "CASE WHEN \(sql) > 0 THEN \(function)(round(\(sql), 40)) END", error: "\(sql) <= 0")
    }
  }

  private func rounded(
    _ arguments: [FormulaSyntax], _ name: String
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, name == "ROUND" ? 2...2 : 1...2, name)
    let number = try self.number(arguments[0], name)
    let places = arguments.count > 1 ? try self.number(arguments[1], name).wholeNumber : 0
    guard let places, (0...30).contains(places) else {
      throw FormulaRefusal("\(name) to digits that are not a constant from 0 to 30")
    }
    var expression = Expression(
      .number, "\(name.lowercased())(\(number.sql), \(places))", of: [number])
    (expression.isExact, expression.isLong) = (true, false)
    return expression
  }

  private func remainder(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, "MOD")
    let (number, divisor) = (
      try self.number(arguments[0], "MOD"), try self.number(arguments[1], "MOD")
    )
    guard let digits = divisor.constant, digits.contains(where: { ("1"..."9").contains($0) })
    else { throw FormulaRefusal("MOD by a value that is not a constant is not translated") }
    return Expression(.number, "mod(\(number.sql), \(divisor.sql))", of: [number, divisor])
  }

  private func extreme(
    _ arguments: [FormulaSyntax], _ name: String
  ) throws(FormulaRefusal) -> Expression {
    guard !arguments.isEmpty else { throw FormulaRefusal("\(name) has no arguments") }
    var numbers: [Expression] = []
    for argument in arguments { numbers.append(try self.number(argument, name)) }
    let list = numbers.map(\.sql)
    let isNullable = numbers.contains { $0.isNullable }
    let function = name == "MAX" ? "greatest" : "least"
    // If a number is empty, so is the result.
    let sql =
      isNullable
      ? """
      (SELECT CASE WHEN count(*) = count(_v.n) THEN \(name.lowercased())(_v.n) END \
      FROM (VALUES (\(list.joined(separator: "), (")))) AS _v (n))
      """ : "\(function)(\(list.joined(separator: ", ")))"
    return Expression(.number, sql, of: numbers)
  }
}
