internal import PostgresClient

extension FormulaTranslator {
  func textFunction(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    switch name {
    case "LEFT", "RIGHT": return try self.end(name, arguments)
    case "MID": return try self.middle(arguments)
    case "LEN": return try self.length(arguments)
    case "FIND": return try self.position(arguments)
    case "SUBSTITUTE": return try self.substitution(arguments)
    case "TRIM":
      try self.count(arguments, 1...1, name)
      let text = try self.text(arguments[0], name)
      return Expression(.text, "btrim(\(text.sql))", of: [text])
    case "UPPER", "LOWER": return try self.cased(name, arguments)
    case "LPAD", "RPAD": return try self.padded(name, arguments)
    case "CONTAINS", "BEGINS": return try self.containment(name, arguments)
    case "TEXT": return try self.asText(arguments)
    case "VALUE", "ISNUMBER": return try self.asNumber(name, arguments)
    case "CASESAFEID":
      try self.count(arguments, 1...1, name)
      let id = try self.text(arguments[0], name)
      guard let whole = id.wholeID else {
        throw FormulaRefusal("CASESAFEID of a text is not translated")
      }
      return Expression(.text, whole, of: [id])
    default: throw FormulaRefusal("function \(name.prefix(40)) is not translated")
    }
  }

  // MARK: Parts

  /// SQL: a number as `integer`, without its decimal places; text functions count no further than
  /// the longest text.
  private func integer(_ number: Expression) -> String {
    if let whole = number.wholeNumber, (0...1_000_000).contains(whole) { return "\(whole)" }
    return "least(greatest(trunc(\(number.sql)), 0), 1000000)::integer"
  }

