internal import Pipeline
internal import PostgresClient

// Chooses the column for each field of the layout, with the statements that create it.
extension TableEvolution {
  mutating func place(_ field: TableMapping.Field) throws(PostgresError) {
    guard !self.refusedPaths.contains(field.path) else {
      self.columnNames.append(nil)
      return
    }
    guard let field = self.following(field) else {
      self.discard(field)
      return
    }
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

  func registered(_ name: String) -> TableState.Registered? {
    for table in self.state.tables {
      if let found = table.registered[name] { return found }
    }
    return nil
  }

  /// Uses a column for a field and adds it to the tables that lack it.
  private mutating func use(_ field: TableMapping.Field, _ name: String) throws(PostgresError) {
    var found: (type: TableState.Column, table: TableState)?
    for table in self.state.tables {
      guard let column = table.column(name) else { continue }
      if let found, !found.type.hasForm(of: column) {
        throw PostgresError(
          .configuration,
          "postgres: column \(SQLIdentifier.quoted(name)) is \(found.type.sqlType) in "
            + "\(found.table.qualifiedName) but \(column.sqlType) in \(table.qualifiedName); "
            + "change the type of one of them")
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
            + "\(found.type.sqlType), which cannot hold field \(field.path) "
            + "(\(field.type.sqlName)); change the column's type or rename it")
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
        try self.add(field.registered(as: name, type), type, to: index)
      }
    }
    self.noteCompound(field, name)
    self.noteSource(of: field, name)
    self.columnNames.append(name)
  }

  /// Notes whether events have the field, which may have changed.
  private mutating func noteSource(of field: TableMapping.Field, _ name: String) {
    guard self.isNewest else { return }
    for index in self.state.tables.indices {
      guard self.state.tables[index].registered[name]?.isOnlyRead == !field.isOnlyRead else {
        continue
      }
      self.state.tables[index].registered.change(name) { $0.isOnlyRead = field.isOnlyRead }
      self.statements.append(
        self.bookkeeping.set(
          "first_schema_id", to: field.isOnlyRead ? nil : self.mapping.schemaID, column: name,
          of: self.state.tables[index].name))
    }
  }

  /// Notes that updates have only parts of the column's value, so that a rebuild from history
  /// merges them as loading does.
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

