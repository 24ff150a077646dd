internal import Formulas
internal import JSON
package import PostgresClient

/// The views `<table>_formulas`: the values of formulas, computed from the copy.
extension ReportingViews {
  /// SQL name, not quoted, of the view of a current table's formulas.
  package static func formulasName(_ table: String) -> String {
    SQLIdentifier.shortened("\(table)_formulas")
  }

  /// Updates the view of formulas in the open transaction, and notes in `_fields` which formulas it
  /// has. A view of that name that somebody else made is kept.
  package func updateFormulas(
    of table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    let name = Self.formulasName(table.name)
    let state = try ViewState(name, self.bookkeeping, over: connection)
    guard var view = try self.formulas(of: table, state, over: connection) else {
      return .unchanged
    }
    func change() -> ViewChange { self.change(name, view, state) }
    func refuseAll(_ reason: String) throws(PostgresError) {
      for column in view.columns { view.refuse(column, reason) }
      try self.note(view, of: table.entity, over: connection)
    }
    let rights = try self.rights(to: name, over: connection)
    guard !change().isOfAnother, rights.isView else {
      try refuseAll("somebody made another \(name)")
      return .foreign
    }
    guard change().isDone || rights.mayMake else {
      try refuseAll("the role may not create view \(name)")
      return .unchanged
    }
    var outcome = Outcome.unchanged
    if !change().isDone {
      try self.leaveOutFailing(&view, over: connection)
      let wasMade = try self.wasMade(name, over: connection)
      outcome = try self.update(change(), over: connection)
      if outcome == .created, wasMade { outcome = .restored }
    }
    if outcome != .kept {
      try self.note(view, of: table.entity, over: connection)
      try self.comment(on: name, view, over: connection)
    }
    return outcome
  }

  /// The statements that would update the view of formulas, for the formulas that `_fields` has.
  func formulaStatements(
    of table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let name = Self.formulasName(table.name)
    let state = try ViewState(name, self.bookkeeping, over: connection)
    guard var view = try self.formulas(of: table, state, over: connection),
      !self.change(name, view, state).mayBeDone,
      try self.rights(to: name, over: connection).isView
    else { return [] }
    try self.leaveOutFailing(&view, over: connection)
    let change = self.change(name, view, state)
    return change.isOfAnother ? [] : try self.statements(change, over: connection)
  }

  private func change(_ name: String, _ view: FormulasView, _ state: ViewState) -> ViewChange {
    ViewChange(
      name: name, query: view.query, state: state,
      fit: ViewChange.Fit(state.columns, view.viewColumns), bookkeeping: self.bookkeeping)
  }

  /// Whether the journal says that this program has made a view of that name.
  private func wasMade(
    _ name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    try connection.query(
      """
      SELECT EXISTS (SELECT FROM \(self.bookkeeping.qualified("_etl_journal")) \
      WHERE table_name = $1 AND action = $2)
      """, [name, ViewState.action])[0, 0] == "t"
  }

