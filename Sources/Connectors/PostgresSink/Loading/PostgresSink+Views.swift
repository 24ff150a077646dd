internal import Pipeline
internal import PostgresClient

/// Keeps the views for reports up to date. They serve readers, so the load continues without a view
/// that it cannot change.
extension PostgresSink {
  /// Warns of views that lack new values, at each run until they are changed.
  func warnOfReaders() throws {
    let readers = try self.session.retrying { connection in
      try self.catalog.outdatedReaders(over: connection)
        + self.catalog.viewConflicts(over: connection)
    }
    for reader in readers { self.warn(reader.message) }
  }

  /// Warns of views that cannot be updated because they belong to another role, at each run until
  /// that is changed.
  func warnOfForeignViews() throws {
    let views = try self.session.retrying { try self.catalog.foreignViews(over: $0) }
    for view in views { self.warn(view.message) }
  }

  func warn(_ message: String) {
    if self.warned.insert(message).inserted { self.onRepair?(message) }
  }

  /// Tries again to update views that were locked. Between two attempts, their readers have time.
  func updateDueViews() {
    let due = self.dueViews.values.sorted { $0.current.name < $1.current.name }
    self.dueViews.removeAll()
    // A failure concerns nobody but readers, and shows at the next run.
    for table in due { _ = try? self.session.once { try self.updateViews(table) } }
  }

  /// Has the server count the rows of the sink's own tables that it has never counted. Without the
  /// counts it expects millions of rows in `_freshness`, and compiles each query for seconds. A
  /// failure only keeps such a query slow.
  func countBookkeeping() {
    let uncounted = try? self.connection.query(
      """
      SELECT string_agg($1 || '.' || quote_ident(relname), ', ') FROM pg_catalog.pg_class \
      WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND reltuples < 0 \
      AND relname LIKE '\\_etl\\_%' AND pg_has_role(relowner, 'USAGE')
      """, [SQLIdentifier.quoted(self.configuration.schema)])
    guard let tables = uncounted?[0, 0] else { return }
    try? self.connection.execute("ANALYZE (SKIP_LOCKED) \(tables)")
  }

  /// Errors that leave a view unchanged: somebody holds a lock on it, or owns it.
  private static let leavesView: Set<String> = [
    SQLState.lockNotAvailable, SQLState.insufficientPrivilege, SQLState.wrongObjectType,
  ]

  /// Errors of a definition that this server does not take, and of triggers that forbid it.
  private static let refusesDefinition: Set<String> = [
    "42601", "42701", "42702", "42703", "42723", "42725", "42804", "42883", "42P13", "42P16",
    "42P17", "42P18", "42611", "54001", "54011", "54023", "0A000", "P0001", "25006",
  ]

  /// Updates the views of a table, or only those of all tables, each in its own transaction.
  ///
  /// - Returns: what was done to the live view; nil if it could not be updated.
  @discardableResult
  func updateViews(_ tables: ReportedTables?) throws -> ReportingViews.Outcome? {
    var outcome: ReportingViews.Outcome?
    if let tables {
      let current = tables.current
      let name = ReportingViews.liveName(current.name)
      outcome = try self.updateView(name, due: tables) { () throws(PostgresError) in
        try self.views.updateLive(current, over: self.connection)
      }
      if outcome == .remade {
        self.onNotice?(
          "view \(name) has other columns now and was created again; grant privileges on it again")
      } else if outcome == .kept {
        try self.warnOfConflicts(tables)
      }
      try self.updateChanges(tables)
      try self.updateStates(tables)
      try self.updateFormulas(tables)
    }
    try self.updateView(ReportingViews.freshnessName, due: tables) { () throws(PostgresError) in
      try self.views.updateFreshness(over: self.connection)
    }
    try self.updateView(ReportingViews.columnsName, due: tables) { () throws(PostgresError) in
      try self.views.updateColumns(over: self.connection)
      return .unchanged
    }
    return outcome
  }

  private func updateChanges(_ tables: ReportedTables) throws {
    guard let history = tables.history else { return }
    let name = ReportingViews.changesName(tables.current.name)
    let outcome = try self.updateView(name, due: tables, isEssential: false) {
      () throws(PostgresError) in
      try self.views.updateChanges(
        of: tables.current, history: history, over: self.connection)
    }
    if outcome == .foreign { self.warn(ofForeign: name) }
  }

  private func warn(ofForeign name: String) {
    self.warn(
      "postgres: view \(name) is not created, because somebody made a view or function of its name, "
        + "which stays; rename it")
  }

