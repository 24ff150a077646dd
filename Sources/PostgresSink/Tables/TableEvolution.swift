internal import Pipeline
internal import PostgresClient

/// Works out what has to change so that the tables of an entity can hold a layout. Pure: reads no
/// database, executes nothing; the state it is given becomes what the statements will have made.
struct TableEvolution {
  private(set) var state: EntityState
  /// In the order of execution, without semicolons.
  private(set) var statements: [String] = []
  /// One sentence each.
  private(set) var changes: [String] = []
  /// Those of the changes that replace what somebody has dropped.
  private(set) var repairs: [String] = []
  private(set) var discarded: [String] = []
  /// The statements do nothing but to note who feeds the tables.
  private(set) var isOnlyFeed = false
  /// Tables that are created, with the statement at `place`. A rename ends that, since what follows it
  /// has to stay behind it.
  private var creations: [Int: TableCreation] = [:]
  /// For the mapping's fields: the column, by name.
  private var columnNames: [String?] = []
  private var missing: [String] = []

  private let mapping: TableMapping
  private let configuration: PostgresSinkConfiguration
  private let bookkeeping: Bookkeeping
  private let feeder: TableFeeder?
  /// Whose events the layout describes.
  private let topic: String?
  private let acceptsMissing: Bool
  private var isFirstSight: Bool {
    !self.mapping.schemaID.isEmpty && !self.state.knownSchemas.contains(self.mapping.schemaID)
  }

  /// - Parameters:
  ///   - feeder: who writes to the tables; nil when nobody is going to.
  ///   - topic: of the layout; nil when there is none.
  ///   - acceptsMissing: tables that are gone, and cannot be rebuilt, are made anew without rows.
  init(
    _ state: EntityState, _ mapping: TableMapping, _ configuration: PostgresSinkConfiguration,
    feeder: TableFeeder? = nil, topic: String? = nil, acceptsMissing: Bool = false
  ) throws(PostgresError) {
    self.state = state
    self.mapping = mapping
    self.configuration = configuration
    self.bookkeeping = Bookkeeping(schema: configuration.schema)
    self.feeder = feeder
    self.topic = topic
    self.acceptsMissing = acceptsMissing
    for table in state.tables { try self.check(table) }
    try self.createTables()
    try self.alignTables()
    self.followRenames()
    for field in mapping.fields { try self.place(field) }
    if !self.missing.isEmpty {
      throw PostgresError(
        .contract,
        "postgres: contract freeze: "
          + (mapping.schemaID.isEmpty ? "" : "schema \(mapping.schemaID) of ")
          + "\(mapping.entity) needs "
          + self.missing.joined(separator: "; ")
          + ". Make the change (`pubsub-etl plan` prints it), or set contract to evolve or discard")
    }
    if self.isFirstSight { self.noteSchema() }
    self.isOnlyFeed = self.statements.isEmpty
    self.noteFeed()
    for table in self.state.tables.indices {
      self.finishCreation(table)
      self.createIndexes(table)
      self.state.tables[table].isNew = false
    }
  }

  // MARK: Tables

  private func check(_ table: TableState) throws(PostgresError) {
    if let entity = table.registeredEntity,
      entity != self.mapping.entity || table.registeredKind != table.kind.rawValue
    {
      throw PostgresError(
        .configuration,
        "postgres: table \(table.qualifiedName) holds \(table.registeredKind ?? "") rows of "
          + "\(entity) and cannot hold \(table.kind.rawValue) rows of \(self.mapping.entity) as "
          + "well; tables.\(table.kind.rawValue) must give each its own name")
    }
    if let feeder, let topic, let feed = table.feed,
      let conflict = feeder.conflict(table.qualifiedName, fedBy: feed, topic: topic)
    {
      throw conflict
    }
    let wanted = Set(self.mapping.fields.map(\.name))
    if let obstacle = table.obstacle(writing: wanted) { throw obstacle }
    if let renamed = table.renamedColumns.first(where: { wanted.contains($0.registered) }) {
      throw table.error(renamed)
    }
  }

