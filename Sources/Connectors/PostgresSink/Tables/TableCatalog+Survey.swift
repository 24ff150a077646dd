internal import Pipeline
package import PostgresClient

/// Actions in `_etl_journal` of a current table whose rows have to come from the history.
enum Rebuilding {
  static let begun = "rebuild"
  static let done = "rebuilt"
}

/// A manual change of a table of the sink.
package struct TableFinding: Sendable, Equatable {
  package var entity: String
  /// The finding and its remedy.
  package var message: String
  /// SQL at the end of the message or in it, joined by `; `.
  package var statements: [String] = []
  /// The run's error; nil if the run repairs the change.
  package var disposition: PostgresError.Disposition?
  package var kind = Kind.damage

  package enum Kind: Sendable {
    case damage
    /// A view shows too little, although the tables are right.
    case outdatedReader
  }
}

/// Compares the tables with the bookkeeping, for runs before their first row and for read-only
/// commands.
extension TableCatalog {
  /// Everything that prevents loading the tables of this sink or that the next run repairs. Changes
  /// nothing.
  package func survey(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    let existing = try self.existingBookkeeping(over: connection)
    var findings: [TableFinding] = []
    let lost = Bookkeeping.names.filter { !existing.contains($0) }
    if !existing.isEmpty, !lost.isEmpty {
      findings.append(
        TableFinding(entity: "", message: Self.lostBookkeeping(lost), disposition: nil))
    }
    for sequence in try self.laggingSequences(existing, over: connection) {
      findings.append(
        TableFinding(
          entity: "",
          message: "\(sequence.finding); the next run sets it, or its owner: \(sequence.remedy)",
          disposition: nil))
    }
    if let error = try self.hiddenBookkeeping(over: connection) {
      findings.append(
        TableFinding(entity: "", message: error.message, disposition: error.disposition))
    }
    let states = try self.registeredStates(existing, over: connection)
    if lost.isEmpty {
      findings += try self.outdatedReaders(of: states, over: connection)
    }
    findings += try self.viewConflicts(of: states, over: connection)
    if lost.isEmpty {
      findings += try self.foreignViews(over: connection) { () throws(PostgresError) in states }
    }
    for state in states {
      for table in state.tables {
        if !table.exists, table.kind == .current, state.hasHistoryToRebuildFrom {
          findings.append(
            TableFinding(
              entity: state.entity,
              message:
                "postgres: table \(table.qualifiedName), the current of \(state.entity), was "
                + "dropped or renamed; the next run creates it again and fills it from the "
                + "history",
              disposition: nil))
          continue
        }
        let error =
          table.exists
          ? table.obstacle() ?? table.renamedColumns.first.map { table.error($0) }
          : table.missing(state.entity)
        if let error = error.map(self.configuration.explained) {
          findings.append(
            TableFinding(
              entity: state.entity, message: error.message, disposition: error.disposition))
        }
      }
    }
    return findings
  }

  /// Views of the sink whose columns other views prevent from following the table's.
  private func viewConflicts(
    of states: [EntityState], over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    var findings: [TableFinding] = []
    for tables in states.compactMap(\.reported) {
      findings += try self.viewConflicts(tables, over: connection)
    }
    return findings
  }

  /// The same for all tables of this sink, at the start of a run. Without other views, no table is
  /// looked at.
  func viewConflicts(over connection: PostgresConnection) throws(PostgresError) -> [TableFinding] {
    let others = try connection.query(
      """
      SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_rewrite AS r \
      ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid \
      JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class LEFT JOIN pg_catalog.pg_class AS c \
      ON d.refclassid = 'pg_catalog.pg_class'::regclass AND c.oid = d.refobjid AND c.relkind = 'v' \
      AND c.oid <> v.oid LEFT JOIN pg_catalog.pg_proc AS p \
      ON d.refclassid = 'pg_catalog.pg_proc'::regclass AND p.oid = d.refobjid \
      JOIN pg_catalog.pg_namespace AS n ON n.oid IN (c.relnamespace, p.pronamespace) \
      WHERE n.nspname = $1 AND NOT (v.relnamespace = n.oid AND p.oid IS NOT NULL \
      AND right(v.relname, 9) = '_versions'))
      """, [self.configuration.schema])
    guard others[0, 0] == "t" else { return [] }
    return try self.viewConflicts(
      of: self.registeredStates(Set(Bookkeeping.names), over: connection), over: connection)
  }

