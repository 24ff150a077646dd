internal import PostgresClient

/// A view of the sink's schema that the role cannot replace, because it belongs to another.
struct ForeignView {
  /// SQL name, not quoted.
  var name: String
  /// The finding, with the statement that changes it.
  var message: String
  var statement: String
}

extension ReportingViews {
  /// All views of the schema that belong to another role, whether or not they need a change.
  func foreignViews(over connection: PostgresConnection) throws(PostgresError) -> [ForeignView] {
    let found = try connection.query(
      """
      SELECT c.relname, pg_get_userbyid(c.relowner), current_user FROM pg_catalog.pg_class AS c \
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
      WHERE n.nspname = $1 AND c.relkind = 'v' AND NOT pg_has_role(c.relowner, 'USAGE') ORDER BY 1
      """, [self.bookkeeping.schema])
    return (0..<found.rowCount).map { row in
      let name = found[row, 0] ?? ""
      let view = self.bookkeeping.qualified(name)
      let statement = "ALTER VIEW \(view) OWNER TO \(SQLIdentifier.quoted(found[row, 2] ?? ""))"
      return ForeignView(
        name: name,
        message: "postgres: view \(view) is not up to date, and runs cannot replace it, because it "
          + "belongs to role \(SQLIdentifier.quoted(found[row, 1] ?? "")). As a superuser, run "
          + "\(statement); or, as its owner, run the statements that 'pubsub-etl plan' prints",
        statement: statement)
    }
  }

  /// The change of a view for all tables; nil for another view.
  private func change(
    ofView name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange? {
    switch name {
    case Self.freshnessName: try self.freshnessChange(over: connection)
    case Self.columnsName: try self.columnsChange(over: connection)
    default: nil
    }
  }

  /// The foreign views that need a change.
  ///
  /// - Parameter tables: all tables, which are only read if there is such a view.
  func outdatedForeignViews(
    _ tables: () throws(PostgresError) -> [ReportedTables], over connection: PostgresConnection
  ) throws(PostgresError) -> [ForeignView] {
    let views = try self.foreignViews(over: connection)
    guard !views.isEmpty else { return [] }
    var changes: [String: ViewChange] = [:]
    for (current, history) in try tables().map({ ($0.current, $0.history) }) {
      changes[Self.liveName(current.name)] = try self.live(current, over: connection)
      guard let history else { continue }
      changes[Self.changesName(current.name)] = try self.changes(
        of: current, history: history, over: connection)
      changes[Self.versionsName(current.name)] = try self.versions(
        of: current, history: history, over: connection)
    }
    var outdated: [ForeignView] = []
    for view in views {
      var change = changes[view.name]
      if change == nil { change = try self.change(ofView: view.name, over: connection) }
      if change?.mayBeDone == false { outdated.append(view) }
    }
    return outdated
  }
}

extension TableCatalog {
  /// Views of the sink that need a change and belong to another role.
  func foreignViews(over connection: PostgresConnection) throws(PostgresError) -> [TableFinding] {
    try self.foreignViews(over: connection) { () throws(PostgresError) in
      try self.registeredStates(Set(Bookkeeping.names), over: connection)
    }
  }

  func foreignViews(
    over connection: PostgresConnection, _ states: () throws(PostgresError) -> [EntityState]
  ) throws(PostgresError) -> [TableFinding] {
    let views = ReportingViews(self.configuration)
    return try self.inquiring("", over: connection) { () throws(PostgresError) in
      try views.outdatedForeignViews(
        { () throws(PostgresError) in
          try states().compactMap(\.reported)
        }, over: connection
      ).map {
        TableFinding(
          entity: "", message: $0.message, statements: [$0.statement], disposition: nil,
          kind: .outdatedReader)
      }
    }
  }
}