  /// Whether what has the name is a view, if there is anything, and whether the role may replace it.
  private func rights(
    to name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> (isView: Bool, mayMake: Bool) {
    let found = try connection.query(
      """
      SELECT coalesce(c.relkind = 'v', true), \
      coalesce(pg_has_role(c.relowner, 'USAGE'), has_schema_privilege($2, 'CREATE')) \
      FROM (SELECT to_regclass($1)) AS n (oid) LEFT JOIN pg_catalog.pg_class AS c ON c.oid = n.oid
      """, [self.bookkeeping.qualified(name), self.bookkeeping.schema])
    return (found[0, 0] == "t", found[0, 1] == "t")
  }

  /// The view of an object with formulas, or of one that had some; nil for another object.
  private func formulas(
    of table: TableDefinition, _ state: ViewState, over connection: PostgresConnection
  ) throws(PostgresError) -> FormulasView? {
    let found = try connection.query(
      """
      SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) \
      AND attname = 'formula_state' AND NOT attisdropped AND has_table_privilege(attrelid, 'UPDATE')), \
      EXISTS (SELECT FROM pg_catalog.pg_collation WHERE collname = $2 \
      AND collnamespace = 'pg_catalog'::regnamespace AND collencoding IN (-1, \
      (SELECT encoding FROM pg_catalog.pg_database WHERE datname = current_database())))
      """, [self.bookkeeping.qualified(FieldTables.fields), Self.collation])
    guard found[0, 0] == "t" else { return nil }
    var sources = FormulaSources(self.bookkeeping)
    try sources.read(table.entity, over: connection)
    while let object = sources.objects[table.entity] ?? nil {
      guard !state.columns.isEmpty || object.fields.values.contains(where: { $0.formula != nil })
      else {
        return nil
      }
      let scope = FormulaScope(table.entity, sources, self.bookkeeping)
      var view = FormulasView(
        object, scope, style: self.style,
        collation: found[0, 1] == "t" ? Self.collation : nil, self.bookkeeping)
      guard !scope.missing.isEmpty else {
        view.existing = state.columns.filter { $0.name != FormulasView.key.name }
        return view
      }
      for entity in scope.missing.sorted() { try sources.read(entity, over: connection) }
    }
    return nil
  }

  /// Knows the letters of all languages. Servers built without ICU lack it.
  private static let collation = "und-x-icu"

  /// One formula that the server does not take must not cost the others.
  private func leaveOutFailing(
    _ view: inout FormulasView, over connection: PostgresConnection
  ) throws(PostgresError) {
    func failure(_ query: String) throws(PostgresError) -> PostgresError? {
      try connection.execute("SAVEPOINT _etl_formula")
      do {
        try connection.execute("SELECT FROM (\(query) LIMIT 0) AS q")
        try connection.execute("RELEASE SAVEPOINT _etl_formula")
        return nil
      } catch {
        guard Self.isOfExpression(error), connection.transactionStatus == .failed else {
          throw error
        }
        try connection.execute(
          "ROLLBACK TO SAVEPOINT _etl_formula; RELEASE SAVEPOINT _etl_formula")
        return error
      }
    }
    guard try failure(view.query) != nil else { return }
    for column in view.columns {
      guard let error = try failure(view.query(of: column)) else { continue }
      view.refuse(column, "the server refuses its SQL (\(error.sqlState ?? ""))")
    }
  }

  /// Data exceptions, errors of syntax and types, limits, and what is not supported.
  private static func isOfExpression(_ error: PostgresError) -> Bool {
    guard let state = error.sqlState, state != SQLState.insufficientPrivilege else { return false }
    return ["0A", "22", "42", "54"].contains { state.hasPrefix($0) }
  }

  private func note(
    _ view: FormulasView, of entity: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    let states =
      view.columns.map { column in
        JSONValue(
          field: column.field,
          state: column.isOfMoment ? Self.translatedOfMoment : Self.translated)
      }
      + view.refused.map { JSONValue(field: $0.key, state: Self.refused + $0.value) }
    try connection.query(
      """
      UPDATE \(self.bookkeeping.qualified(FieldTables.fields)) AS f SET formula_state = n.state \
      FROM jsonb_to_recordset($2::jsonb) AS n (field text, state text) \
      WHERE f.entity = $1 AND f.field = n.field AND f.formula_state IS DISTINCT FROM n.state
      """, [entity, JSONValue.array(states).text()])
  }

  private func comment(
    on name: String, _ view: FormulasView, over connection: PostgresConnection
  ) throws(PostgresError) {
    let qualified = self.bookkeeping.qualified(name)
    let comment = try connection.query(
      "SELECT obj_description(to_regclass($1), 'pg_class') IS NOT DISTINCT FROM $2",
      [qualified, view.comment])
    guard comment[0, 0] != "t" else { return }
    try connection.execute(
      "COMMENT ON VIEW \(qualified) IS \(SQLIdentifier.literal(view.comment))")
  }

  // Values of `_fields.formula_state`.
  static let translated = "translated"
  static let translatedOfMoment = "translated; changes with time"
  static let refused = "not translated: "
}

extension JSONValue {
  fileprivate init(field: String, state: String) {
    self = ["field": .string(field), "state": .string(state)]
  }
}
