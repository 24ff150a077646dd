package import Pipeline
package import PostgresClient

/// The changes that a run would make in a database, for layouts known beforehand.
package struct TablePlan: Sendable, Equatable {
  /// In the order of execution, without semicolons.
  package var statements: [String] = []
  /// Why contract `freeze` would end the run until the statements have been executed; one sentence
  /// per schema.
  package var refusals: [String] = []
  /// Dropped tables that the statements recreate; one sentence each.
  package var notes: [String] = []
  /// Views that lack new values, or will after the statements, or that a run cannot update.
  package var outdatedViews: [TableFinding] = []
  /// Fields that contract `discard` leaves out, by entity.
  package var discarded: [String: [String]] = [:]
  /// The tables that rows would be written to.
  package var tables: [TableDefinition] = []
  /// The columns that the statements rename, in order.
  var renames: [ColumnRename] = []

  /// SQL text for `psql`; empty if nothing is missing.
  package var sql: String { self.statements.map { $0 + ";\n" }.joined() }
}

extension TableCatalog {
  /// The statements that `prepare` and then `tables` for each of the layouts would execute. Reads
  /// the database, changes nothing.
  package func plan(
    _ layouts: [RecordLayout], over connection: PostgresConnection
  ) throws(PostgresError) -> TablePlan {
    var plan = TablePlan(statements: try self.missingBookkeeping(over: connection))
    plan.statements += try self.missingColumnStates(over: connection)
    plan.statements += try self.missingReadTables(over: connection)
    plan.statements += try self.missingFieldTables(over: connection)
    let existing = try self.existingBookkeeping(over: connection)
    var states: [String: EntityState] = [:]
    var tables: [String: [TableDefinition]] = [:]
    if let conflict = try self.feedConflicts(existing, over: connection).first {
      throw conflict.error
    }
    let newest = Dictionary(
      layouts.map { ($0.entity, $0.schemaID) }, uniquingKeysWith: { _, last in last })
    for layout in layouts {
      let mapping = try TableMapping(layout, self.configuration)
      var state: EntityState
      if let known = states[layout.entity] {
        state = known
      } else {
        state = try self.emptyState(of: mapping)
        try state.read(over: connection, bookkeeping: existing)
      }
      let isNewest = newest[layout.entity] == layout.schemaID
      let evolution = try self.evolution(
        state, mapping, topic: layout.topic, currentSchema: isNewest ? mapping.schemaID : nil,
        for: &plan)
      plan.statements += evolution.statements
      states[layout.entity] = evolution.state
      let made = evolution.tables
      tables[layout.entity] = [made.history, made.current].compactMap { $0 }
      let discarded = zip(mapping.fields, made.columnIndices).filter { $0.1 == nil }.map(\.0.path)
      if !discarded.isEmpty { plan.discarded[layout.entity, default: []] += discarded }
    }
    // Includes missing tables of channels, whose layouts are unknown beforehand.
    for state in try self.registeredStates(existing, isMissing: true, over: connection)
    where states[state.entity] == nil {
      let evolution = try self.evolution(
        state, self.mapping(of: state), topic: nil, for: &plan)
      plan.statements += evolution.statements
      tables[state.entity] = [evolution.tables.history, evolution.tables.current].compactMap { $0 }
    }
    plan.tables = tables.sorted { $0.key < $1.key }.flatMap(\.value)
    return plan
  }

  /// Includes all necessary changes, even those that the contract forbids and those after a loss.
  private func evolution(
    _ state: EntityState, _ mapping: TableMapping, topic: String?, currentSchema: String? = nil,
    for plan: inout TablePlan
  ) throws(PostgresError) -> TableEvolution {
    var configuration = self.configuration
    var acceptsMissing = false
    while true {
      do throws(PostgresError) {
        let evolution = try TableEvolution(
          state, mapping, configuration, feeder: self.feeder, topic: topic,
          currentSchema: currentSchema,
          acceptsMissing: acceptsMissing)
        plan.notes += evolution.repairs
        plan.renames += evolution.renames
        plan.notes += evolution.warnings
        return evolution
      } catch {
        switch error.disposition {
        case .contract where configuration.contract != .evolve: configuration.contract = .evolve
        case .lostTable where !acceptsMissing: acceptsMissing = true
        default: throw error
        }
        plan.refusals.append(error.message)
      }
    }
  }

  /// Plans everything that a run creates, views included, on a separate read-only connection.
  package static func plan(
    _ layouts: [RecordLayout], _ configuration: PostgresSinkConfiguration,
    feeder: TableFeeder? = nil
  ) throws(PostgresError) -> TablePlan {
    let connection = try PostgresConnection(configuration.connection.brief)
    do throws(PostgresError) {
      return try connection.quickly { () throws(PostgresError) in
        try Self.plan(layouts, configuration, feeder: feeder, over: connection)
      }
    } catch {
      throw configuration.explained(error)
    }
  }

  private static func plan(
    _ layouts: [RecordLayout], _ configuration: PostgresSinkConfiguration, feeder: TableFeeder?,
    over connection: PostgresConnection
  ) throws(PostgresError) -> TablePlan {
    try connection.transaction { () throws(PostgresError) in
      try connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
      let catalog = TableCatalog(configuration, feeder: feeder)
      if let error = try catalog.hiddenBookkeeping(over: connection) { throw error }
      let existing = try catalog.existingBookkeeping(over: connection)
      let hasTables = existing.contains("_etl_table")
      var plan = try catalog.plan(layouts, over: connection)
      if existing.isSuperset(of: Bookkeeping.names) {
        plan.outdatedViews =
          try catalog.outdatedReaders(over: connection) + catalog.foreignViews(over: connection)
          + catalog.futureReaders(of: plan.renames, over: connection)
      }
      guard !plan.tables.isEmpty else { return plan }
      let views = ReportingViews(configuration)
      plan.statements += try views.plan(
        plan.tables, renames: plan.renames, hasBookkeeping: hasTables,
        makesReads: configuration.reads != nil,
        makesPolls: configuration.reads != nil && !configuration.polls.isEmpty, over: connection)
      return plan
    }
  }
}
