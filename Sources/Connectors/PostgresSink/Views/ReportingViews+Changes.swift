internal import Pipeline
package import PostgresClient

/// The views `<table>_changes`: who changed which field from what to what.
extension ReportingViews {
  /// Updates the view of changes in the open transaction. A view of that name that somebody else made
  /// is kept.
  package func updateChanges(
    of current: TableDefinition, history: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    let change = try self.changes(of: current, history: history, over: connection)
    return change.isOfAnother ? .foreign : try self.update(change, over: connection)
  }

  /// - Parameters:
  ///   - renames: columns of the history that the plan will have renamed, in order.
  ///   - users: the table of users that the plan will have created.
  func changes(
    of current: TableDefinition, history: TableDefinition, renames: [ColumnRename] = [],
    users: ChangesView.Users? = nil, over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange {
    let name = Self.changesName(current.name)
    var view = ChangesView(history)
    view.names = try self.names(of: history, renames, over: connection)
    view.visibilityWait = self.visibilityWait
    view.selectsChanges = self.selectsChanges
    view.hasRefreshes = self.refreshed.contains(history.entity)
    view.users = users
    if users == nil { view.users = try self.users(over: connection) }
    view.fieldHistory = try self.fieldHistory(of: current.entity, over: connection)
    let state = try ViewState(name, self.bookkeeping, over: connection)
    return ViewChange(
      name: name, query: view.query, state: state,
      fit: ViewChange.Fit(state.columns, ChangesView.columns), bookkeeping: self.bookkeeping)
  }

  /// SQL name, not quoted, of the view of changes to the records of a current table.
  package static func changesName(_ table: String) -> String {
    SQLIdentifier.shortened("\(table)_changes")
  }

  /// The names in a history's lists, after the renamings of a plan.
  func names(
    of history: TableDefinition, _ planned: [ColumnRename], over connection: PostgresConnection
  ) throws(PostgresError) -> ListedNames {
    guard try self.exists("_etl_journal", over: connection) else { return ListedNames() }
    return ListedNames(
      history.dataColumns,
      try EarlierColumnNames(history, planned: planned, over: connection))
  }

  /// The table of users, if the schema has one with names.
  private func users(
    over connection: PostgresConnection
  ) throws(PostgresError) -> ChangesView.Users? {
    guard try self.exists("_etl_column", over: connection),
      try self.exists("_etl_table", over: connection)
    else { return nil }
    let found = try connection.query(
      """
      SELECT t.table_name, c.column_name FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
      JOIN \(self.bookkeeping.qualified("_etl_column")) AS c ON c.table_name = t.table_name \
      WHERE t.kind = 'current' AND t.entity = 'User' AND c.path = ANY ($1::text[]) \
      AND to_regclass(quote_ident($2) || '.' || quote_ident(t.table_name)) IS NOT NULL \
      ORDER BY t.table_name, array_position($1::text[], c.path), c.ordinal
      """, [SQLArray.literal(ChangesView.Users.paths), self.bookkeeping.schema])
    let rows = 0..<found.rowCount
    guard let first = rows.first, let table = found[first, 0] else { return nil }
    return ChangesView.Users(
      table: table, nameColumns: rows.filter { found[$0, 0] == table }.compactMap { found[$0, 1] })
  }

  /// The table of the field history of an object; nil if none has all columns that the view needs.
  private func fieldHistory(
    of object: String, over connection: PostgresConnection
  ) throws(PostgresError) -> FieldHistoryTable? {
    guard try self.exists("_etl_column", over: connection),
      try self.exists("_etl_table", over: connection)
    else { return nil }
    let needed = FieldHistory.needed + [FieldHistory.parent(object)]
    let found = try connection.query(
      """
      SELECT t.table_name, c.path, min(c.column_name) \
      FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
      JOIN \(self.bookkeeping.qualified("_etl_column")) AS c ON c.table_name = t.table_name \
      WHERE t.kind = 'current' AND t.entity = $1 AND c.path = ANY ($2::text[]) \
      AND c.pg_type = CASE c.path WHEN 'CreatedDate' THEN '\(PostgresType.timestamptz.sqlName)' ELSE 'text' END \
      AND to_regclass(quote_ident($3) || '.' || quote_ident(t.table_name)) IS NOT NULL \
      GROUP BY 1, 2 ORDER BY 1, 2
      """,
      [
        FieldHistory.entity(of: object),
        SQLArray.literal(needed + [FieldHistory.dataType]), self.bookkeeping.schema,
      ])
    var tables: [String: [String: String]] = [:]
    for row in 0..<found.rowCount {
      tables[found[row, 0] ?? "", default: [:]][found[row, 1] ?? ""] = found[row, 2]
    }
    return tables.sorted { $0.key < $1.key }.first { _, columns in
      needed.allSatisfy { columns[$0] != nil }
    }.map { FieldHistoryTable(table: $0.key, columns: $0.value) }
  }

  func exists(
    _ table: String, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    try connection.query(
      "SELECT to_regclass($1) IS NOT NULL", [self.bookkeeping.qualified(table)])[0, 0] == "t"
  }
}