  private mutating func createTables() throws(PostgresError) {
    for index in self.state.tables.indices {
      let table = self.state.tables[index]
      if table.exists {
        if table.registeredEntity == nil {
          self.register(table)
          self.note(table, "adopt", "table of \(self.mapping.entity)")
          self.state.tables[index].registeredEntity = self.mapping.entity
          self.state.tables[index].registeredKind = table.kind.rawValue
        }
        continue
      }
      if self.configuration.contract == .freeze {
        self.missing.append("table \(table.qualifiedName)")
      }
      if table.registeredEntity == nil {
        self.create(index)
      } else {
        try self.createAgain(index)
      }
    }
  }

  /// The table was there: somebody has dropped or renamed it.
  private mutating func createAgain(_ index: Int) throws(PostgresError) {
    let table = self.state.tables[index]
    let canBeRebuilt = table.kind == .current && self.state.hasHistoryToRebuildFrom
    guard canBeRebuilt || self.acceptsMissing else { throw table.missing(self.mapping.entity) }
    self.create(index, isRebuilt: canBeRebuilt)
    self.repairs.append(
      canBeRebuilt
        ? "table \(table.qualifiedName) was gone and is rebuilt from the history; grants on it and "
          + "its views have to be given again, and records without history are not in it"
        : "table \(table.qualifiedName) was gone and is made anew, without the rows it had")
    self.changes += self.repairs.suffix(1)
  }

  private mutating func create(_ index: Int, isRebuilt: Bool = false) {
    let table = self.state.tables[index]
    let fixed = TableDefinition.fixedColumns(table.kind)
    self.creations[index] = TableCreation(place: self.statements.count, fixed)
    self.statements.append("")
    let comment =
      switch table.kind {
      case .history: "Every event of \(self.mapping.entity), one row per record"
      case .current: "\(self.mapping.entity), one row per record, as it is now"
      }
    self.statements.append(
      "COMMENT ON TABLE \(table.qualifiedName) IS \(SQLIdentifier.literal(comment))")
    if table.kind == .history {
      let key = self.mapping.family == .changeEvent ? "_record_id, _event_id" : "_event_id"
      self.statements.append("CREATE INDEX ON \(table.qualifiedName) (\(key))")
      // Not of current tables: it would be another index to change with every update.
      self.statements.append("CREATE INDEX ON \(table.qualifiedName) (_commit_timestamp)")
    }
    let detail = "\(table.kind.rawValue) of \(self.mapping.entity)"
    if table.registeredEntity == nil {
      self.register(table)
      self.note(table, "create_table", detail)
      self.changes.append("table \(table.qualifiedName) created")
    } else if isRebuilt {
      self.note(table, Rebuilding.begun, "\(detail), which was gone")
    } else {
      self.note(table, "create_table", "\(detail), without the rows of the one that was gone")
    }
    self.state.tables[index].relationKind = "r"
    self.state.tables[index].isNew = true
    self.state.tables[index].registeredEntity = self.mapping.entity
    self.state.tables[index].registeredKind = table.kind.rawValue
    // Types of fixed columns are not looked at again.
    for column in fixed {
      self.state.tables[index].columns.append(
        TableState.Column(name: column.name, typeOID: 0, sqlType: column.sqlType))
    }
  }

  private mutating func finishCreation(_ index: Int) {
    guard let creation = self.creations.removeValue(forKey: index) else { return }
    let table = self.state.tables[index]
    // Rows of the current table are updated again and again: where their page has room for the next
    // version, no index changes and the space of the last one is used again.
    let options = table.kind == .current ? " WITH (fillfactor = 75)" : ""
    self.statements[creation.place] =
      "CREATE TABLE \(table.qualifiedName) (\n"
      + creation.lines.map { "  \($0)" }.joined(separator: ",\n") + "\n)" + options
  }

  private mutating func createIndexes(_ index: Int) {
    let table = self.state.tables[index]
    guard table.isNew,
      table.kind == .current || !self.state.tables.contains(where: { $0.kind == .current })
    else { return }
    let fields = zip(self.mapping.fields, self.columnNames).filter { $0.0.isIndexed }.map(\.1)
    for column in table.registered
    where table.column(column.name) != nil
      && (fields.contains(column.name)
        || self.configuration.isIndexed(column, of: self.mapping.entity))
    {
      self.statements.append(
        "CREATE INDEX ON \(table.qualifiedName) (\(SQLIdentifier.quoted(column.name)))")
    }
  }

