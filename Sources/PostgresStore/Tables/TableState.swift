/// A table of the sink as the database and its bookkeeping describe it.
struct TableState: Sendable {
  struct Column: NamedColumn, Equatable {
    var name: String
    var typeOID: UInt32
    /// As `format_type` writes it.
    var sqlType: String
  }

  /// A row of `_etl_column`.
  struct Registered: NamedColumn, Equatable {
    var name: String
    var ordinal: Int
    var path: String
    var salesforceType: String?
    /// `PostgresType.sqlName` of what the column was made as.
    var sqlType: String
    /// Noted in the journal, which a role can write to that may not alter tables.
    var isCompound = false
  }

  let kind: TableDefinition.Kind
  let schema: String
  let name: String
  /// `pg_class.relkind`; nil when there is no such relation.
  var relationKind: String?
  /// In the table's order.
  var columns = ColumnList<Column>()
  /// In the order of ordinals.
  var registered = ColumnList<Registered>()
  /// By `_etl_table`.
  var registeredEntity: String?
  var registeredKind: String?

  init(kind: TableDefinition.Kind, schema: String, name: String) {
    self.kind = kind
    self.schema = schema
    self.name = name
  }

  /// About to be created: a contract says nothing about its columns.
  var isNew = false

  var exists: Bool { self.relationKind != nil }

  var qualifiedName: String {
    SQLIdentifier.quoted(self.schema) + "." + SQLIdentifier.quoted(self.name)
  }

  func column(_ name: String) -> Column? { self.columns[name] }
}

/// All that `TableEvolution` has to know of an entity.
struct EntityState: Sendable {
  let entity: String
  var tables: [TableState]
  /// Schemas whose columns the tables have had before.
  var knownSchemas: Set<String> = []
}

extension EntityState {
  /// Reads what there is.
  ///
  /// - Parameter hasBookkeeping: false when the sink's own tables are not there yet.
  mutating func read(
    over connection: PostgresConnection, hasBookkeeping: Bool
  ) throws(PostgresError) {
    for index in self.tables.indices {
      let empty = self.tables[index]
      self.tables[index] = TableState(kind: empty.kind, schema: empty.schema, name: empty.name)
      try self.tables[index].readColumns(over: connection)
      guard hasBookkeeping else { continue }
      try self.tables[index].readRegistration(over: connection)
      let schemas = try connection.query(
        """
        SELECT DISTINCT schema_id FROM \(Bookkeeping(schema: empty.schema).qualified("_etl_journal"))
        WHERE table_name = $1 AND action = 'schema'
        """, [empty.name])
      for row in 0..<schemas.rowCount { self.knownSchemas.insert(schemas[row, 0] ?? "") }
    }
  }
}

extension TableState.Registered {
  /// What the journal says of a compound column: columns may be renamed, but never change the field
  /// and the type that they were made for.
  var compoundNote: String { "\(self.path) as \(self.sqlType)" }
}

extension TableState {
  fileprivate mutating func readColumns(
    over connection: PostgresConnection
  ) throws(PostgresError) {
    let result = try connection.query(
      """
      SELECT c.relkind, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod)
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_catalog.pg_attribute a
        ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE n.nspname = $1 AND c.relname = $2
      ORDER BY a.attnum
      """, [self.schema, self.name])
    for row in 0..<result.rowCount {
      self.relationKind = result[row, 0]
      guard let name = result[row, 1], let type = result[row, 2].flatMap(UInt32.init) else {
        continue
      }
      self.columns.append(Column(name: name, typeOID: type, sqlType: result[row, 3] ?? ""))
    }
  }

  fileprivate mutating func readRegistration(
    over connection: PostgresConnection
  ) throws(PostgresError) {
    let bookkeeping = Bookkeeping(schema: self.schema)
    let table = try connection.query(
      "SELECT entity, kind FROM \(bookkeeping.qualified("_etl_table")) WHERE table_name = $1",
      [self.name])
    if table.rowCount > 0 {
      self.registeredEntity = table[0, 0]
      self.registeredKind = table[0, 1]
    }
    let columns = try connection.query(
      """
      SELECT column_name, ordinal, path, salesforce_type, pg_type
      FROM \(bookkeeping.qualified("_etl_column")) WHERE table_name = $1
      ORDER BY ordinal, column_name
      """, [self.name])
    let compounds = try connection.query(
      """
      SELECT DISTINCT detail FROM \(bookkeeping.qualified("_etl_journal"))
      WHERE table_name = $1 AND action = 'compound'
      """, [self.name])
    let compound = Set((0..<compounds.rowCount).map { compounds[$0, 0] ?? "" })
    for row in 0..<columns.rowCount {
      var column = Registered(
        name: columns[row, 0] ?? "", ordinal: columns[row, 1].flatMap(Int.init) ?? 0,
        path: columns[row, 2] ?? "", salesforceType: columns[row, 3],
        sqlType: columns[row, 4] ?? "")
      column.isCompound = compound.contains(column.compoundNote)
      self.registered.append(column)
    }
  }
}
