package import Pipeline
package import PostgresClient

/// The part of an entity's current table that can be compared with records that are read.
package struct VerifiedTable {
  package let current: TableDefinition
  /// The columns for the layout's fields.
  let tables: LayoutTables
  /// Indexes into `tables.dataColumns`, of columns that a field of the layout fills.
  let columns: [Int]
  /// Columns and fields that are not compared.
  package let leftOut: [CopyFindings.LeftOut]
}

extension TableCatalog {
  /// The table as it is, without changing anything.
  ///
  /// - Parameters:
  ///   - layout: after all stages.
  ///   - excluding: names of fields that are not compared.
  /// - Returns: nil when the entity has no current table yet.
  /// - Throws: `PostgresError` (configuration) for tables that do not fit, or whose rows the role cannot
  ///   all see.
  package func verifiedTable(
    for layout: RecordLayout, excluding: Set<String> = [], over connection: PostgresConnection
  ) throws(PostgresError) -> VerifiedTable? {
    if let error = try self.hiddenBookkeeping(over: connection) { throw error }
    let mapping = try TableMapping(layout, self.configuration)
    var state = try self.emptyState(of: mapping)
    try state.read(over: connection, bookkeeping: try self.existingBookkeeping(over: connection))
    guard let found = state.tables.first(where: { $0.kind == .current }), found.exists,
      found.registeredEntity == layout.entity
    else { return nil }
    try Self.checkVisible(found, over: connection)
    // A column that the next run will add has no values yet.
    var configuration = self.configuration
    configuration.contract = .discard
    let tables = try TableEvolution(state, mapping, configuration).tables
    guard let current = tables.current else { return nil }
    var leftOut: [CopyFindings.LeftOut] = []
    var columns: [Int] = []
    for (field, index) in zip(mapping.fields, tables.columnIndices) {
      let column = index.map { tables.dataColumns[$0] }
      guard let index, let column, let actual = found.column(column.name),
        current.isExpected(actual.typeOID, of: column)
      else {
        leftOut.append(
          CopyFindings.LeftOut(field: field.path, reason: "the table has no column for it yet"))
        continue
      }
      columns.append(index)
    }
    let isExcluded = { (path: String) in
      excluding.contains(String(path.prefix { $0 != "." }))
    }
    let used = Set(columns.map { tables.dataColumns[$0].name })
    for column in found.registered where !used.contains(column.name) {
      leftOut.append(
        CopyFindings.LeftOut(
          field: column.path,
          reason: "column \(SQLIdentifier.quoted(column.name)) keeps "
            + (column.isOnlyRead ? "what was read last" : "values of an earlier schema"))
      )
    }
    return VerifiedTable(
      current: current, tables: tables,
      columns: columns.sorted().filter { !isExcluded(tables.dataColumns[$0].path) },
      leftOut: leftOut.filter { !isExcluded($0.field) })
  }

  /// Rows that the role cannot see would count as missing.
  private static func checkVisible(
    _ table: TableState, over connection: PostgresConnection
  ) throws(PostgresError) {
    let access = try connection.query(
      """
      SELECT row_security_active(id), has_any_column_privilege(id, 'SELECT'), current_user \
      FROM CAST($1::regclass AS oid) AS t (id)
      """, [table.qualifiedName])
    guard access[0, 1] != "f" else {
      throw PostgresError(
        .refused,
        "postgres: role \(access[0, 2] ?? "") lacks SELECT on table \(table.qualifiedName)",
        sqlState: SQLState.insufficientPrivilege)
    }
    guard access[0, 0] != "t" else {
      throw PostgresError(
        .configuration,
        "postgres: row-level security hides rows of \(table.qualifiedName) from the role, so it "
          + "cannot be verified; use the owner of the table, or a role with BYPASSRLS")
    }
  }
}
