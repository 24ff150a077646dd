package import PostgresClient

/// The view `_columns`: the completeness of each column.
extension ReportingViews {
  /// Creates `_columns` in the open transaction, if the bookkeeping has the states of columns.
  package func updateColumns(over connection: PostgresConnection) throws(PostgresError) {
    guard try ColumnStates(self.bookkeeping).exist(over: connection) else { return }
    _ = try self.update(self.columnsChange(over: connection), over: connection)
  }

  func columnsChange(over connection: PostgresConnection) throws(PostgresError) -> ViewChange {
    let state = try ViewState(Self.columnsName, self.bookkeeping, over: connection)
    return ViewChange(
      name: Self.columnsName, query: self.columnStates, state: state,
      fit: ViewChange.Fit(state.columns, Self.stateColumns), bookkeeping: self.bookkeeping)
  }

  package static let columnsName = "_columns"

  private static let stateColumns: [Column] = [
    Column(name: "table_name", type: "text"), Column(name: "entity", type: "text"),
    Column(name: "column", type: "text"), Column(name: "field", type: "text"),
    Column(name: "state", type: "text"), Column(name: "since", type: "timestamp with time zone"),
    Column(name: "refreshed_at", type: "timestamp with time zone"),
  ]

  private var columnStates: String {
    let schema = SQLIdentifier.quoted(self.bookkeeping.schema)
    return """
      SELECT t.table_name, t.entity, c.column_name AS "column", c.path AS field, \
      CASE c.state WHEN 'gone' THEN 'gone since' ELSE c.state END AS state, c.since, \
      (to_jsonb(c) ->> 'refreshed_at')::timestamptz AS refreshed_at \
      FROM \(schema)._etl_table AS t JOIN \(schema)._etl_column AS c ON c.table_name = t.table_name
      """
  }
}