  /// The schema's type differs from the column's. Values are never cast: a column of the new type
  /// takes the name, and the old column is kept under another name.
  private mutating func changeType(_ field: TableMapping.Field) throws(PostgresError) {
    let others = self.state.tables.flatMap(\.registered).filter { column in
      column.path == field.path && column.name != field.name
    }
    let earlier = field.acceptedTypes.lazy.compactMap { type in
      others.first { $0.sqlType == type.sqlName }
    }.first
    if let earlier, !self.isFirstSight, !self.isCurrent {
      // An event of an older schema that is read again uses the column of that schema.
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
        self.rename(field.name, to: kept, in: index, .type)
        self.setID(nil, of: kept, in: index)
        // No schema shows that nothing fills it any more.
        if field.isOnlyRead, self.state.hasColumnStates {
          self.note(.gone, column: kept, in: index)
        }
        if let earlier { self.rename(earlier.name, to: field.name, in: index, .type) }
      }
      try self.use(field, field.name)
    }
  }

  /// `amount__float8`, with a number appended if that name is taken.
  func nameForOld(_ name: String) -> String {
    let type = self.registered(name).flatMap { PostgresType(rawValue: $0.sqlType) }
    return self.freeName("\(name)__\(type?.shortName ?? "old")")
  }

  /// A name that no column has, with a number appended if necessary.
  func freeName(_ base: String) -> String {
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

  /// - Parameter added: the column; its ordinal and state do not count.
  mutating func add(
    _ added: TableState.Registered, _ type: PostgresType, to index: Int
  ) throws(PostgresError) {
    let table = self.state.tables[index]
    let name = added.name
    let column = SQLIdentifier.quoted(name)
    var isRebuilt = false
    if self.creations[index] != nil {
      self.creations[index]?.fields.append("\(column) \(type.sqlName)")
    } else {
      self.statements.append(
        "ALTER TABLE \(table.qualifiedName) ADD COLUMN \(column) \(type.sqlName)")
      self.note(table, "add_column", "\(name) \(type.sqlName) for \(added.path)")
      let (isFromHistory, note) = try self.returning(name, to: table)
      isRebuilt = isFromHistory
      self.changes.append(
        "column \(column) \(type.sqlName) added to \(table.qualifiedName)\(note)")
    }
    if let salesforceType = added.salesforceType {
      self.statements.append(
        "COMMENT ON COLUMN \(table.qualifiedName).\(column) IS "
          + SQLIdentifier.literal(salesforceType))
    }
    self.state.tables[index].columns.append(
      TableState.Column(
        name: name, typeOID: type.oid, sqlType: type.sqlName, comment: added.salesforceType))
    self.register(added, type, in: index)
    if self.state.hasColumnStates, !isRebuilt { self.note(.filling, column: name, in: index) }
  }

  /// Whether the history fills the column, and the end of a sentence about the earlier rows of a
  /// column that somebody dropped; empty for a new column.
  ///
  /// - Throws: `PostgresError` (lostTable) if the values are lost.
  private mutating func returning(
    _ name: String, to table: TableState
  ) throws(PostgresError) -> (isFromHistory: Bool, note: String) {
    guard table.registered[name] != nil else { return (false, "") }
    // New columns have no number yet.
    let isInHistory = self.state.tables.contains {
      $0.kind == .history && ($0.column(name)?.number ?? 0) > 0
    }
    guard table.kind == .current, isInHistory else {
      guard self.acceptsMissing else { throw table.missing(column: name) }
      return (false, " again after it was dropped; earlier rows have no value in it")
    }
    self.note(table, Rebuilding.begun, "column \(name) was gone")
    return (true, " again after it was dropped, and filled from the history")
  }

  private mutating func registerIfUnknown(
    _ field: TableMapping.Field, _ name: String, _ type: PostgresType, in index: Int
  ) {
    guard self.state.tables[index].registered[name] == nil else { return }
    self.note(self.state.tables[index], "adopt_column", "\(name) \(type.sqlName) for \(field.path)")
    self.register(field.registered(as: name, type), type, in: index)
    if self.state.hasColumnStates { self.note(.filling, column: name, in: index) }
  }

  private mutating func register(
    _ added: TableState.Registered, _ type: PostgresType, in index: Int
  ) {
    let table = self.state.tables[index]
    let name = added.name
    if self.state.tables[index].registered.change(name, { $0.sqlType = type.sqlName }) {
      // A registered column that was dropped by hand keeps its place.
      self.statements.append(
        self.bookkeeping.retype(column: name, of: table.name, sqlType: type.sqlName))
      return
    }
    var column = added
    (column.state, column.isCompound) = (nil, false)
    column.ordinal = (table.registered.last?.ordinal ?? 0) + 1
    column.sqlType = type.sqlName
    if !self.state.hasFieldIDs { column.fieldID = nil }
    // One column has the ID: not that of another name which a stage gave the field before.
    for other in table.registered where other.fieldID != nil && other.fieldID == column.fieldID {
      self.setID(nil, of: other.name, in: index)
    }
    self.state.tables[index].registered.append(column)
    self.statements.append(
      self.bookkeeping.register(column, of: table.name, schemaID: self.mapping.schemaID))
    if column.isOnlyRead, self.state.hasColumnStates {
      self.statements.append(
        ColumnStates(self.bookkeeping).set(.withoutEvents, column: name, of: table.name))
    }
  }

  /// - Parameter explanation: the end of the sentence about the change.
  mutating func rename(
    _ name: String, to newName: String, in index: Int, _ reason: ColumnRename.Reason,
    _ explanation: String = ""
  ) {
    self.finishCreation(index)
    let table = self.state.tables[index]
    if self.state.tables[index].columns.change(name, { $0.name = newName }) {
      let (from, to) = (SQLIdentifier.quoted(name), SQLIdentifier.quoted(newName))
      self.statements.append("ALTER TABLE \(table.qualifiedName) RENAME COLUMN \(from) TO \(to)")
      self.note(table, "rename_column", Bookkeeping.renaming(name, newName))
      self.renames.append(
        ColumnRename(
          table: table.name, from: name, to: newName, reason: reason,
          schemaID: self.mapping.schemaID))
      self.changes.append(
        "column \(from) of \(table.qualifiedName) renamed to \(to)\(explanation)")
      if table.kind == .current, table.column(name)?.typeOID == PostgresType.text.oid {
        let names = [name, newName].map { SQLIdentifier.literal($0) }
        self.statements.append(
          "UPDATE \(table.qualifiedName) SET _stale_fields = array_replace(_stale_fields, "
            + "\(names[0]), \(names[1])) WHERE \(names[0]) = ANY (_stale_fields)")
      }
      if table.kind == .current, reason != .type {
        // A pass that has kept events starts again: they would be in columns of other fields.
        let kept = self.bookkeeping.qualified(KeptEvents.name(table.name))
        self.statements.append("DROP TABLE IF EXISTS \(kept)")
      }
    }
    self.renameRegistered(name, to: newName, in: index)
  }

  mutating func renameRegistered(_ name: String, to newName: String, in index: Int) {
    let table = self.state.tables[index]
    guard self.state.tables[index].registered.change(name, { $0.name = newName }) else { return }
    self.statements.append(self.bookkeeping.rename(column: name, of: table.name, to: newName))
  }
}

extension TableMapping.Field {
  /// The column of the field in the bookkeeping.
  fileprivate func registered(as name: String, _ type: PostgresType) -> TableState.Registered {
    var column = TableState.Registered(
      name: name, ordinal: 0, path: self.path, salesforceType: self.salesforceType,
      fieldID: self.fieldID, sqlType: type.sqlName)
    column.isOnlyRead = self.isOnlyRead
    return column
  }

  fileprivate func canBeWritten(as type: PostgresType) -> Bool {
    let column = Column(name: self.name, path: [self.path], content: self.content)
    return CellEncoding.operation(from: column, to: type) != nil
  }
}
