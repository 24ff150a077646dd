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
    guard let statements = try self.statements(states, change, over: connection) else {
      return .foreign
    }
    guard !statements.isEmpty else { return .unchanged }
    try connection.execute("SAVEPOINT _etl_states")
    do {
      try connection.execute(
        (statements + ["RELEASE SAVEPOINT _etl_states"]).joined(separator: "; "))
      return change.fit == .none ? .created : .replaced
    } catch {
      // dependent_objects_still_exist
      guard error.sqlState == "2BP01" else { throw error }
      try connection.execute("ROLLBACK TO SAVEPOINT _etl_states; RELEASE SAVEPOINT _etl_states")
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
    return try self.statements(states, change, over: connection) ?? []
  }

  /// The view reads the function, so it is dropped before the function is. Nil if somebody else made one
  /// of the two.
  private func statements(
    _ states: RecordStates, _ change: ViewChange, over connection: PostgresConnection
  ) throws(PostgresError) -> [String]? {
    var update = FunctionChange.Update()
    for function in self.functions(states) {
      let part = try function.update(over: connection)
      guard !part.isOfAnother, !change.isOfAnother else { return nil }
      update.statements += part.statements
      update.dropsFunction = update.dropsFunction || part.dropsFunction
    }
    var make: [String] = []
    if !change.isDone || update.dropsFunction {
      make = [change.create] + change.note(hasJournal: true)
    }
    guard change.fit != .none, change.fit == .other || update.dropsFunction else {
      return update.statements + make
    }
    let own = try DependentView.attributes(
      on: self.bookkeeping.qualified(change.name), over: connection)
    return [change.drop] + update.statements + make + own
  }

  /// Nil if updates have only parts of some values.
  private func states(
    _ current: TableDefinition, _ history: TableDefinition, renames: [ColumnRename] = [],
    makesReads: Bool = false, over connection: PostgresConnection
  ) throws(PostgresError) -> RecordStates? {
    guard var states = RecordStates(current: current, history: history) else { return nil }
    states.visibilityWait = self.visibilityWait
    states.selectsChanges = self.selectsChanges
    states.notesRanges = try makesReads ? true : self.exists("_etl_missing_range", over: connection)
    let names = history.listedNames(
      try self.renames(of: history, renames, over: connection))
    for (listed, columns) in names {
      for column in columns { states.listedNames[column, default: [column]].append(listed) }
    }
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
