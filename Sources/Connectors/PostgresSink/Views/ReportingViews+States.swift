package import PostgresClient

/// Records as they were: the view `<table>_versions` and the function `<table>_at`.
extension ReportingViews {
  /// Updates both in the open transaction. They are kept if their columns change and other views depend
  /// on them.
  package func updateStates(
    of current: TableDefinition, history: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    guard let states = try self.states(current, history, over: connection) else {
      return .unchanged
    }
    let change = try self.versions(states, over: connection)
    guard let update = try self.update(states, change, over: connection) else { return .foreign }
    guard !update.statements.isEmpty else { return .unchanged }
    try connection.execute("SAVEPOINT _etl_states")
    do {
      try connection.execute(
        (update.statements + ["RELEASE SAVEPOINT _etl_states"]).joined(separator: "; "))
      return change.fit == .none ? .created : .replaced
    } catch {
      // dependent_objects_still_exist
      guard error.sqlState == "2BP01" else { throw error }
      let end = ["ROLLBACK TO SAVEPOINT _etl_states", "RELEASE SAVEPOINT _etl_states"]
      try connection.execute((end + update.keeping).joined(separator: "; "))
      return .kept
    }
  }

  /// The statements that would update both.
  func stateStatements(
    of current: TableDefinition, history: TableDefinition, renames: [ColumnRename],
    makesReads: Bool, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    guard
      let states = try self.states(
        current, history, renames: renames, makesReads: makesReads, over: connection)
    else { return [] }
    let change = try self.versions(states, over: connection)
    return try self.update(states, change, over: connection)?.statements ?? []
  }

  /// Why view and function are not up to date although nothing but other views prevents it; nil if they
  /// can be updated.
  func stateConflict(
    of current: TableDefinition, history: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> String? {
    guard let states = try self.states(current, history, over: connection) else { return nil }
    let change = try self.versions(states, over: connection)
    let update = try self.update(states, change, over: connection)
    guard update?.dropsFunction == true else { return nil }
    let found = try connection.query(
      """
      SELECT DISTINCT format('%I.%I', n.nspname, v.relname) FROM pg_catalog.pg_depend AS d \
      JOIN pg_catalog.pg_rewrite AS r ON d.classid = 'pg_catalog.pg_rewrite'::regclass \
      AND r.oid = d.objid JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class \
      JOIN pg_catalog.pg_namespace AS n ON n.oid = v.relnamespace \
      WHERE v.oid IS DISTINCT FROM to_regclass($1) AND (\
      d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = to_regclass($1) \
      OR d.refclassid = 'pg_catalog.pg_proc'::regclass AND d.refobjid IN (SELECT p.oid \
      FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS m ON m.oid = p.pronamespace \
      WHERE p.proname = $2 AND m.nspname = $3)) ORDER BY 1
      """,
      [
        self.bookkeeping.qualified(change.name), Self.atName(current.name), self.bookkeeping.schema,
      ])
    let others = (0..<found.rowCount).compactMap { found[$0, 0] }
    guard !others.isEmpty else { return nil }
    return "postgres: view \(self.bookkeeping.qualified(change.name)) and the function "
      + "\(SQLIdentifier.quoted(Self.atName(current.name))) "
      + "cannot get the columns of their table, because other views depend on them: "
      + "\(others.joined(separator: ", ")). Drop these, and create them again "
      + "after the next run that brings changes"
  }

  /// The view reads the function, so it is dropped before the function is. Nil if somebody else made one
  /// of the two.
  private func update(
    _ states: RecordStates, _ change: ViewChange, over connection: PostgresConnection
  ) throws(PostgresError) -> FunctionChange.Update? {
    var update = FunctionChange.Update()
    for function in self.functions(states) {
      let part = try function.update(over: connection)
      guard !part.isOfAnother, !change.isOfAnother else { return nil }
      update.statements += part.statements
      update.dropsFunction = update.dropsFunction || part.dropsFunction
      update.keeping += part.keeping
    }
    var make: [String] = []
    if !change.isDone || update.dropsFunction {
      make = [change.create] + change.note(hasJournal: true)
    }
    guard change.fit != .none, change.fit == .other || update.dropsFunction else {
      update.statements += make
      return update
    }
    let own = try DependentView.attributes(
      on: self.bookkeeping.qualified(change.name), over: connection)
    update.statements = [change.drop] + update.statements + make + own
    return update
  }

  /// Nil if updates have only parts of some values.
  private func states(
    _ current: TableDefinition, _ history: TableDefinition, renames: [ColumnRename] = [],
    makesReads: Bool = false, over connection: PostgresConnection
  ) throws(PostgresError) -> RecordStates? {
    guard var states = RecordStates(current: current, history: history) else { return nil }
    states.visibilityWait = self.visibilityWait
    states.selectsChanges = self.selectsChanges
    states.hasRefreshes = self.refreshed.contains(current.entity)
    states.notesRanges = try makesReads ? true : self.exists("_etl_missing_range", over: connection)
    states.names = try self.names(of: history, renames, over: connection)
    return states
  }

  func versions(
    of current: TableDefinition, history: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange? {
    guard let states = try self.states(current, history, over: connection) else { return nil }
    return try self.versions(states, over: connection)
  }

  private func versions(
    _ states: RecordStates, over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange {
    let name = Self.versionsName(states.current.name)
    let state = try ViewState(name, self.bookkeeping, over: connection)
    let function = self.bookkeeping.qualified(Self.atName(states.current.name))
    return ViewChange(
      name: name, query: states.versions(by: function), state: state,
      fit: ViewChange.Fit(state.columns, states.versionColumns), bookkeeping: self.bookkeeping)
  }

  /// The function for all records at a moment, and the one for a single record.
  private func functions(_ states: RecordStates) -> [FunctionChange] {
    [
      ([("_moment", .timestamptz)], states.functionBody),
      ([("_moment", .timestamptz), ("_record", .text)], states.recordBody),
    ].map { parameters, body in
      FunctionChange(
        name: Self.atName(states.current.name), parameters: parameters,
        columns: states.stateColumns, body: body, bookkeeping: self.bookkeeping)
    }
  }

  /// SQL name, not quoted, of the function of records as they were.
  private static func atName(_ table: String) -> String { SQLIdentifier.shortened("\(table)_at") }

  /// SQL name, not quoted, of the view of all states of a current table's records.
  package static func versionsName(_ table: String) -> String {
    SQLIdentifier.shortened("\(table)_versions")
  }
}
