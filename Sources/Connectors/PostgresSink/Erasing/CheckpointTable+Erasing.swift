internal import Bytes
package import Pipeline
internal import PostgresClient

/// A table in which records were erased, or would be.
package struct ErasedRows: Sendable, Equatable {
  /// SQL name, not quoted.
  package var table: String
  package var rowCount: Int
}

/// Erases the values of records from the tables of a schema, whichever pipeline feeds them.
extension CheckpointTable {
  /// The records that were erased before.
  package func erasedRecords() throws -> ErasedRecords {
    try self.reading { try ErasedTable(self.bookkeeping).records(over: self.connection) }
  }

  /// The objects whose tables the schema has.
  package func entities() throws -> [String] {
    try self.reading {
      guard try self.exists("_etl_table") else { return [] }
      let rows = try self.connection.query(
        "SELECT DISTINCT entity FROM \(self.bookkeeping.qualified("_etl_table")) ORDER BY 1")
      return (0..<rows.rowCount).compactMap { rows[$0, 0] }
    }
  }

  /// The first three characters of the IDs of an object's records; nil if the tables have none.
  package func keyPrefix(of entity: String) throws -> String? {
    try self.reading {
      for table in try self.tables(of: entity) {
        let id = table.kind == .current ? "id" : "_record_id"
        let rows = try self.connection.query(
          "SELECT left(\(id), 3) FROM \(self.bookkeeping.qualified(table.name)) "
            + "WHERE length(\(id)) = 18 LIMIT 1")
        if rows.rowCount == 1 { return rows[0, 0] }
      }
      return nil
    }
  }

  /// The rows that `erase` would change. Changes nothing.
  package func erasableRows(
    _ records: [RecordID], of entity: String, removesDeleted: Bool
  ) throws -> [ErasedRows] {
    try self.reading(isQuick: false) {
      try self.connection.execute(Self.allRows)
      let ids = SQLArray.literal(records.map { .some($0.description) })
      return try self.tables(of: entity).map { table in
        try self.checkClearable(table, ids)
        let rows = try self.connection.query(
          "SELECT count(*) FROM \(self.bookkeeping.qualified(table.name)) "
            + "WHERE \(table.condition(removesDeleted: removesDeleted))", [ids])
        return ErasedRows(table: table.name, rowCount: Int(rows.number(0, 0) ?? 0))
      }
    }
  }

  /// Notes that records are erased, so that no later run writes values of them. Durable on return.
  ///
  /// - Throws: `LeaseError` while somebody else feeds the tables; `PostgresError`.
  package func noteErased(
    _ records: [RecordID], of entity: String, owner: LeaseOwner
  ) throws {
    try self.changing(entity, owner) {
      if try !self.schemaExists() {
        try self.connection.execute(
          "CREATE SCHEMA \(SQLIdentifier.quoted(self.bookkeeping.schema))")
      }
      try ErasedTable(self.bookkeeping).add(records, of: entity, over: self.connection)
    }
  }

