internal import Pipeline
internal import PostgresClient

/// A statement that renames a column of a table.
package struct ColumnRename: Sendable, Equatable {
  /// SQL names, not quoted.
  var table: String
  var from: String
  var to: String
  var reason: Reason
  /// The schema that causes it.
  var schemaID: String

  enum Reason {
    /// The field has another type, whose values go to a column of that name.
    case type
    /// The field has another API name.
    case fieldName
    /// Another field has the name now.
    case otherField
  }
}

/// Computes the changes that let the tables of an entity hold a layout. A pure function: it neither
/// reads nor changes the database, and its state becomes that after the statements.
struct TableEvolution {
  var state: EntityState
  /// In the order of execution, without semicolons.
  var statements: [String] = []
  /// One sentence each.
  var changes: [String] = []
  /// The changes that recreate dropped objects.
  private(set) var repairs: [String] = []
  var discarded: [String] = []
  /// The statements only note the feed of the tables, and IDs of fields.
  private(set) var isOnlyFeed = false
  /// Tables to create, with the place of their statement. A rename empties the list, because later
  /// columns have to be added after the rename.
  var creations: [Int: TableCreation] = [:]
  /// Column names of the mapping's fields.
  var columnNames: [String?] = []
  var missing: [String] = []
  var renames: [ColumnRename] = []
  /// One sentence each, for every run.
  var warnings: [String] = []
  /// API names of fields whose columns the contract does not allow to be renamed.
  var refusedPaths: Set<String> = []

  let mapping: TableMapping
  let configuration: PostgresSinkConfiguration
  let bookkeeping: Bookkeeping
  private let feeder: TableFeeder?
  /// The feed that the layout's events come from.
  private let topic: String?
  let acceptsMissing: Bool
  /// The role may alter existing tables.
  private let mayAlter: Bool
  /// The layout belongs to another schema than the object has now.
  var isEarlier: Bool { self.currentSchema != nil && !self.isCurrent }
  var isFirstSight: Bool {
    !self.mapping.schemaID.isEmpty && !self.state.knownSchemas.contains(self.mapping.schemaID)
  }
  /// The layout belongs to the schema that the object has now.
  var isCurrent: Bool {
    !self.mapping.schemaID.isEmpty && self.currentSchema == self.mapping.schemaID
  }
  private let currentSchema: String?
  /// The layout is that of rows to be written now.
  private let isArriving: Bool

  /// - Parameters:
  ///   - feeder: the feeder of the tables; nil if nobody will write to them.
  ///   - topic: the topic of the layout; nil if there is none.
  ///   - currentSchema: the ID of the schema that the object has now; nil if it is unknown.
  ///   - isArriving: the layout is that of rows to be written now, and not of a plan.
  ///   - acceptsMissing: recreates missing tables that cannot be rebuilt, without rows.
  ///   - mayAlter: the role may alter existing tables.
  init(
    _ state: EntityState, _ mapping: TableMapping, _ configuration: PostgresSinkConfiguration,
    feeder: TableFeeder? = nil, topic: String? = nil, currentSchema: String? = nil,
    isArriving: Bool = false, acceptsMissing: Bool = false, mayAlter: Bool = true
  ) throws(PostgresError) {
    self.currentSchema = currentSchema
    self.isArriving = isArriving
    self.mayAlter = mayAlter
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
    self.addReadColumns()
    self.followRenames()
    self.followFields()
    for field in mapping.fields { try self.place(field) }
    self.noteStates()
    if !self.missing.isEmpty {
      throw PostgresError(
        .contract,
        "postgres: contract freeze: "
          + (mapping.schemaID.isEmpty ? "" : "schema \(mapping.schemaID) of ")
          + "\(mapping.entity) needs "
          + self.missing.joined(separator: "; ")
          + ". Run the statements that 'pubsub-etl plan' prints, or set contract to evolve or "
          + "discard")
    }
    let showsIDs = self.isNewest || self.isLast
    if self.isFirstSight { self.noteSchema() }
    self.isOnlyFeed = self.statements.isEmpty
    if showsIDs { self.learnIDs() }
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
          + "\(entity) and cannot also hold \(table.kind.rawValue) rows of \(self.mapping.entity); "
          + "set tables.\(table.kind.rawValue) so that each has its own table")
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