  private func updateStates(_ tables: ReportedTables) throws {
    guard let history = tables.history else { return }
    let name = ReportingViews.versionsName(tables.current.name)
    let outcome = try self.updateView(name, due: tables, isEssential: false) {
      () throws(PostgresError) in
      try self.views.updateStates(of: tables.current, history: history, over: self.connection)
    }
    if outcome == .foreign { self.warn(ofForeign: name) }
    if outcome == .kept { try self.warnOfConflicts(tables) }
  }

  private func updateFormulas(_ tables: ReportedTables) throws {
    let name = ReportingViews.formulasName(tables.current.name)
    let outcome = try self.updateView(name, due: tables, isEssential: false) {
      () throws(PostgresError) in
      try self.views.updateFormulas(of: tables.current, over: self.connection)
    }
    if outcome == .foreign { self.warn(ofForeign: name) }
    if outcome == .remade {
      self.onNotice?(
        "view \(name) has other columns now and was created again; grant privileges on it again")
    }
    if outcome == .restored {
      self.warn(
        "postgres: view \(name) was missing and has been created again; grant privileges on it again"
      )
    }
    if outcome == .kept {
      self.warn(
        "postgres: view \(name) cannot get other columns, because other views depend on it; drop "
          + "them, and create them again after the next run")
    }
  }

  /// Updates the view of an object's formulas, if it has a table.
  func updateFormulas(of entity: String) throws {
    guard self.configuration.mode != .history else { return }
    let current = try self.session.retrying {
      try self.catalog.currentTable(of: entity, over: $0)
    }
    if let current { try self.updateFormulas(ReportedTables(current: current)) }
  }

  /// Updates the views of other objects whose formulas may read this one.
  func updateFormulas(besides entity: String) throws {
    let others = try self.session.retrying { connection in
      try FieldTables(self.catalog.bookkeeping).referring(besides: entity, over: connection)
    }
    for other in others { try self.updateFormulas(of: other) }
  }

  private func warnOfConflicts(_ tables: ReportedTables) throws {
    let conflicts = try self.session.retrying { try self.catalog.viewConflicts(tables, over: $0) }
    for conflict in conflicts { self.warn(conflict.message) }
  }

  /// Updates the changes of all objects, now that there is a table with the names of users or with a
  /// field history.
  func updateAllChanges() throws {
    let stored = try self.session.retrying { try self.catalog.storedTables(over: $0) }
    for tables in stored {
      try self.updateChanges(ReportedTables(current: tables.current, history: tables.history))
    }
  }

  /// - Parameters:
  ///   - tables: those whose views are updated again later if this one is locked.
  ///   - isEssential: an error that PostgreSQL gives ends the run.
  @discardableResult
  private func updateView(
    _ name: String, due tables: ReportedTables?, isEssential: Bool = true,
    _ body: () throws(PostgresError) -> ReportingViews.Outcome
  ) throws -> ReportingViews.Outcome? {
    var leavesView = Self.leavesView
    if !isEssential { leavesView.formUnion(Self.refusesDefinition) }
    do {
      return try self.session.retrying(butFor: leavesView) { connection in
        try connection.transaction { () throws(PostgresError) in
          try connection.execute(self.configuration.lockLimit)
          return try body()
        }
      }
    } catch let error as PostgresError where leavesView.contains(error.sqlState ?? "") {
      if self.connection.transactionStatus != .idle { try self.connection.execute("ROLLBACK") }
      guard error.sqlState == SQLState.lockNotAvailable else {
        try self.warn(ofView: name, error)
        return nil
      }
      if let tables { self.dueViews[tables.current.name] = tables }
      let holder = try LockHolder.suffix(
        [name], self.configuration.schema, over: self.connection)
      let notice = "view \(name) was not updated: \(error.message)\(holder)"
      if self.warned.insert(notice).inserted { self.onNotice?(notice) }
      return nil
    }
  }

  /// Warns of a view that cannot be updated, once in a run, because finding the remedy takes a
  /// connection.
  private func warn(ofView name: String, _ error: PostgresError) throws {
    guard self.warned.insert("view \(name)").inserted else { return }
    let view = try self.session.retrying {
      try self.views.foreignViews(over: $0).first { $0.name == name }
    }
    self.warn(
      view?.message
        ?? "postgres: view \(name) was not updated: \(self.configuration.explained(error).message)")
  }
}
