internal import PostgresClient

/// A table of the sink as the database and its bookkeeping describe it.
struct TableState: Sendable {
  struct Column: NamedColumn, Equatable {
    var name: String
    var typeOID: UInt32
    /// `pg_attribute.atttypmod`
    var typeModifier: Int32 = -1
    /// The type for messages and SQL text, which the session's settings may write in another way.
    var sqlType: String
    /// `pg_attribute.attnum`; 0 for a column to be created.
    var number = 0
    var isNotNull = false
    /// Also true for identity and generated columns, and for a table whose trigger may fill the
    /// column.
    var hasDefault = false
    var comment: String?
  }

  /// A row of `_etl_column`.
  struct Registered: NamedColumn, Equatable {
    var name: String
    var ordinal: Int
    var path: String
    var salesforceType: String?
    /// The ID of a custom field; nil for another one, and for a column of an earlier version whose
    /// field has not been seen since.
    var fieldID: String?
    /// `PostgresType.sqlName` of the column's original type.
    var sqlType: String
    /// Noted in the journal, because a role that may not alter tables can still write there.
    var isCompound = false
    /// No event has the field. The bookkeeping has no first schema of such a column.
    var isOnlyRead = false
    /// Nil if the bookkeeping is of an earlier version.
    var state: ColumnStates.State?
    /// The day on which that state began, `2026-02-17`; empty if it is not known.
    var since = ""
  }

  let kind: TableDefinition.Kind
  let schema: String
  let name: String
  /// `pg_class.relkind`; nil if the relation does not exist.
  var relationKind: String?
  /// The role has the rights of the table's owner.
  var isOwned = false
  /// In the table's order.
  var columns = ColumnList<Column>()
  /// In the order of ordinals.
  var registered = ColumnList<Registered>()
  /// Numbers of columns that were dropped.
  var droppedNumbers: [Int] = []
  /// By `_etl_table`.
  var registeredEntity: String?
  var registeredKind: String?
  /// Nil if no feed is known.
  var feed: TableFeed?
  var condition = TableCondition()
  /// If the table does not exist, the qualified name of a table that may be this one under a new
  /// name.
  var namesake: String?

  init(kind: TableDefinition.Kind, schema: String, name: String) {
    self.kind = kind
    self.schema = schema
    self.name = name
  }

  /// The table will be created, so contracts do not apply to its columns.
  var isNew = false

  var exists: Bool { self.relationKind != nil }

  var qualifiedName: String {
    SQLIdentifier.quoted(self.schema) + "." + SQLIdentifier.quoted(self.name)
  }

  func column(_ name: String) -> Column? { self.columns[name] }

  /// Records that were read can be written to it.
  var hasReadColumns: Bool {
    TableDefinition.readColumns.allSatisfy { self.column($0.name)?.isType(of: $0) == true }
  }
}

/// The state of an entity that `TableEvolution` needs.
struct EntityState: Sendable {
  let entity: String
  var tables: [TableState]
  /// Schemas whose columns the tables have had before.
  var knownSchemas: Set<String> = []
  /// The bookkeeping has the states of columns.
  var hasColumnStates = false
  /// The bookkeeping has the IDs of fields.
  var hasFieldIDs = false
  /// The last schema whose columns the tables got.
  var lastSchema: String?
  /// The database's date, in UTC.
  var today = ""

  /// Current rows can be rebuilt.
  var hasHistoryToRebuildFrom: Bool {
    self.tables.contains {
      $0.kind == .history && $0.isTable && !$0.isNew && $0.registeredEntity != nil
    }
  }
}

extension EntityState {
  /// Reads the existing tables.
  ///
  /// - Parameter bookkeeping: the sink's own tables that exist.
  mutating func read(
    over connection: PostgresConnection, bookkeeping: Set<String>
  ) throws(PostgresError) {
    if let schema = self.tables.first?.schema {
      let kept = try ColumnStates(Bookkeeping(schema: schema)).kept(over: connection)
      (self.hasColumnStates, self.hasFieldIDs) = (kept.states, kept.fieldIDs)
      self.today = kept.today
    }
    for index in self.tables.indices {
      let empty = self.tables[index]
      self.tables[index] = TableState(kind: empty.kind, schema: empty.schema, name: empty.name)
      // Read in this order, so that a table created by another process in between does not count as
      // missing.
      try self.tables[index].readRegistration(bookkeeping, over: connection)
      try self.tables[index].readColumns(over: connection)
      if self.tables[index].exists {
        self.tables[index].condition = try TableCondition(self.tables[index], over: connection)
      }
      if !self.tables[index].exists, self.tables[index].registeredEntity != nil {
        self.tables[index].namesake = try self.tables[index].findNamesake(over: connection)
      }
      guard bookkeeping.contains("_etl_journal") else { continue }
      let schemas = try connection.query(
        """
        SELECT schema_id FROM \(Bookkeeping(schema: empty.schema).qualified("_etl_journal"))
        WHERE table_name = $1 AND action = 'schema' GROUP BY schema_id ORDER BY max(id)
        """, [empty.name])
      for row in 0..<schemas.rowCount { self.knownSchemas.insert(schemas[row, 0] ?? "") }
      if schemas.rowCount > 0 { self.lastSchema = schemas[schemas.rowCount - 1, 0] }
    }
  }
}