  /// The same for one table.
  func viewConflicts(
    _ tables: ReportedTables, over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    let views = ReportingViews(self.configuration)
    let table = tables.current
    func finding(_ message: String, _ statements: [String]) -> TableFinding {
      TableFinding(
        entity: table.entity, message: message, statements: statements, disposition: nil,
        kind: .outdatedReader)
    }
    return try self.inquiring(table.entity, over: connection) { () throws(PostgresError) in
      var findings =
        try views.conflict(table, over: connection).map { view in
          [finding("postgres: \(view.message)", view.statements)]
        } ?? []
      if let history = tables.history,
        let message = try views.stateConflict(of: table, history: history, over: connection)
      {
        findings.append(finding(message, []))
      }
      return findings
    }
  }

  static func lostBookkeeping(_ names: [String]) -> String {
    "postgres: \(names.joined(separator: ", ")) "
      + (names.count == 1 ? "is" : "are")
      + " missing, although other bookkeeping tables are there; a run creates "
      + (names.count == 1 ? "it" : "them") + " again, without what was in "
      + (names.count == 1 ? "it" : "them")
  }

  /// Recreates missing tables: current tables, which are then filled from the history, and others
  /// if the catalog `acceptsMissing`.
  ///
  /// - Returns: what was done, one sentence each.
  /// - Throws: `PostgresError` (lostTable) for a table that cannot be rebuilt.
  package func restore(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    var changes: [String] = []
    let existing = try self.existingBookkeeping(over: connection)
    for state in try self.registeredStates(existing, isMissing: true, over: connection) {
      changes += try connection.transaction { () throws(PostgresError) in
        try self.lock(over: connection)
        var state = state
        try state.read(over: connection, bookkeeping: existing)
        let evolution = try TableEvolution(
          state, self.mapping(of: state), self.configuration, acceptsMissing: self.acceptsMissing)
        if !evolution.statements.isEmpty {
          try connection.execute(evolution.statements.joined(separator: ";\n"))
        }
        return evolution.tables.changes
      }
    }
    return changes
  }

  /// For tables that are recreated without an event.
  func mapping(of state: EntityState) -> TableMapping {
    let isEvent =
      state.tables.contains { $0.feed.map { TopicName.hasPlatformEvents($0.topic) } == true }
      || state.entity.hasSuffix("__e")
    return TableMapping(entity: state.entity, family: isEvent ? .platformEvent : .changeEvent)
  }