  private func end(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, name)
    let (text, count) = (try self.text(arguments[0], name), try self.number(arguments[1], name))
    return self.texts(
      "\(name.lowercased())(\(text.sql), \(self.integer(count)))", of: [text], count)
  }

  private func middle(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 3...3, "MID")
    let text = try self.text(arguments[0], "MID")
    let (start, count) = (
      try self.number(arguments[1], "MID"), try self.number(arguments[2], "MID")
    )
    let sql =
      "substr(\(text.sql), greatest(\(self.integer(start)), 1), \(self.integer(count)))"
    return self.texts(sql, of: [text, start], count)
  }

  /// A text for whose making a number is missing is blank. The least and the greatest of a null and
  /// a number is the number, so that the null has to be looked for.
  private func texts(
    _ sql: String, of parts: [Expression], _ count: Expression
  ) -> Expression {
    let all = parts + [count]
    let missing = all.filter { $0.kind == .number && $0.isNullable }.map { "\($0.sql) IS NULL" }
    let sql =
      missing.isEmpty
      ? sql : "CASE WHEN \(missing.joined(separator: " OR ")) THEN '' ELSE \(sql) END"
    var expression = Expression(.text, sql, of: all)
    expression.isNullable = false
    return expression
  }

  private func length(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, "LEN")
    let text = try self.text(arguments[0], "LEN")
    return Expression(.number, "char_length(\(text.sql))::numeric", of: [text])
  }

  private func position(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...3, "FIND")
    let (part, text) = (
      try self.text(arguments[0], "FIND"), try self.text(arguments[1], "FIND")
    )
    guard part.constant?.isEmpty == false else {
      throw FormulaRefusal("FIND of a text that can be empty is not translated")
    }
    guard arguments.count > 2 else {
      return Expression(.number, "strpos(\(text.sql), \(part.sql))::numeric", of: [part, text])
    }
    let start = try self.number(arguments[2], "FIND")
    guard !start.isNullable else {
      throw FormulaRefusal("FIND from a place that can be empty is not translated")
    }
    let sql = """
      (SELECT CASE WHEN _s.p > 0 THEN _s.p + _s.n - 1 ELSE 0 END::numeric FROM (SELECT _t.n, \
      strpos(substr(_t.t, _t.n), \(part.sql)) AS p FROM (SELECT \(text.sql) AS t, \
      greatest(\(self.integer(start)), 1) AS n) AS _t) AS _s)
      """
    return Expression(.number, sql, of: [part, text, start])
  }

  private func substitution(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 3...3, "SUBSTITUTE")
    var texts: [Expression] = []
    for argument in arguments { texts.append(try self.text(argument, "SUBSTITUTE")) }
    guard texts[1].constant?.isEmpty == false else {
      throw FormulaRefusal("SUBSTITUTE of a text that can be empty is not translated")
    }
    return Expression(
      .text, "replace(\(texts.map(\.sql).joined(separator: ", ")))", of: texts)
  }

  private func cased(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...2, name)
    let text = try self.text(arguments[0], name)
    guard arguments.count == 1 else {
      throw FormulaRefusal("\(name) for a language is not translated")
    }
    guard let collation else {
      throw FormulaRefusal("the server has no collation for \(name)")
    }
    let sql =
      "(\(name.lowercased())(\(text.sql) COLLATE \(SQLIdentifier.quoted(collation))) "
      + "COLLATE \"default\")"
    return Expression(.text, sql, of: [text])
  }

  private func padded(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...3, name)
    let (text, count) = (try self.text(arguments[0], name), try self.number(arguments[1], name))
    let pad = arguments.count > 2 ? try self.text(arguments[2], name) : .text(" ")
    guard pad.constant?.isEmpty == false else {
      throw FormulaRefusal("\(name) with a text that can be empty is not translated")
    }
    let length = "least(\(self.integer(count)), 10000)"
    return self.texts(
      "coalesce(\(name.lowercased())(NULLIF(\(text.sql), ''), \(length), \(pad.sql)), '')",
      of: [text, pad], count)
  }

  private func containment(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, name)
    let (text, part) = (try self.text(arguments[0], name), try self.text(arguments[1], name))
    let sql =
      name == "CONTAINS"
      ? "(strpos(\(text.sql), \(part.sql)) > 0)" : "starts_with(\(text.sql), \(part.sql))"
    var expression = Expression(.boolean, sql, of: [text, part])
    expression.isUncertain = text.constant?.isEmpty != false
    return expression
  }

  // MARK: Conversions

  private func asText(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, "TEXT")
    let value = try self.translate(arguments[0])
    func blank(_ sql: String) -> Expression {
      var expression = Expression(
        .text, value.isNullable ? "coalesce(\(sql), '')" : sql, of: [value])
      expression.isNullable = false
      return expression
    }
    switch value.kind {
    case .number:
      guard value.isExact else {
        throw FormulaRefusal("TEXT of a number with endless digits is not translated; ROUND it")
      }
      let digits = SQLIdentifier.literal("([.][0-9]*[1-9])0+$")
      return blank(
        """
        regexp_replace(regexp_replace((\(value.sql))::text, \(digits), \
        \(SQLIdentifier.literal("\\1"))), '[.]0+$', '')
        """)
    case .date: return blank("to_char(\(value.sql), 'YYYY-MM-DD')")
    case .dateTime:
      return blank(
        "to_char(\(value.sql) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"')")
    case .time: return blank("to_char(\(value.sql), 'HH24:MI:SS.MS')")
    case .picklist:
      if value.hasOtherLabels { throw FormulaRefusal(Self.otherLabels) }
      return Expression(.text, value.sql, of: [value])
    case .null: return .text("")
    case .text, .boolean, .multiPicklist:
      throw FormulaRefusal("TEXT of a \(value.kind.rawValue) is not translated")
    }
  }

  private func asNumber(
    _ name: String, _ arguments: [FormulaSyntax]
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, name)
    let text = try self.text(arguments[0], name)
    let isNumber =
      "\(text.sql) ~ '^[+-]?([0-9]{1,40}[.]?[0-9]{0,40}|[.][0-9]{1,40})([Ee][+-]?[0-9]{1,2})?$'"
    guard name == "VALUE" else { return Expression(.boolean, "(\(isNumber))", of: [text]) }
    var expression = Expression(
      .number, "CASE WHEN \(isNumber) THEN (\(text.sql))::numeric END", of: [text],
      error: "(\(text.sql) <> '' AND NOT \(isNumber))")
    expression.isNullable = true
    return expression
  }
}