  /// Clears the values of records, in one transaction. History rows keep what they say about the event,
  /// and current rows become those of deleted records. Durable on return; does nothing where that is
  /// done already.
  ///
  /// - Parameter removesDeleted: removes current rows, as for deleted records.
  /// - Throws: as `noteErased`.
  package func erase(
    _ records: [RecordID], of entity: String, removesDeleted: Bool, owner: LeaseOwner
  ) throws -> [ErasedRows] {
    var changed: [ErasedRows] = []
    try self.changing(entity, owner) {
      try self.connection.execute(Self.allRows)
      let ids = SQLArray.literal(records.map { .some($0.description) })
      for table in try self.tables(of: entity) {
        try self.checkClearable(table, ids)
        let name = self.bookkeeping.qualified(table.name)
        let condition = table.condition(removesDeleted: removesDeleted)
        let isRemoved = table.kind == .current && removesDeleted
        let statement =
          isRemoved
          ? "DELETE FROM \(name) WHERE \(condition)"
          : "UPDATE \(name) SET \(table.assignments) WHERE \(condition)"
        let rows = try self.connection.query(
          "WITH r AS (\(statement) RETURNING 1) SELECT count(*) FROM r", [ids])
        changed.append(ErasedRows(table: table.name, rowCount: Int(rows.number(0, 0) ?? 0)))
        let left = try self.connection.query(
          "SELECT count(*) FROM \(name) WHERE \(condition)", [ids])
        guard left.number(0, 0) == 0 else {
          throw PostgresError(
            .refused,
            "postgres: \(left[0, 0] ?? "") rows of table \(name) still have values, because a trigger "
              + "or rule keeps them; disable it, and run 'erase' again")
        }
      }
      if try self.exists("_etl_resync") {
        try self.connection.query(
          "UPDATE \(self.bookkeeping.qualified("_etl_resync")) SET done_at = now() "
            + "WHERE record_id = ANY ($1::text[]) AND done_at IS NULL", [ids])
      }
      if try self.exists(RefusedReads.tableName) {
        try self.connection.query(
          "DELETE FROM \(self.bookkeeping.qualified(RefusedReads.tableName)) "
            + "WHERE record_id = ANY ($1::text[])", [ids])
      }
    }
    return changed
  }

  // MARK: Transactions

  /// Runs `body` in a transaction during which no run of this sink begins.
  private func changing(
    _ entity: String, _ owner: LeaseOwner, _ body: () throws -> Void
  ) throws {
    try self.connection.begin()
    do {
      try self.checkVisible()
      if try self.exists("_etl_checkpoint") {
        if let state = try self.state(locking: true) { try self.checkLease(state, owner: owner) }
        try self.checkOthers(entity)
      }
      try body()
      try self.connection.execute("COMMIT")
    } catch {
      self.rollBack()
      throw self.explained(error)
    }
  }

  /// An error instead of rows that a policy hides.
  private static let allRows = "SET LOCAL row_security = off"

  /// - Throws: if a column of a field cannot be null, and there are rows to clear.
  private func checkClearable(_ table: Table, _ ids: String) throws(PostgresError) {
    guard let column = table.notNull else { return }
    let name = self.bookkeeping.qualified(table.name)
    let id = table.kind == .current ? "id" : "_record_id"
    let rows = try self.connection.query(
      "SELECT 1 FROM \(name) WHERE \(id) = ANY ($1::text[]) LIMIT 1", [ids])
    guard rows.rowCount == 1 else { return }
    throw PostgresError(
      .refused,
      "postgres: column \(column) of table \(name) cannot be cleared, because it is NOT NULL. To "
        + "allow it, run ALTER TABLE \(name) ALTER COLUMN \(column) DROP NOT NULL, and 'erase' again"
    )
  }

  private func schemaExists() throws(PostgresError) -> Bool {
    try self.connection.query(
      "SELECT to_regnamespace($1) IS NOT NULL",
      [SQLIdentifier.quoted(self.bookkeeping.schema)])[0, 0] == "t"
  }

  /// Other pipelines may feed the same tables. Their runs do not notice what is erased meanwhile.
  private func checkOthers(_ entity: String) throws {
    guard try self.exists("_etl_table") else { return }
    let tables = "p.value -> 'tables'"
    let rows = try self.connection.query(
      """
      SELECT c.pipeline, c.sink, c.owner FROM \(self.table) AS c \
      WHERE c.lease_until > now() AND (c.pipeline, c.sink) <> ($1, $2) AND EXISTS (\
      SELECT FROM jsonb_each(c.topics) AS p, \
      jsonb_each(CASE jsonb_typeof(\(tables)) WHEN 'object' THEN \(tables) ELSE '{}' END) AS e, \
      \(self.bookkeeping.qualified("_etl_table")) AS t \
      WHERE t.table_name = e.key AND t.entity = $3) ORDER BY 1, 2 LIMIT 1
      """, [self.pipeline, self.sink, entity])
    guard rows.rowCount == 1 else { return }
    throw LeaseError(
      description:
        "pipeline '\(rows[0, 0] ?? "")' also feeds the tables of \(entity), and is being run by "
        + "\(rows[0, 2] ?? ""), sink '\(rows[0, 1] ?? "")'; stop that run first")
  }

