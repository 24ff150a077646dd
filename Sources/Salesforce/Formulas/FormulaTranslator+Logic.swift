extension FormulaTranslator {
  func not(_ syntax: FormulaSyntax) throws(FormulaRefusal) -> Expression {
    let condition = try self.boolean(syntax, "NOT")
    // Salesforce leaves such a condition blank, and its negation too; no page says so.
    guard !condition.isNullable, !condition.isUncertain else {
      throw FormulaRefusal("it has NOT of a condition on a value that can be empty")
    }
    return Expression(.boolean, "(NOT \(condition.sql))", of: [condition])
  }

  func and(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.junction(arguments, "AND", "")
  }

  func or(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.junction(arguments, "OR", "NOT ")
  }

  /// An error counts only if the conditions before it leave the result open.
  ///
  /// - Parameter prefix: SQL before a condition that leaves the result open.
  private func junction(
    _ arguments: [FormulaSyntax], _ word: String, _ prefix: String
  ) throws(FormulaRefusal) -> Expression {
    guard !arguments.isEmpty else { throw FormulaRefusal("\(word) has no arguments") }
    var parts: [Expression] = []
    for argument in arguments { parts.append(try self.boolean(argument, word)) }
    var expression = Expression(
      .boolean, "(\(parts.map(\.condition).joined(separator: " \(word) ")))", of: parts)
    expression.isNullable = false
    expression.isUncertain = parts.contains { $0.isUncertain || $0.isNullable }
    var error: String?
    for part in parts.reversed() {
      let later = error.map { "(\(prefix)\(part.condition) AND \($0))" }
      error = Expression.any([part.error, later])
    }
    expression.error = error
    return expression
  }

  func choice(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 3...3, "IF")
    let condition = try self.boolean(arguments[0], "IF")
    let values = try self.alike(
      [try self.translate(arguments[1]), try self.translate(arguments[2])], "IF")
    guard let one = values.first, let other = values.last, one.kind != .null else { return .null }
    var expression = Expression(
      one.kind, "CASE WHEN \(condition.sql) THEN \(one.sql) ELSE \(other.sql) END", of: values)
    expression.isUncertain = values.contains { $0.isUncertain }
    expression.isOfMoment = expression.isOfMoment || condition.isOfMoment
    // Only the value that is chosen counts.
    expression.error = Expression.any([
      condition.error, one.error.map { "(\(condition.condition) AND \($0))" },
      other.error.map { "(NOT \(condition.condition) AND \($0))" },
    ])
    return expression
  }

  func cases(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    guard arguments.count >= 4, arguments.count.isMultiple(of: 2) else {
      throw FormulaRefusal("CASE has \(arguments.count) arguments")
    }
    let subject = try self.translate(arguments[0])
    if subject.hasOtherLabels { throw FormulaRefusal(Self.otherLabels) }
    var (keys, results): ([Expression], [Expression]) = ([], [])
    for place in stride(from: 1, to: arguments.count - 1, by: 2) {
      let key = try self.translate(arguments[place])
      let isFit =
        subject.kind == .picklist
        ? key.constant != nil && key.kind == .text : key.kind == subject.kind
      guard isFit, ![.boolean, .null, .multiPicklist].contains(key.kind) else {
        throw FormulaRefusal("the values of CASE have different types")
      }
      keys.append(key)
      results.append(try self.translate(arguments[place + 1]))
    }
    results.append(try self.translate(arguments[arguments.count - 1]))
    results = try self.alike(results, "CASE")
    guard let last = results.last, last.kind != .null, last.kind != .boolean else {
      throw FormulaRefusal("CASE without values, or with conditions, is not translated")
    }
    guard results.allSatisfy({ $0.error == nil }), keys.allSatisfy({ $0.error == nil }) else {
      throw FormulaRefusal("it has CASE with a value that can be an error")
    }
    let branches = zip(keys, results).map { "WHEN \($0.sql) THEN \($1.sql)" }
    var expression = Expression(
      last.kind, "CASE \(subject.sql) \(branches.joined(separator: " ")) ELSE \(last.sql) END",
      of: results)
    expression.error = subject.error
    expression.isOfMoment = (results + keys + [subject]).contains { $0.isOfMoment }
    return expression
  }

  // MARK: Blank values

  func isBlank(_ arguments: [FormulaSyntax], _ name: String) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 1...1, name)
    let value = try self.translate(arguments[0])
    let sql: String
    switch value.kind {
    // A text is never null.
    case .text: sql = name == "ISNULL" ? "false" : "(\(value.sql) = '')"
    case .picklist where name == "ISBLANK": sql = "(\(value.sql) = '')"
    case .multiPicklist: sql = "(coalesce(cardinality(\(value.sql)), 0) = 0)"
    case .number, .date, .dateTime, .time:
      sql = value.isNullable ? "(\(value.sql) IS NULL)" : "false"
    case .boolean, .picklist, .null:
      throw FormulaRefusal("\(name) of a \(value.kind.rawValue) is not translated")
    }
    var expression = Expression(.boolean, sql, of: [value])
    expression.isNullable = false
    return expression
  }

  func replacement(
    _ arguments: [FormulaSyntax], _ name: String
  ) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, name)
    let values = try self.alike(
      [try self.translate(arguments[0]), try self.translate(arguments[1])], name)
    guard let one = values.first, let other = values.last, one.kind != .boolean,
      one.kind != .null
    else { throw FormulaRefusal("\(name) of a condition is not translated") }
    guard one.kind != .text else {
      if name == "NULLVALUE" { return Expression(.text, one.sql, of: values) }
      return Expression(.text, "coalesce(NULLIF(\(one.sql), ''), \(other.sql))", of: values)
    }
    guard one.isNullable else { return one }
    var expression = Expression(one.kind, "coalesce(\(one.sql), \(other.sql))", of: values)
    expression.isNullable = other.isNullable
    return expression
  }

  // MARK: Picklists

  static let otherLabels =
    "it uses a picklist whose labels differ from its values, so that the result depends on the "
    + "language"

  func isChoice(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, "ISPICKVAL")
    let field = try self.expression(arguments[0], .picklist, "ISPICKVAL")
    let value = try self.text(arguments[1], "ISPICKVAL")
    guard value.constant != nil else { throw FormulaRefusal("ISPICKVAL has no constant text") }
    if field.hasOtherLabels { throw FormulaRefusal(Self.otherLabels) }
    return Expression(.boolean, "(\(field.sql) = \(value.sql))", of: [field])
  }

  func includes(_ arguments: [FormulaSyntax]) throws(FormulaRefusal) -> Expression {
    try self.count(arguments, 2...2, "INCLUDES")
    let field = try self.expression(arguments[0], .multiPicklist, "INCLUDES")
    let value = try self.text(arguments[1], "INCLUDES")
    guard let constant = value.constant, constant.contains(where: { $0 != " " }) else {
      throw FormulaRefusal("INCLUDES has no constant text")
    }
    if field.hasOtherLabels { throw FormulaRefusal(Self.otherLabels) }
    var expression = Expression(
      .boolean, "coalesce(\(value.sql) = ANY (\(field.sql)), false)", of: [field])
    expression.isNullable = false
    return expression
  }
}
