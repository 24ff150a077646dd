extension FormulaTranslator {
  func time(_ name: String, _ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    switch name {
    case "TODAY", "NOW":
      try self.count(arguments, 0...0, name)
      var expression =
        name == "NOW"
        ? Expression(.dateTime, "now()") : Expression(.date, "(now() AT TIME ZONE 'UTC')::date")
      expression.isOfMoment = true
      return expression
    case "DATE": return try self.date(arguments)
    case "DATEVALUE": return try self.dateValue(arguments)
    case "DATETIMEVALUE": return try self.dateTimeValue(arguments)
    case "TIMEVALUE": return try self.timeValue(arguments)
    case "ADDMONTHS": return try self.laterMonth(arguments)
    case "HOUR", "MINUTE", "SECOND", "MILLISECOND":
      return try self.part(name, of: .time, arguments)
    default: return try self.part(name, of: .date, arguments)
    }
  }

  private func part(
    _ name: String, of kind: Kind, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, name)
    let time = try self.expression(arguments[0], kind, name)
    func extract(_ part: String) -> String { "extract(\(part) FROM \(time.sql))::numeric" }
    let sql =
      switch name {
      case "WEEKDAY": "(\(extract("dow")) + 1)"
      case "DAYOFYEAR": extract("doy")
      case "ISOWEEK": extract("week")
      case "ISOYEAR": extract("isoyear")
      case "SECOND": "trunc(\(extract("second")))"
      case "MILLISECOND": "mod(trunc(\(extract("milliseconds"))), 1000)"
      default: extract(name.lowercased())
      }
    return Expression(.number, sql, of: [time])
  }

  // MARK: Dates

  private func date(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 3...3, "DATE")
    var parts: [Expression] = []
    for argument in arguments { parts.append(try self.number(argument, "DATE")) }
    let sql = Self.date(year: parts[0].sql, month: parts[1].sql, day: parts[2].sql)
    let given = parts.filter(\.isNullable).map { "\($0.sql) IS NOT NULL" } + ["\(sql) IS NULL"]
    let error = "(\(given.joined(separator: " AND ")))"
    var expression = Expression(.date, sql, of: parts, error: error)
    expression.isNullable = true
    return expression
  }

  /// SQL: the date; null if there is none.
  private static func date(year: String, month: String, day: String) -> String {
    """
    (SELECT CASE WHEN _s.y >= 1 AND _s.y < 10000 AND _s.m >= 1 AND _s.m < 13 AND _s.d >= 1 \
    AND _s.d < 32 THEN CASE WHEN trunc(_s.d) <= extract(day FROM make_date(trunc(_s.y)::integer, \
    trunc(_s.m)::integer, 1) + interval '1 month - 1 day') THEN make_date(trunc(_s.y)::integer, \
    trunc(_s.m)::integer, trunc(_s.d)::integer) END END \
    FROM (SELECT \(year) AS y, \(month) AS m, \(day) AS d) AS _s)
    """
  }

  private static let datePattern = "[0-9]{4}-(0?[1-9]|1[012])-(0?[1-9]|[12][0-9]|3[01])"

  /// SQL: the date at the beginning of a text, which begins with one.
  private static func date(in text: String) -> String {
    func part(_ place: Int) -> String { "split_part(\(text), '-', \(place))::numeric" }
    return Self.date(year: part(1), month: part(2), day: part(3))
  }

  /// A blank text gives null; a text that is not a date is an error.
  private func parsed(
    _ kind: Kind, _ text: Expression, _ pattern: String, _ value: (String) -> String
  ) -> Expression {
    let sql = """
      (SELECT CASE WHEN _t.t ~ '^\(pattern)$' THEN \(value("_t.t")) END \
      FROM (SELECT \(text.sql) AS t) AS _t)
      """
    var expression = Expression(
      kind, sql, of: [text], error: "(\(text.sql) <> '' AND \(sql) IS NULL)")
    expression.isNullable = true
    return expression
  }

  private func dateValue(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, "DATEVALUE")
    let value = try self.translate(arguments[0])
    switch value.kind {
    case .dateTime:
      return Expression(.date, "(\(value.sql) AT TIME ZONE 'UTC')::date", of: [value])
    case .text:
      return self.parsed(.date, value, Self.datePattern) { Self.date(in: $0) }
    default:
      throw FormulaRefusal("DATEVALUE of a \(value.kind.rawValue) is not translated")
    }
  }

  private func dateTimeValue(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, "DATETIMEVALUE")
    let value = try self.translate(arguments[0])
    switch value.kind {
    case .dateTime: return value
    case .date:
      return Expression(
        .dateTime, "(\(value.sql)::timestamp AT TIME ZONE 'UTC')", of: [value])
    case .text:
      let time = "([01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9]"
      return self.parsed(.dateTime, value, "\(Self.datePattern) \(time)") { text in
        let date = Self.date(in: "split_part(\(text), ' ', 1)")
        return "((\(date) + split_part(\(text), ' ', 2)::time) AT TIME ZONE 'UTC')"
      }
    default:
      throw FormulaRefusal("DATETIMEVALUE of a \(value.kind.rawValue) is not translated")
    }
  }

  private func timeValue(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, "TIMEVALUE")
    let value = try self.translate(arguments[0])
    switch value.kind {
    case .time: return value
    case .text:
      let pattern = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}"
      return self.parsed(.time, value, pattern) { "\($0)::time" }
    default:
      // Pages contradict each other about the time zone.
      throw FormulaRefusal("TIMEVALUE of a \(value.kind.rawValue) is not translated")
    }
  }

  /// The last day of a month gives the last day.
  private func laterMonth(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, "ADDMONTHS")
    let date = try self.expression(arguments[0], .date, "ADDMONTHS")
    let months = try self.number(arguments[1], "ADDMONTHS")
    let sql = """
      (SELECT CASE WHEN _t.n BETWEEN 12 AND 119999 THEN CASE WHEN _t.d + 1 = \
      (date_trunc('month', _t.d + 1))::date \
      THEN (DATE '0001-01-01' + make_interval(months => _t.n::integer - 11) - interval '1 day')::date \
      ELSE (_t.d + make_interval(months => _t.m::integer))::date END END \
      FROM (SELECT _s.d, _s.m, extract(year FROM _s.d)::numeric * 12 \
      + extract(month FROM _s.d)::numeric - 1 + _s.m AS n \
      FROM (SELECT \(date.sql) AS d, trunc(\(months.sql)) AS m) AS _s) AS _t)
      """
    var expression = Expression(.date, sql, of: [date, months])
    expression.isNullable = true
    return expression
  }
}