  // MARK: Tables

  /// A table with rows of an object.
  private struct Table {
    var name: String
    var kind: TableDefinition.Kind
    /// Columns that hold values, quoted.
    var values: [String]
    /// SQL names of all columns.
    var columns: Set<String>
    /// A column of a field that must not be null, quoted.
    var notNull: String?

    /// Rows of the records `$1` that have something to clear.
    func condition(removesDeleted: Bool) -> String {
      let isFull = self.values.isEmpty ? "false" : "NOT (ROW(\(self.list)) IS NULL)"
      switch self.kind {
      case .history: return "_record_id = ANY ($1::text[]) AND \(isFull)"
      case .current where removesDeleted: return "id = ANY ($1::text[])"
      case .current:
        return "id = ANY ($1::text[]) AND (\(isFull) OR _deleted_at IS NULL OR _stale OR _partial)"
      }
    }

    private var list: String { self.values.joined(separator: ", ") }

    var assignments: String {
      var parts = self.values.map { "\($0) = NULL" }
      if self.kind == .current {
        parts += [
          "_deleted_at = coalesce(_deleted_at, now())", "_stale = false", "_partial = false",
        ]
        if self.columns.contains("_stale_fields") { parts.append("_stale_fields = NULL") }
      }
      return parts.isEmpty ? "_record_id = _record_id" : parts.joined(separator: ", ")
    }
  }

  private func tables(of entity: String) throws(PostgresError) -> [Table] {
    guard try self.exists("_etl_table") else { return [] }
    let registered = try self.connection.query(
      "SELECT table_name, kind FROM \(self.bookkeeping.qualified("_etl_table")) "
        + "WHERE entity = $1 ORDER BY table_name COLLATE \"C\"", [entity])
    var tables: [Table] = []
    for row in 0..<registered.rowCount {
      guard let name = registered[row, 0],
        let kind = registered[row, 1].flatMap({ TableDefinition.Kind(rawValue: $0) })
      else { continue }
      // Events that are kept while all records are read.
      let kept = SQLIdentifier.shortened("_etl_kept_\(name)")
      for (name, kind) in [(name, kind)] + (kind == .current ? [(kept, .history)] : []) {
        if let table = try self.table(name, kind) {
          tables.append(table)
        } else if name == registered[row, 0] {
          throw PostgresError(
            .lostTable,
            "postgres: table \(self.bookkeeping.qualified(name)) was dropped or renamed. Rename it "
              + "back, or run the pipeline, which rebuilds it or says what to do; then run 'erase' again"
          )
        }
      }
    }
    return tables
  }

  /// Values are in the columns of fields, and in those that somebody else has added, unless these must
  /// not be null. Returns nil if the table does not exist.
  private func table(
    _ name: String, _ kind: TableDefinition.Kind
  ) throws(PostgresError) -> Table? {
    let rows = try self.connection.query(
      """
      SELECT a.attname, quote_ident(a.attname), NOT a.attnotnull AND a.attgenerated = '', \
      a.attnotnull AND EXISTS (SELECT FROM \(self.bookkeeping.qualified("_etl_column")) AS c \
      WHERE c.table_name = $2 AND c.column_name = a.attname) \
      FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 \
      AND NOT a.attisdropped ORDER BY a.attnum
      """, [self.bookkeeping.qualified(name), name])
    guard rows.rowCount > 0 else { return nil }
    let fixed = Set(TableDefinition.allFixedColumns(kind).map(\.name))
    var table = Table(name: name, kind: kind, values: [], columns: [])
    for row in 0..<rows.rowCount {
      guard let column = rows[row, 0], let quoted = rows[row, 1] else { continue }
      table.columns.insert(column)
      guard !fixed.contains(column) else { continue }
      if rows[row, 2] == "t" { table.values.append(quoted) }
      if rows[row, 3] == "t" { table.notNull = quoted }
    }
    return table
  }
}