  /// Recreates a table that somebody has dropped or renamed.
  private mutating func createAgain(_ index: Int) throws(PostgresError) {
    let table = self.state.tables[index]
    let canBeRebuilt = table.kind == .current && self.state.hasHistoryToRebuildFrom
    guard canBeRebuilt || self.acceptsMissing else { throw table.missing(self.mapping.entity) }
    self.create(index, isRebuilt: canBeRebuilt)
    self.repairs.append(
      canBeRebuilt
        ? "table \(table.qualifiedName) was missing and is rebuilt from the history; grant "
          + "privileges on it and its views again. Records without history are not in it"
        : "table \(table.qualifiedName) was missing and has been created again, without its rows")
    self.changes += self.repairs.suffix(1)
  }

  private mutating func create(_ index: Int, isRebuilt: Bool = false) {
    let table = self.state.tables[index]
    let fixed =
      self.mapping.family == .changeEvent
      ? TableDefinition.allFixedColumns(table.kind) : TableDefinition.fixedColumns(table.kind)
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
      // Current tables get no such index, because every update would have to change it.
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
    for column in fixed {
      self.state.tables[index].columns.append(
        TableState.Column(
          name: column.name, typeOID: column.typeOID, sqlType: column.sqlType))
    }
  }

  mutating func finishCreation(_ index: Int) {
    guard let creation = self.creations.removeValue(forKey: index) else { return }
    let table = self.state.tables[index]
    // Rows of the current table are updated often. If their page has room for the next version, no
    // index changes, and the space of the old version is reused.
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
    if table.kind == .current, self.mapping.family == .changeEvent {
      self.statements.append(
        "CREATE INDEX ON \(table.qualifiedName) (id) WHERE \(RepairList.condition)")
    }
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
          "table \(self.state.tables[index].qualifiedName) was taken over for topic \(topic)")
      }
      self.state.tables[index].feed = feed
    }
  }

  /// If somebody has renamed a column and a stage now gives the field that name, adopts it in the
  /// bookkeeping, and so in the history's lists.
  private mutating func followRenames() {
    for index in self.state.tables.indices {
      for renamed in self.state.tables[index].renamedColumns {
        let isWanted = self.mapping.fields.contains {
          $0.path == renamed.path && $0.name == renamed.found
        }
        guard isWanted else { continue }
        self.note(
          self.state.tables[index], "rename_column",
          Bookkeeping.renaming(renamed.registered, renamed.found))
        self.renameRegistered(renamed.registered, to: renamed.found, in: index)
      }
    }
  }

  /// Gives each table the columns that only the other has, because one was created later or not
  /// written for some time.
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
          try self.add(column, type, to: index)
        }
      }
    }
  }

  /// Tables of earlier versions get the columns of records that are read.
  private mutating func addReadColumns() {
    guard self.configuration.reads != nil, self.mayAlter, self.configuration.contract != .freeze,
      self.mapping.family == .changeEvent
    else { return }
    for index in self.state.tables.indices where self.state.tables[index].isTable {
      let table = self.state.tables[index]
      let lacking = TableDefinition.readColumns.filter { table.column($0.name) == nil }
      guard !lacking.isEmpty, !table.isNew else { continue }
      let columns = lacking.map { "ADD COLUMN IF NOT EXISTS \($0.definition)" }
      self.statements.append(
        "ALTER TABLE \(table.qualifiedName) \(columns.joined(separator: ", "))")
      if table.kind == .current {
        self.statements.append(
          "CREATE INDEX ON \(table.qualifiedName) (id) WHERE \(RepairList.condition)")
      }
      self.note(
        table, "add_column", lacking.map(\.name).joined(separator: ", "), isOfSchema: false)
      self.changes.append(
        "table \(table.qualifiedName): columns \(lacking.map(\.name).joined(separator: " and ")) "
          + "added, for records that are read")
      for column in lacking {
        self.state.tables[index].columns.append(
          TableState.Column(
            name: column.name, typeOID: column.typeOID, sqlType: column.sqlType))
      }
    }
  }

  // MARK: Notes

  private mutating func register(_ table: TableState) {
    self.statements.append(
      self.bookkeeping.register(table: table.name, entity: self.mapping.entity, kind: table.kind))
  }

  /// Notes columns whose fields events no longer have, and those that have them again.
  private mutating func noteStates() {
    guard !self.mapping.schemaID.isEmpty, self.mapping.family == .changeEvent else { return }
    let isNewest = self.isFirstSight || self.isCurrent
    let isEarlier = self.isEarlier
    let used = Set(self.columnNames.compactMap { $0 })
    for index in self.state.tables.indices where !self.state.tables[index].isNew {
      for column in self.state.tables[index].registered {
        switch (column.state, used.contains(column.name)) {
        // Events of a known schema after others that lack the field: it may have been restored.
        case (.gone, true) where isNewest || !isEarlier && self.isArriving:
          self.note(.filling, column: column.name, in: index)
        case (.gone, _): self.comment(column: column.name, goneSince: column.since, in: index)
        case (nil, _), (_, true): continue
        // No event had the field, so it is not missing in events.
        case (_, false) where column.isOnlyRead: continue
        case (_, false) where isNewest && !isEarlier:
          self.note(.gone, column: column.name, in: index)
        // The field was added, converted or restored later; the schema's events leave it empty.
        case (.complete, false) where isEarlier:
          self.note(.filling, column: column.name, in: index)
        case (_, false): continue
        }
      }
    }
  }

  /// Notes the state of a column of a table that exists.
  mutating func note(_ state: ColumnStates.State, column: String, in index: Int) {
    let table = self.state.tables[index]
    guard !table.isNew, self.mapping.family == .changeEvent,
      self.state.tables[index].registered.change(column, { $0.state = state })
    else { return }
    self.statements.append(
      ColumnStates(self.bookkeeping).set(state, column: column, of: table.name))
    self.comment(column: column, goneSince: state == .gone ? self.state.today : nil, in: index)
  }

  /// Has the comment of a column say since when events lack its field.
  private mutating func comment(column name: String, goneSince day: String?, in index: Int) {
    let table = self.state.tables[index]
    guard table.isOwned, day != "", let column = table.column(name) else { return }
    let comment = ColumnStates.comment(column.comment, goneSince: day)
    guard comment != column.comment else { return }
    self.state.tables[index].columns.change(name) { $0.comment = comment }
    self.statements.append(
      "COMMENT ON COLUMN \(table.qualifiedName).\(SQLIdentifier.quoted(name)) IS "
        + (comment.map { SQLIdentifier.literal($0) } ?? "NULL"))
  }

  private mutating func noteSchema() {
    for table in self.state.tables { self.note(table, "schema", "first seen") }
    self.state.knownSchemas.insert(self.mapping.schemaID)
  }

  mutating func note(
    _ table: TableState, _ action: String, _ detail: String, isOfSchema: Bool = true
  ) {
    let isNamed = isOfSchema && !self.mapping.schemaID.isEmpty
    self.statements.append(
      self.bookkeeping.note(
        action, detail, on: table.name, schemaID: isNamed ? self.mapping.schemaID : nil))
  }
}

extension TableEvolution {
  /// The tables after the statements.
  var tables: LayoutTables {
    let columns = self.state.dataColumns
    let places = Dictionary(
      columns.enumerated().map { ($0.element.name, $0.offset) },
      uniquingKeysWith: { first, _ in first })
    return LayoutTables(
      history: self.state.definition(.history), current: self.state.definition(.current),
      dataColumns: columns,
      columnIndices: self.columnNames.map { $0.flatMap { places[$0] } }, changes: self.changes,
      discarded: self.discarded, warnings: self.warnings)
  }
}