  /// Tables whose current rows still have to be rebuilt from the history, according to the journal.
  package func unfilledTables(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [StoredTables] {
    let unfilled = try connection.query(
      """
      SELECT table_name FROM (SELECT DISTINCT ON (table_name) table_name, action \
      FROM \(self.bookkeeping.qualified("_etl_journal")) WHERE action = ANY ($1::text[]) \
      ORDER BY table_name, id DESC) AS last WHERE action = $2
      """, [SQLArray.literal([Rebuilding.begun, Rebuilding.done]), Rebuilding.begun])
    guard unfilled.rowCount > 0 else { return [] }
    let names = Set((0..<unfilled.rowCount).compactMap { unfilled[$0, 0] })
    return try self.storedTables(over: connection).filter { names.contains($0.current.name) }
  }

  /// Notes that all rows of the table were rebuilt from the history.
  package func noteFilled(
    _ table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.bookkeeping.qualified("_etl_journal")) (table_name, action, detail) \
      VALUES ($1, $2, $3)
      """, [table.name, Rebuilding.done, "from \(table.entity)'s history"])
  }

  /// - Throws: `PostgresError` (lostTable) if the schema of a sink that has run is missing. It must
  ///   not be created again, because the original could then not be renamed back.
  package func checkSchema(over connection: PostgresConnection) throws(PostgresError) {
    let schemas = try connection.query(
      """
      SELECT n.nspname, n.nspname = $1 FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1 OR EXISTS (
        SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace = n.oid
        AND c.relname = '_etl_checkpoint') ORDER BY 1
      """, [self.configuration.schema])
    let rows = 0..<schemas.rowCount
    guard !rows.contains(where: { schemas[$0, 1] == "t" }) else { return }
    let others = rows.compactMap { schemas[$0, 0] }.map { SQLIdentifier.quoted($0) }
    let schema = SQLIdentifier.quoted(self.configuration.schema)
    throw PostgresError(
      .lostTable,
      "postgres: schema \(schema), which earlier runs of this pipeline used, does not exist: "
        + "it was dropped or renamed, or this is another database."
        + (others.isEmpty
          ? ""
          : " Schemas with such tables: \(others.joined(separator: ", ")); if it was renamed, "
            + "set 'schema' of the sink to it, or ALTER SCHEMA … RENAME TO \(schema).")
        + " Put it back; or begin a new epoch with 'run --accept-reset'")
  }

  /// Tables of this sink that lack a view for reports.
  package func tablesWithoutView(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [ReportedTables] {
    guard self.configuration.mode != .history else { return [] }
    let relations = try connection.query(
      """
      SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n \
      ON n.oid = c.relnamespace WHERE n.nspname = $1
      """, [self.configuration.schema])
    let names = Set((0..<relations.rowCount).compactMap { relations[$0, 0] })
    let registered = try connection.query(
      "SELECT table_name, entity FROM \(self.bookkeeping.qualified("_etl_table")) WHERE kind = $1",
      [TableDefinition.Kind.current.rawValue])
    var views = [ReportingViews.liveName]
    if self.configuration.mode == .both { views.append(ReportingViews.changesName) }
    var tables: [ReportedTables] = []
    for row in 0..<registered.rowCount {
      guard let name = registered[row, 0], let entity = registered[row, 1], names.contains(name),
        !names.contains(ReportingViews.freshnessName)
          || !views.allSatisfy({ names.contains($0(name)) }),
        try TableMapping.tableName(of: entity, .current, self.configuration) == name
      else { continue }
      var state = try self.emptyState(ofEntity: entity, kinds: self.configuration.mode.tableKinds)
      try state.read(over: connection, bookkeeping: Set(Bookkeeping.names))
      if self.feeds(state), let found = state.reported { tables.append(found) }
    }
    return tables
  }

  /// The tables that this sink has created, by entity.
  ///
  /// - Parameter isMissing: returns only entities with a missing table.
  func registeredStates(
    _ existing: Set<String>, isMissing: Bool = false, over connection: PostgresConnection
  ) throws(PostgresError) -> [EntityState] {
    guard existing.contains("_etl_table") else { return [] }
    let tables = try connection.query(
      """
      SELECT t.table_name, t.entity, t.kind, c.oid IS NULL \
      FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
      LEFT JOIN (pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n \
      ON n.oid = c.relnamespace AND n.nspname = $1) ON c.relname = t.table_name \
      ORDER BY t.entity COLLATE "C", t.kind DESC
      """, [self.configuration.schema])
    var states: [EntityState] = []
    var incomplete: Set<String> = []
    for row in 0..<tables.rowCount {
      guard let name = tables[row, 0], let entity = tables[row, 1],
        let kind = tables[row, 2].flatMap({ TableDefinition.Kind(rawValue: $0) }),
        self.configuration.mode.tableKinds.contains(kind),
        try TableMapping.tableName(of: entity, kind, self.configuration) == name
      else { continue }
      if tables[row, 3] == "t" { incomplete.insert(entity) }
      let table = TableState(kind: kind, schema: self.configuration.schema, name: name)
      if states.last?.entity == entity {
        states[states.count - 1].tables.append(table)
      } else {
        states.append(EntityState(entity: entity, tables: [table]))
      }
    }
    var own: [EntityState] = []
    for var state in states where !isMissing || incomplete.contains(state.entity) {
      try state.read(over: connection, bookkeeping: existing)
      if self.feeds(state) { own.append(state) }
    }
    return own
  }

  /// Found in the journal, or by the names of the topics.
  ///
  /// Dropped tables count only if events will come for them. For a channel this is unknown until an
  /// event arrives if all tables of the entity are missing.
  private func feeds(_ state: EntityState) -> Bool {
    guard let feeder else { return true }
    let isGone = !state.tables.contains { $0.exists }
    if let feed = state.tables.lazy.compactMap(\.feed).first {
      guard feed.pipeline == feeder.pipeline && feed.sink == feeder.sink else { return false }
      return state.tables.allSatisfy { $0.exists }
        || feeder.topics.contains(feed.topic) && !(isGone && TopicName.isChannel(feed.topic))
    }
    return feeder.topics.contains {
      TopicName.isChannel($0) ? !isGone : TopicName.entity($0) == state.entity
    }
  }
}
