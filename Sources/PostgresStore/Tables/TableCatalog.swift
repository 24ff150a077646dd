package import Pipeline

/// Keeps the tables of a sink in step with the schemas that arrive.
///
/// Everything that changes the database happens in short transactions of its own, apart from those
/// that load rows, under the connection's lock timeout, and one at a time: changes begin with a
/// lock on `_etl_table`. What another process has created at the same moment is taken as found.
/// Used by one thread at a time.
package final class TableCatalog {
  let configuration: PostgresSinkConfiguration
  let bookkeeping: Bookkeeping
  private var hasBookkeeping = false

  package init(_ configuration: PostgresSinkConfiguration) {
    self.configuration = configuration
    self.bookkeeping = Bookkeeping(schema: configuration.schema)
  }

  /// Creates the schema and the sink's own tables where they are missing. A role that may not
  /// create schemas needs one that is there.
  package func prepare(over connection: PostgresConnection) throws(PostgresError) {
    guard !self.hasBookkeeping else { return }
    try self.survivingRaces { () throws(PostgresError) in
      let statements = try self.missingBookkeeping(over: connection)
      guard !statements.isEmpty else { return }
      try connection.transaction { () throws(PostgresError) in
        try connection.execute(statements.joined(separator: ";\n"))
      }
    }
    self.hasBookkeeping = true
  }

  /// The tables for a layout's rows; creates and changes what the contract allows. Call once for
  /// each layout that appears, outside a transaction.
  ///
  /// - Throws: `PostgresError`: configuration for tables and names that do not fit, contract for
  ///   what `freeze` does not allow, retry when a lock was not to be had in time.
  package func tables(
    for layout: RecordLayout, over connection: PostgresConnection
  ) throws(PostgresError) -> LayoutTables {
    try self.prepare(over: connection)
    let mapping = try TableMapping(layout, self.configuration)
    let empty = try self.emptyState(of: mapping)
    return try self.survivingRaces { () throws(PostgresError) in
      var state = empty
      try state.read(over: connection, hasBookkeeping: true)
      let evolution = try TableEvolution(state, mapping, self.configuration)
      guard !evolution.statements.isEmpty else { return evolution.tables }
      return try connection.transaction { () throws(PostgresError) in
        try connection.execute(
          "LOCK TABLE \(self.bookkeeping.qualified("_etl_table")) IN SHARE ROW EXCLUSIVE MODE")
        // What was read before may have been changed by whoever held the lock.
        var state = empty
        try state.read(over: connection, hasBookkeeping: true)
        let evolution = try TableEvolution(state, mapping, self.configuration)
        if !evolution.statements.isEmpty {
          try connection.execute(evolution.statements.joined(separator: ";\n"))
        }
        return evolution.tables
      }
    }
  }

  /// Finds out whether the tables still are what they were when the rows for them were encoded.
  ///
  /// - Throws: `PostgresError` (configuration) naming a column that was altered or removed.
  package func check(
    _ tables: LayoutTables, over connection: PostgresConnection
  ) throws(PostgresError) {
    for table in [tables.history, tables.current] {
      guard let table else { continue }
      let result = try connection.query(
        """
        SELECT a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod)
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_attribute a
          ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE n.nspname = $1 AND c.relname = $2
        """, [table.schema, table.name])
      var types: [String: (oid: UInt32, name: String)] = [:]
      for row in 0..<result.rowCount {
        guard let name = result[row, 0], let oid = result[row, 1].flatMap(UInt32.init) else {
          continue
        }
        types[name] = (oid, result[row, 2] ?? "")
      }
      for column in table.dataColumns {
        let type = types[column.name]
        guard let type, PostgresType(oid: type.oid) == column.type else {
          throw PostgresError(
            .configuration,
            "postgres: column \(column.quotedName) of \(table.qualifiedName) was "
              + (type.map { "altered to \($0.name)" } ?? "removed")
              + " during the run; run again")
        }
      }
    }
  }

  func emptyState(of mapping: TableMapping) throws(PostgresError) -> EntityState {
    var kinds = self.configuration.mode.tableKinds
    if mapping.family == .platformEvent {
      guard kinds.contains(.history) else {
        throw PostgresError(
          .configuration,
          "postgres: \(mapping.entity) is a platform event, which has no current state; set mode "
            + "to history or both")
      }
      kinds = [.history]
    }
    return try self.emptyState(ofEntity: mapping.entity, kinds: kinds)
  }

  func emptyState(
    ofEntity entity: String, kinds: [TableDefinition.Kind]
  ) throws(PostgresError) -> EntityState {
    var tables: [TableState] = []
    for kind in kinds {
      let name = try TableMapping.tableName(of: entity, kind, self.configuration)
      if let other = tables.first(where: { $0.name == name }) {
        throw PostgresError(
          .configuration,
          "postgres: tables.\(other.kind.rawValue) and tables.\(kind.rawValue) both give "
            + "\(entity) the table \"\(name)\"")
      }
      tables.append(TableState(kind: kind, schema: self.configuration.schema, name: name))
    }
    return EntityState(entity: entity, tables: tables)
  }

  func missingBookkeeping(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let schema = try connection.query(
      "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", [self.configuration.schema])
    let tables = try connection.query(
      """
      SELECT c.relname FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname LIKE '\\_etl\\_%'
      """, [self.configuration.schema])
    var existing: Set<String> = []
    for row in 0..<tables.rowCount { existing.insert(tables[row, 0] ?? "") }
    return self.bookkeeping.statements(schemaExists: schema.rowCount > 0, existing: existing)
  }

  /// Runs `body` again when another process has created the same at the same moment.
  private func survivingRaces<Value>(
    _ body: () throws(PostgresError) -> Value
  ) throws(PostgresError) -> Value {
    // Each loss means that something more is there; a few are all that one schema can need.
    for _ in 0..<5 {
      do throws(PostgresError) {
        return try body()
      } catch {
        // Duplicate schema, table, column, object; and what two creators of one name get from the
        // system catalogue's own unique indexes.
        let races: Set<String?> = ["42P06", "42P07", "42701", "42710", "23505"]
        guard races.contains(error.sqlState) else { throw error }
      }
    }
    return try body()
  }
}
