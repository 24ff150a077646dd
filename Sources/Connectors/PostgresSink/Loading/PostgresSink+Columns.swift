package import Pipeline
internal import PostgresClient

/// Keeps the states of columns, and says which of them have to be read.
extension PostgresSink {
  private var states: ColumnStates { ColumnStates(self.catalog.bookkeeping) }

  /// Names of an object's tables.
  private func tableNames(of entity: String) throws(PostgresError) -> [String] {
    try self.catalog.emptyState(ofEntity: entity, kinds: self.configuration.mode.tableKinds)
      .tables.map(\.name)
  }

  package func fields(of entity: String) throws -> [String] {
    try self.whenKept { states in
      try states.fields(ofTables: self.tableNames(of: entity), over: self.connection)
    } ?? []
  }

  package func noteAccess(
    _ access: [String: FieldAccess], of entity: String
  ) throws -> [FillingColumn] {
    let filling = try self.whenKept { states in
      let tables = try self.tableNames(of: entity)
      try states.note(access, tables: tables, over: self.connection)
      // The object was described for this.
      if !access.isEmpty { try self.reads.repairCalls.add(1, over: self.connection) }
      return try states.filling(tables: tables, over: self.connection)
    }
    var known = self.reads.fields[entity] ?? KnownReads.Fields()
    (known.access, known.filling) = (access, filling?.map(\.field) ?? [])
    self.reads.fields[entity] = known
    func isPart(_ key: String) -> Bool {
      key.hasPrefix("\(entity) \(ReadPass.fillingPrefix)")
    }
    if known.filling.isEmpty, self.reads.passes.keys.contains(where: isPart) {
      try self.session.retrying {
        try self.reads.passTable.forgetParts(of: entity, but: nil, over: $0)
      }
      self.reads.passes = self.reads.passes.filter { !isPart($0.key) }
    }
    return filling ?? []
  }

  package func noteDescriptions(_ fields: [FieldDescription], of entity: String) throws {
    self.reads.fields[entity, default: KnownReads.Fields()].descriptions = fields
    let schema = self.configuration.schema
    let hasChanged = try self.describe(
      orWarn: "the tables _fields and _picklist of schema \(schema) were not updated. If somebody "
        + "else made one of them, rename it"
    ) { () throws(PostgresError) in
      try FieldTables(self.catalog.bookkeeping).store(fields, of: entity, over: self.connection)
    }
    try self.comment(on: entity)
    try self.updateFormulas(of: entity)
    if hasChanged == true { try self.updateFormulas(besides: entity) }
  }

  /// Has the comments of an object's columns say what the org says about their fields.
  func comment(on entity: String) throws {
    guard let fields = self.reads.fields[entity]?.descriptions, !fields.isEmpty,
      self.configuration.contract != .freeze
    else { return }
    _ = try self.describe(
      orWarn: "the comments of the columns of \(entity) were not updated; the next run tries again"
    ) { () throws(PostgresError) in
      try FieldComments(fields, self.catalog.bookkeeping).update(
        self.tableNames(of: entity), over: self.connection)
    }
  }

  /// Never ends a run, because readers can do without descriptions; nil if they could not be stored.
  private func describe<Value>(
    orWarn consequence: String, _ body: () throws(PostgresError) -> Value
  ) throws -> Value? {
    let isLocked: Set<String> = [SQLState.lockNotAvailable]
    do {
      return try self.session.retrying(butFor: isLocked) { connection in
        try connection.transaction { () throws(PostgresError) in
          try connection.execute(self.configuration.lockLimit)
          return try body()
        }
      }
    } catch let error as PostgresError
      where error.disposition != .retry || isLocked.contains(error.sqlState ?? "")
    {
      self.warn("\(error.message); so \(consequence)")
      return nil
    }
  }

  /// Notes the states of columns that were just created.
  func noteStates(of entity: String) throws {
    guard let access = self.reads.fields[entity]?.access, !access.isEmpty else { return }
    _ = try self.whenKept { states in
      try states.note(access, tables: self.tableNames(of: entity), over: self.connection)
    }
  }

  /// Notes that columns have the values of every record, in the open transaction.
  func noteComplete(_ pass: ReadPass, begunAt: String) throws {
    let kept = try self.states.kept(over: self.connection)
    guard kept.states else { return }
    let known = self.reads.fields[pass.entity] ?? KnownReads.Fields()
    if !pass.isRefresh {
      try self.states.complete(
        pass.part == nil ? nil : known.filling,
        columns: known.readColumns,
        calculated: known.access.filter { $0.value == .calculated }.map(\.key),
        tables: self.tableNames(of: pass.entity), begunAt: begunAt, over: self.connection)
    }
    guard kept.readTimes, pass.part == nil || pass.isRefresh else { return }
    try self.states.refreshed(
      pass.isRefresh ? pass.fields ?? [] : nil, columns: known.readColumns,
      tables: self.tableNames(of: pass.entity), begunAt: begunAt, over: self.connection)
  }

  /// Nil if the database keeps no states.
  private func whenKept<Value>(_ body: (ColumnStates) throws -> Value) throws -> Value? {
    guard self.takesReads else { return nil }
    return try self.session.retrying {
      try self.states.areKept(over: $0) ? try body(self.states) : nil
    }
  }
}