extension TableState.Registered {
  /// The journal's entry for a compound column. Columns may be renamed, but never change their
  /// field and type.
  var compoundNote: String { "\(self.path) as \(self.sqlType)" }
}

extension TableState {
  fileprivate mutating func readColumns(
    over connection: PostgresConnection
  ) throws(PostgresError) {
    // A domain with NOT NULL, which COPY, used for the history, does not check.
    let result = try connection.query(
      """
      SELECT c.relkind, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), a.attnum,
        a.attnotnull OR t.typnotnull AND $3::boolean,
        a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL
          OR EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid
            AND g.tgtype & 7 = 7 AND g.tgenabled IN ('O', 'A')), a.attisdropped, a.atttypmod,
        pg_has_role(c.relowner, 'USAGE'), col_description(c.oid, a.attnum)
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
      LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      WHERE n.nspname = $1 AND c.relname = $2
      ORDER BY a.attnum
      """, [self.schema, self.name, "\(self.kind == .current)"])
    for row in 0..<result.rowCount {
      self.relationKind = result[row, 0]
      self.isOwned = result[row, 9] == "t"
      let number = result[row, 4].flatMap { Int($0) } ?? 0
      if result[row, 7] == "t" {
        self.droppedNumbers.append(number)
        continue
      }
      guard let name = result[row, 1], let type = result[row, 2].flatMap(UInt32.init) else {
        continue
      }
      self.columns.append(
        Column(
          name: name, typeOID: type, typeModifier: result[row, 8].flatMap { Int32($0) } ?? -1,
          sqlType: result[row, 3] ?? "", number: number,
          isNotNull: result[row, 5] == "t", hasDefault: result[row, 6] == "t",
          comment: result[row, 10]))
    }
  }

  fileprivate mutating func readRegistration(
    _ existing: Set<String>, over connection: PostgresConnection
  ) throws(PostgresError) {
    let bookkeeping = Bookkeeping(schema: self.schema)
    if existing.contains("_etl_table") {
      let table = try connection.query(
        "SELECT entity, kind FROM \(bookkeeping.qualified("_etl_table")) WHERE table_name = $1",
        [self.name])
      if table.rowCount > 0 {
        self.registeredEntity = table[0, 0]
        self.registeredKind = table[0, 1]
      }
    }
    if existing.contains("_etl_journal") {
      let feed = try connection.query(
        """
        SELECT detail FROM \(bookkeeping.qualified("_etl_journal")) \
        WHERE table_name = $1 AND action = $2 ORDER BY id DESC LIMIT 1
        """, [self.name, TableFeed.action])
      if feed.rowCount > 0 { self.feed = feed[0, 0].flatMap { TableFeed(detail: $0) } }
    }
    guard existing.contains("_etl_column") else { return }
    let columns = try connection.query(
      """
      SELECT column_name, ordinal, path, salesforce_type, pg_type, to_jsonb(c) ->> 'state',
        left(to_jsonb(c) ->> 'since', 10), to_jsonb(c) ->> 'field_id', first_schema_id IS NULL
      FROM \(bookkeeping.qualified("_etl_column")) AS c WHERE table_name = $1
      ORDER BY ordinal, column_name
      """, [self.name])
    var compound: Set<String> = []
    if existing.contains("_etl_journal") {
      let compounds = try connection.query(
        """
        SELECT DISTINCT detail FROM \(bookkeeping.qualified("_etl_journal"))
        WHERE table_name = $1 AND action = 'compound'
        """, [self.name])
      compound = Set((0..<compounds.rowCount).map { compounds[$0, 0] ?? "" })
    }
    for row in 0..<columns.rowCount {
      var column = Registered(
        name: columns[row, 0] ?? "", ordinal: columns[row, 1].flatMap(Int.init) ?? 0,
        path: columns[row, 2] ?? "", salesforceType: columns[row, 3], fieldID: columns[row, 7],
        sqlType: columns[row, 4] ?? "")
      column.isCompound = compound.contains(column.compoundNote)
      column.state = columns[row, 5].flatMap { ColumnStates.State(rawValue: $0) }
      column.since = columns[row, 6] ?? ""
      column.isOnlyRead = columns[row, 8] == "t"
      self.registered.append(column)
    }
  }
}