  private mutating func noteFeed() {
    guard let feeder, let topic else { return }
    let feed = feeder.feed(topic)
    for index in self.state.tables.indices where self.state.tables[index].feed != feed {
      self.note(self.state.tables[index], TableFeed.action, feed.detail, isOfSchema: false)
      if self.state.tables[index].feed != nil {
        self.changes.append(
          "table \(self.state.tables[index].qualifiedName) is taken over for topic \(topic)")
      }
      self.state.tables[index].feed = feed
    }
  }

  /// Somebody has renamed a column, and a stage gives the field that name now: the bookkeeping
  /// follows, and so do the names in the history's lists.
  private mutating func followRenames() {
    for index in self.state.tables.indices {
      for renamed in self.state.tables[index].renamedColumns {
        let isWanted = self.mapping.fields.contains {
          $0.path == renamed.path && $0.name == renamed.found
        }
        guard isWanted else { continue }
        self.note(
          self.state.tables[index], "rename_column", "\(renamed.registered) to \(renamed.found)")
        self.renameRegistered(renamed.registered, to: renamed.found, in: index)
      }
    }
  }

  /// Gives each table the columns that only the other has: one was made later, or was not written
  /// for some time.
  private mutating func alignTables() throws(PostgresError) {
    let addsToAll = self.configuration.contract == .evolve
    for source in self.state.tables {
      for column in source.registered {
        guard let actual = source.column(column.name), let type = PostgresType(oid: actual.typeOID)
        else { continue }
        for index in self.state.tables.indices
        where self.state.tables[index].column(column.name) == nil
          && (addsToAll || self.state.tables[index].isNew)
        {
          try self.add(
            column.name, type, path: column.path, salesforceType: column.salesforceType, to: index)
        }
      }
    }
  }

  // MARK: Columns

  private mutating func place(_ field: TableMapping.Field) throws(PostgresError) {
    if let registered = self.registered(field.name) {
      let isOfType = field.acceptedTypes.contains { type in
        registered.sqlType == type.sqlName
          || self.state.tables.contains { $0.column(field.name)?.typeOID == type.oid }
      }
      if !isOfType {
        try self.changeType(field)
        return
      }
    }
    try self.use(field, field.name)
  }

  private func registered(_ name: String) -> TableState.Registered? {
    for table in self.state.tables {
      if let found = table.registered[name] { return found }
    }
    return nil
  }

  /// Takes a column for a field; adds it to the tables that lack it.
  private mutating func use(_ field: TableMapping.Field, _ name: String) throws(PostgresError) {
    var found: (type: TableState.Column, table: TableState)?
    for table in self.state.tables {
      guard let column = table.column(name) else { continue }
      if let found, !found.type.hasForm(of: column) {
        throw PostgresError(
          .configuration,
          "postgres: column \(SQLIdentifier.quoted(name)) is \(found.type.sqlType) in "
            + "\(found.table.qualifiedName) but \(column.sqlType) in \(table.qualifiedName); "
            + "alter one of them")
      }
      found = (column, table)
    }
    var type = field.type
    if let found {
      guard let actual = PostgresType(oid: found.type.typeOID), field.canBeWritten(as: actual)
      else {
        throw PostgresError(
          .configuration,
          "postgres: column \(SQLIdentifier.quoted(name)) of \(found.table.qualifiedName) is "
            + "\(found.type.sqlType), as which field \(field.path) (\(field.type.sqlName)) cannot "
            + "be written; alter or rename the column")
      }
      type = actual
    }
    for index in self.state.tables.indices {
      if self.state.tables[index].column(name) != nil {
        self.registerIfUnknown(field, name, type, in: index)
        continue
      }
      switch self.configuration.contract {
      case .discard where !self.state.tables[index].isNew:
        self.discard(field)
        return
      case .freeze where !self.state.tables[index].isNew:
        self.missing.append(
          "column \(SQLIdentifier.quoted(name)) \(type.sqlName) in "
            + "\(self.state.tables[index].qualifiedName) for field \(field.path)")
      case .evolve, .freeze, .discard:
        try self.add(
          name, type, path: field.path, salesforceType: field.salesforceType, to: index)
      }
    }
    self.noteCompound(field, name)
    self.columnNames.append(name)
  }

