package import Pipeline

/// What a run would change in a database for layouts that are known beforehand.
package struct TablePlan: Sendable, Equatable {
  /// In the order of execution, without semicolons.
  package var statements: [String] = []
  /// Why contract `freeze` would end the run until the statements have been executed; one sentence
  /// per schema.
  package var refusals: [String] = []
  /// Fields that contract `discard` leaves out, by entity.
  package var discarded: [String: [String]] = [:]
  /// The tables that rows would be written to.
  package var tables: [TableDefinition] = []

  /// SQL text that `psql` takes; empty when nothing is missing.
  package var sql: String { self.statements.map { $0 + ";\n" }.joined() }
}

extension TableCatalog {
  /// The statements that `prepare` and then `tables` for each of the layouts would execute. Reads
  /// the database, changes nothing.
  package func plan(
    _ layouts: [RecordLayout], over connection: PostgresConnection
  ) throws(PostgresError) -> TablePlan {
    var plan = TablePlan(statements: try self.missingBookkeeping(over: connection))
    let hasBookkeeping = plan.statements.isEmpty
    var states: [String: EntityState] = [:]
    var tables: [String: [TableDefinition]] = [:]
    for layout in layouts {
      let mapping = try TableMapping(layout, self.configuration)
      var state: EntityState
      if let known = states[layout.entity] {
        state = known
      } else {
        state = try self.emptyState(of: mapping)
        try state.read(over: connection, hasBookkeeping: hasBookkeeping)
      }
      let evolution: TableEvolution
      do throws(PostgresError) {
        evolution = try TableEvolution(state, mapping, self.configuration)
      } catch {
        guard error.disposition == .contract else { throw error }
        // What the contract forbids to add is what the plan is asked for.
        plan.refusals.append(error.message)
        var configuration = self.configuration
        configuration.contract = .evolve
        evolution = try TableEvolution(state, mapping, configuration)
      }
      plan.statements += evolution.statements
      states[layout.entity] = evolution.state
      let made = evolution.tables
      tables[layout.entity] = [made.history, made.current].compactMap { $0 }
      let discarded = zip(mapping.fields, made.columnIndices).filter { $0.1 == nil }.map(\.0.path)
      if !discarded.isEmpty { plan.discarded[layout.entity, default: []] += discarded }
    }
    plan.tables = tables.sorted { $0.key < $1.key }.flatMap(\.value)
    return plan
  }

  /// The plan for everything a run makes, views included, on a connection of its own that may not
  /// write.
  package static func plan(
    _ layouts: [RecordLayout], _ configuration: PostgresSinkConfiguration
  ) throws(PostgresError) -> TablePlan {
    let connection = try PostgresConnection(configuration.connection)
    return try connection.transaction { () throws(PostgresError) in
      try connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
      let catalog = TableCatalog(configuration)
      let hasBookkeeping = try catalog.missingBookkeeping(over: connection).isEmpty
      var plan = try catalog.plan(layouts, over: connection)
      guard !layouts.isEmpty else { return plan }
      plan.statements += try ReportingViews(schema: configuration.schema).plan(
        plan.tables.filter { $0.kind == .current }, hasBookkeeping: hasBookkeeping,
        over: connection)
      return plan
    }
  }
}
