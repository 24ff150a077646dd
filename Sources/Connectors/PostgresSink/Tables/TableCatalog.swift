package import Pipeline
package import PostgresClient

/// Keeps the tables of a sink in step with the schemas that arrive.
///
/// All changes of the database are made in short transactions, separate from loading and under the
/// connection's lock timeout. They are serialized by a lock on `_etl_table`. Objects that another
/// process creates at the same moment are accepted. Used by one thread at a time.
package final class TableCatalog {
  let configuration: PostgresSinkConfiguration
  let bookkeeping: Bookkeeping
  /// Nil for a read-only catalog.
  let feeder: TableFeeder?
  /// Recreates missing tables that cannot be rebuilt, without rows.
  package var acceptsMissing = false
  /// IDs of the schemas that objects have now, by entity. An entry ends with the first event of its
  /// schema: what follows in the stream is newer.
  var currentSchemas: [String: String] = [:]
  private var hasBookkeeping = false
  /// False once the database has refused to alter a table.
  private var mayAlter = true
  /// Receives a sentence for each missing table of the bookkeeping.
  package var onRepair: ((String) -> Void)?

  package init(_ configuration: PostgresSinkConfiguration, feeder: TableFeeder? = nil) {
    self.configuration = configuration
    self.feeder = feeder
    self.bookkeeping = Bookkeeping(schema: configuration.schema)
  }

  /// Creates the schema and the sink's own tables if they are missing. A role that may not create
  /// schemas needs an existing one.
  package func prepare(over connection: PostgresConnection) throws(PostgresError) {
    guard !self.hasBookkeeping else { return }
    try self.survivingRaces { () throws(PostgresError) in
      let statements = try self.missingBookkeeping(over: connection)
      guard !statements.isEmpty else { return }
      let existing = try self.existingBookkeeping(over: connection)
      let lost = Bookkeeping.names.filter { !existing.contains($0) }
      if !existing.isEmpty { self.onRepair?(Self.lostBookkeeping(lost)) }
      try connection.transaction { () throws(PostgresError) in
        try connection.execute(statements.joined(separator: ";\n"))
      }
    }
    if let error = try self.hiddenBookkeeping(over: connection) { throw error }
    try self.addColumnStates(over: connection)
    self.hasBookkeeping = true
  }

  /// The error for a table of the sink's own whose rows may be hidden from the role; nil if none is.
  ///
  /// - Parameter others: names of other tables that are read.
  func hiddenBookkeeping(
    and others: [String] = [], over connection: PostgresConnection
  ) throws(PostgresError) -> PostgresError? {
    let hidden = try connection.query(
      """
      SELECT c.relname, current_user FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
      AND (starts_with(c.relname, '_etl_') OR c.relname = ANY ($2::text[]))
      AND c.relrowsecurity AND \(TableCondition.mayHideRows("c.oid")) ORDER BY c.relname LIMIT 1
      """, [self.configuration.schema, SQLArray.literal(others)])
    guard hidden.rowCount > 0, let name = hidden[0, 0], let role = hidden[0, 1] else { return nil }
    return TableCondition.hidden(
      self.bookkeeping.qualified(name), from: role, "may hide rows from role")
  }

  /// Without the right to change the sink's own tables, states are not kept.
  private func addColumnStates(over connection: PostgresConnection) throws(PostgresError) {
    let statements = try self.missingColumnStates(over: connection)
    guard !statements.isEmpty else { return }
    do throws(PostgresError) {
      try connection.transaction { () throws(PostgresError) in
        try connection.execute(statements.joined(separator: ";\n"))
      }
    } catch {
      guard error.sqlState == SQLState.insufficientPrivilege else { throw error }
    }
  }

  /// The statements that add the states of columns and the IDs of fields to existing bookkeeping.
  func missingColumnStates(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    guard try self.existingBookkeeping(over: connection).isSuperset(of: Bookkeeping.names) else {
      return []
    }
    return try ColumnStates(self.bookkeeping).additions(over: connection)
  }

  /// Creates the tables that reading records needs.
  ///
  /// - Returns: false if the role may not.
  package func prepareReads(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try self.survivingRaces { () throws(PostgresError) in
      let statements = try self.missingReadTables(over: connection)
      guard !statements.isEmpty else { return true }
      do throws(PostgresError) {
        try connection.transaction { () throws(PostgresError) in
          try connection.execute(statements.joined(separator: ";\n"))
        }
        return true
      } catch {
        guard error.sqlState == SQLState.insufficientPrivilege else { throw error }
        return false
      }
    }
  }

  /// Returns the tables for a layout's rows, and creates and changes them as far as the contract
  /// allows. Call it once per layout, outside a transaction.
  ///
  /// - Throws: `PostgresError`: configuration for tables and names that do not fit, contract for
  ///   what `freeze` does not allow, retry if a lock could not be acquired in time.
  package func tables(
    for layout: RecordLayout, over connection: PostgresConnection
  ) throws(PostgresError) -> LayoutTables {
    try self.prepare(over: connection)
    let mapping = try TableMapping(layout, self.configuration)
    let empty = try self.emptyState(of: mapping)
    var tables = try self.tables(for: layout, mapping, empty, over: connection)
    if let history = tables.history {
      let earlier = try EarlierColumnNames(history, over: connection)
      tables.listedNames = earlier.names(history.dataColumns, schemaID: mapping.schemaID)
    }
    return tables
  }

  private func tables(
    for layout: RecordLayout, _ mapping: TableMapping, _ empty: EntityState,
    over connection: PostgresConnection
  ) throws(PostgresError) -> LayoutTables {
    try self.survivingRaces { () throws(PostgresError) in
      var state = empty
      try state.read(over: connection, bookkeeping: Set(Bookkeeping.names))
      let evolution = try self.evolution(of: state, mapping, layout.topic)
      guard !evolution.statements.isEmpty else { return evolution.tables }
      do throws(PostgresError) {
        return try connection.transaction { () throws(PostgresError) in
          try self.lock(over: connection)
          // The holder of the lock may have changed what was read before.
          var state = empty
          try state.read(over: connection, bookkeeping: Set(Bookkeeping.names))
          let evolution = try self.evolution(of: state, mapping, layout.topic)
          if !evolution.statements.isEmpty {
            try connection.execute(evolution.statements.joined(separator: ";\n"))
          }
          return evolution.tables
        }
      } catch {
        if error.sqlState == SQLState.lockNotAvailable {
          throw try self.locked(error, empty.tables, over: connection)
        }
        // insufficient_privilege: a role that may only write rows can load existing tables.
        guard error.sqlState == SQLState.insufficientPrivilege else { throw error }
        if self.configuration.reads != nil, self.mayAlter {
          self.mayAlter = false
          return try self.tables(for: layout, mapping, empty, over: connection)
        }
        guard evolution.isOnlyFeed else { throw error }
        try self.noteUnlocked(evolution.statements, over: connection)
        return evolution.tables
      }
    }
  }

  private func evolution(
    of state: EntityState, _ mapping: TableMapping, _ topic: String
  ) throws(PostgresError) -> TableEvolution {
    try TableEvolution(
      state, mapping, self.configuration, feeder: self.feeder, topic: topic,
      currentSchema: self.currentSchemas[mapping.entity],
      isArriving: true, acceptsMissing: self.acceptsMissing, mayAlter: self.mayAlter)
  }

  /// If the role may not write to the journal either, nothing is noted.
  private func noteUnlocked(
    _ statements: [String], over connection: PostgresConnection
  ) throws(PostgresError) {
    do throws(PostgresError) {
      try connection.transaction { () throws(PostgresError) in
        try connection.execute(statements.joined(separator: ";\n"))
      }
    } catch {
      guard error.sqlState == SQLState.insufficientPrivilege else { throw error }
    }
  }

  /// Checks that the tables have not changed since rows were encoded for them.
  ///
  /// - Parameter sqlState: the error of the database, if any.
  /// - Returns: false if a table is missing that `restore` recreates.
  /// - Throws: `PostgresError` for altered tables, with the remedy.
  package func check(
    _ tables: LayoutTables, after sqlState: String? = nil, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    let definitions = [tables.history, tables.current].compactMap { $0 }
    guard let entity = definitions.first?.entity else { return true }
    var state = EntityState(
      entity: entity,
      tables: definitions.map { TableState(kind: $0.kind, schema: $0.schema, name: $0.name) })
    try state.read(over: connection, bookkeeping: try self.existingBookkeeping(over: connection))
    for (table, definition) in zip(state.tables, definitions) {
      guard table.exists else {
        if table.kind == .current, state.hasHistoryToRebuildFrom { return false }
        throw table.missing(entity)
      }
      if let obstacle = table.obstacle() { throw obstacle }
      if let renamed = table.renamedColumns.first { throw table.error(renamed) }
      // feature_not_supported
      if sqlState == "0A000", let rules = table.condition.unsupported(table) { throw rules }
      // not_null_violation
      if sqlState == SQLState.notNullViolation, let column = table.refusingColumn() { throw column }
      for column in definition.dataColumns {
        let found = table.column(column.name)
        guard let found, definition.isExpected(found.typeOID, of: column) else {
          throw PostgresError(
            .configuration,
            "postgres: column \(column.quotedName) of \(table.qualifiedName) was "
              + (found.map { "altered to \($0.sqlType)" } ?? "removed")
              + " during the run; run again")
        }
      }
    }
    return true
  }

  /// Changes of tables happen one at a time.
  func lock(over connection: PostgresConnection) throws(PostgresError) {
    try connection.execute(
      "\(self.configuration.lockLimit); LOCK TABLE \(self.bookkeeping.qualified("_etl_table")) IN SHARE ROW EXCLUSIVE MODE"
    )
  }

  /// The error of a change that waited too long for its lock, with the session that has it.
  func locked(
    _ error: PostgresError, _ tables: [TableState], over connection: PostgresConnection
  ) throws(PostgresError) -> PostgresError {
    var error = error
    error.pause = self.configuration.lockPause
    error.message += try LockHolder.suffix(
      tables.map(\.name) + ["_etl_table"], self.configuration.schema, over: connection)
    return error
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
            + "\(entity) the table \"\(name)\"; change one of them")
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
    return self.bookkeeping.statements(
      schemaExists: schema.rowCount > 0, existing: try self.existingBookkeeping(over: connection))
  }

  /// Statements that create the tables for reading records; none unless the sink reads records.
  func missingReadTables(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    guard self.configuration.reads != nil else { return [] }
    let existing = try self.bookkeepingNames(over: connection)
    return self.bookkeeping.readStatements(existing: existing)
      + (self.configuration.polls.isEmpty
        ? [] : self.bookkeeping.pollStatements(existing: existing))
  }

  /// Statements that create the tables of fields and choices, which reads fill.
  func missingFieldTables(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    guard self.configuration.reads != nil else { return [] }
    let names = FieldTables.names.map { self.bookkeeping.qualified($0) }
    let found = try connection.query(
      "SELECT n.name FROM unnest($1::text[]) AS n (name) WHERE to_regclass(n.name) IS NOT NULL",
      [SQLArray.literal(names)])
    let existing = Set((0..<found.rowCount).compactMap { found[$0, 0] })
    return self.bookkeeping.fieldStatements(
      existing: Set(FieldTables.names.filter { existing.contains(self.bookkeeping.qualified($0)) }))
  }

  /// Names of the sink's own existing tables, except those for reading records.
  func existingBookkeeping(
    over connection: PostgresConnection
  ) throws(PostgresError) -> Set<String> {
    try self.bookkeepingNames(over: connection).intersection(Bookkeeping.names)
  }

  private func bookkeepingNames(
    over connection: PostgresConnection
  ) throws(PostgresError) -> Set<String> {
    let tables = try connection.query(
      """
      SELECT c.relname FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname LIKE '\\_etl\\_%'
      """, [self.configuration.schema])
    return Set((0..<tables.rowCount).compactMap { tables[$0, 0] })
  }

  /// Repeats `body` if another process creates the same object at the same moment.
  private func survivingRaces<Value>(
    _ body: () throws(PostgresError) -> Value
  ) throws(PostgresError) -> Value {
    // Each repetition finds one more existing object, so a few are enough for any schema.
    for _ in 0..<5 {
      do throws(PostgresError) {
        return try body()
      } catch {
        // Duplicate schema, table, column, object; and violations of the system catalogue's unique
        // indexes when two processes create the same name.
        let races: Set<String?> = [
          SQLState.duplicateSchema, SQLState.duplicateTable, SQLState.duplicateColumn,
          SQLState.duplicateObject, SQLState.uniqueViolation,
        ]
        guard races.contains(error.sqlState) else { throw error }
      }
    }
    return try body()
  }
}