  /// Notes that updates have parts of the column's value, so that rebuilding from history puts them
  /// together as loading does.
  private mutating func noteCompound(_ field: TableMapping.Field, _ name: String) {
    guard case .record = field.content else { return }
    for index in self.state.tables.indices {
      guard let known = self.state.tables[index].registered[name], !known.isCompound else {
        continue
      }
      self.state.tables[index].registered.change(name) { $0.isCompound = true }
      self.note(self.state.tables[index], "compound", known.compoundNote)
    }
  }

  private mutating func discard(_ field: TableMapping.Field) {
    self.columnNames.append(nil)
    if self.isFirstSight { self.discarded.append(field.path) }
  }

  /// The schema has another type for a column than it was made with. Values are never cast: the
  /// new type gets the name, and the old column is kept under another.
  private mutating func changeType(_ field: TableMapping.Field) throws(PostgresError) {
    let others = self.state.tables.flatMap(\.registered).filter { column in
      column.path == field.path && column.name != field.name
    }
    let earlier = field.acceptedTypes.lazy.compactMap { type in
      others.first { $0.sqlType == type.sqlName }
    }.first
    if let earlier, !self.isFirstSight {
      // An event of an older schema, read again: it goes where its like went.
      try self.use(field, earlier.name)
      return
    }
    switch self.configuration.contract {
    case .discard: self.discard(field)
    case .freeze:
      let old = self.registered(field.name)?.sqlType ?? ""
      self.columnNames.append(nil)
      self.missing.append(
        "column \(SQLIdentifier.quoted(field.name)) as \(field.type.sqlName) for field "
          + "\(field.path): it is \(old)")
    case .evolve:
      let kept = self.nameForOld(field.name)
      for index in self.state.tables.indices {
        self.rename(field.name, to: kept, in: index)
        if let earlier { self.rename(earlier.name, to: field.name, in: index) }
      }
      try self.use(field, field.name)
    }
  }

  /// `amount__float8`, or with a number behind it when that is taken.
  private func nameForOld(_ name: String) -> String {
    let type = self.registered(name).flatMap { PostgresType(rawValue: $0.sqlType) }
    let base = "\(name)__\(type?.shortName ?? "old")"
    var number = 1
    while true {
      let candidate = SQLIdentifier.shortened(number == 1 ? base : "\(base)_\(number)")
      let isTaken = self.state.tables.contains { table in
        table.column(candidate) != nil || table.registered[candidate] != nil
      }
      if !isTaken { return candidate }
      number += 1
    }
  }

  // MARK: Statements

  private mutating func add(
    _ name: String, _ type: PostgresType, path: String, salesforceType: String?, to index: Int
  ) throws(PostgresError) {
    let table = self.state.tables[index]
    let column = SQLIdentifier.quoted(name)
    if self.creations[index] != nil {
      self.creations[index]?.fields.append("\(column) \(type.sqlName)")
    } else {
      self.statements.append(
        "ALTER TABLE \(table.qualifiedName) ADD COLUMN \(column) \(type.sqlName)")
      self.note(table, "add_column", "\(name) \(type.sqlName) for \(path)")
      self.changes.append(
        "column \(column) \(type.sqlName) added to \(table.qualifiedName)"
          + (try self.returning(name, to: table)))
    }
    if let salesforceType {
      self.statements.append(
        "COMMENT ON COLUMN \(table.qualifiedName).\(column) IS "
          + SQLIdentifier.literal(salesforceType))
    }
    self.state.tables[index].columns.append(
      TableState.Column(name: name, typeOID: type.oid, sqlType: type.sqlName))
    self.register(name, type, path, salesforceType, in: index)
  }

  /// What becomes of the earlier rows of a column that somebody has dropped, as the end of a
  /// sentence; empty for a column that was not there before.
  ///
  /// - Throws: `PostgresError` (lostTable) when the values cannot be had from anywhere.
  private mutating func returning(
    _ name: String, to table: TableState
  ) throws(PostgresError) -> String {
    guard table.registered[name] != nil else { return "" }
    // Columns that have just been made have no number.
    let isInHistory = self.state.tables.contains {
      $0.kind == .history && ($0.column(name)?.number ?? 0) > 0
    }
    guard table.kind == .current, isInHistory else {
      guard self.acceptsMissing else { throw table.missing(column: name) }
      return " again, where it was dropped; rows from before have no value in it"
    }
    self.note(table, Rebuilding.begun, "column \(name) was gone")
    return " again, where it was dropped, and is filled from the history"
  }

  private mutating func registerIfUnknown(
    _ field: TableMapping.Field, _ name: String, _ type: PostgresType, in index: Int
  ) {
    guard self.state.tables[index].registered[name] == nil else { return }
    self.note(self.state.tables[index], "adopt_column", "\(name) \(type.sqlName) for \(field.path)")
    self.register(name, type, field.path, field.salesforceType, in: index)
  }

  private mutating func register(
    _ name: String, _ type: PostgresType, _ path: String, _ salesforceType: String?, in index: Int
  ) {
    let table = self.state.tables[index]
    if self.state.tables[index].registered.change(name, { $0.sqlType = type.sqlName }) {
      // Registered, but its column was dropped by hand: it keeps its place.
      self.statements.append(
        self.bookkeeping.retype(column: name, of: table.name, sqlType: type.sqlName))
      return
    }
    let ordinal = (table.registered.last?.ordinal ?? 0) + 1
    let column = TableState.Registered(
      name: name, ordinal: ordinal, path: path, salesforceType: salesforceType,
      sqlType: type.sqlName)
    self.state.tables[index].registered.append(column)
    self.statements.append(
      self.bookkeeping.register(column, of: table.name, schemaID: self.mapping.schemaID))
  }

  private mutating func rename(_ name: String, to newName: String, in index: Int) {
    self.finishCreation(index)
    let table = self.state.tables[index]
    if self.state.tables[index].columns.change(name, { $0.name = newName }) {
      let (from, to) = (SQLIdentifier.quoted(name), SQLIdentifier.quoted(newName))
      self.statements.append("ALTER TABLE \(table.qualifiedName) RENAME COLUMN \(from) TO \(to)")
      self.note(table, "rename_column", "\(name) to \(newName)")
      self.changes.append("column \(from) of \(table.qualifiedName) renamed to \(to)")
      if table.kind == .current, table.column(name)?.typeOID == PostgresType.text.oid {
        let names = [name, newName].map { SQLIdentifier.literal($0) }
        self.statements.append(
          "UPDATE \(table.qualifiedName) SET _stale_fields = array_replace(_stale_fields, "
            + "\(names[0]), \(names[1])) WHERE \(names[0]) = ANY (_stale_fields)")
      }
    }
    self.renameRegistered(name, to: newName, in: index)
  }

  private mutating func renameRegistered(_ name: String, to newName: String, in index: Int) {
    let table = self.state.tables[index]
    guard self.state.tables[index].registered.change(name, { $0.name = newName }) else { return }
    self.statements.append(self.bookkeeping.rename(column: name, of: table.name, to: newName))
  }

  private mutating func register(_ table: TableState) {
    self.statements.append(
      self.bookkeeping.register(table: table.name, entity: self.mapping.entity, kind: table.kind))
  }

  private mutating func noteSchema() {
    for table in self.state.tables { self.note(table, "schema", "first seen") }
    self.state.knownSchemas.insert(self.mapping.schemaID)
  }

  private mutating func note(
    _ table: TableState, _ action: String, _ detail: String, isOfSchema: Bool = true
  ) {
    let isNamed = isOfSchema && !self.mapping.schemaID.isEmpty
    self.statements.append(
      self.bookkeeping.note(
        action, detail, on: table.name, schemaID: isNamed ? self.mapping.schemaID : nil))
  }
}

extension TableEvolution {
  /// What the tables will be.
  var tables: LayoutTables {
    let columns = self.state.dataColumns
    let places = Dictionary(
      columns.enumerated().map { ($0.element.name, $0.offset) },
      uniquingKeysWith: { first, _ in first })
    return LayoutTables(
      history: self.state.definition(.history), current: self.state.definition(.current),
      dataColumns: columns,
      columnIndices: self.columnNames.map { $0.flatMap { places[$0] } }, changes: self.changes,
      discarded: self.discarded)
  }
}

extension TableMapping.Field {
  fileprivate func canBeWritten(as type: PostgresType) -> Bool {
    let column = Column(name: self.name, path: [self.path], content: self.content)
    return CellEncoding.operation(from: column, to: type) != nil
  }
}
