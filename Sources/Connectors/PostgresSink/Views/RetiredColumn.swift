internal import PostgresClient

/// A column that was renamed because its field changed its type, or because another field has its name
/// now. New values go to another column.
struct RetiredColumn {
  /// SQL names, not quoted.
  var name: String
  var successor: String
  var path: String
  private var type: TableState.Column
  private var newType: TableState.Column
  /// The successor holds another field, which has the name of the deleted one.
  var isOfDeletedField = false
  /// Rows lack values of the successor until all records have been read with it.
  var isFilling: Bool

  /// The successor's values as the retired column's type.
  ///
  /// - Parameter qualifier: the name of the table with its point, or nothing.
  func cast(_ qualifier: String) -> String {
    let column = "(\(qualifier)\(SQLIdentifier.quoted(self.successor)))"
    let families: [Set<PostgresType>] = [
      [.smallint, .integer, .bigint, .real, .doublePrecision, .numeric],
      [.date, .timestamp, .timestamptz],
    ]
    let types = [self.newType, self.type].compactMap { PostgresType(oid: $0.typeOID) }
    // Types of one family have casts. Others are converted by their text.
    let isDirect = types.contains(.text) || families.contains { $0.isSuperset(of: types) }
    return "(\(column)\(isDirect ? "" : "::text")::\(self.type.sqlType))"
  }

  var newTypeName: String { self.newType.sqlType }

  /// The retired columns of a table, by its bookkeeping.
  static func all(
    of table: TableState, over connection: PostgresConnection
  ) throws(PostgresError) -> [RetiredColumn] {
    let paths = table.registered.filter { table.column($0.name) != nil }.map(\.path)
    guard Set(paths).count < paths.count || paths.contains(where: TableEvolution.isFormerPath)
    else { return [] }
    let columns = table.registered.map { column in
      TableColumn(
        name: column.name, type: PostgresType(rawValue: column.sqlType) ?? .text, path: column.path)
    }
    let earlier = try EarlierColumnNames(
      TableDefinition(
        kind: table.kind, entity: table.registeredEntity ?? "", schema: table.schema,
        name: table.name, dataColumns: columns), over: connection)
    let successors = earlier.successors(columns)
    var retired: [RetiredColumn] = []
    for old in successors.keys.sorted() {
      var last = old
      while let next = successors[last] { last = next }
      let new = table.registered[last]
      guard let type = table.column(columns[old].name), let newType = table.column(new.name) else {
        continue
      }
      retired.append(
        RetiredColumn(
          name: columns[old].name, successor: new.name, path: new.path, type: type,
          newType: newType, isFilling: new.state == .filling))
    }
    for (old, new) in earlier.replacements(columns).map({ (columns[$0.old], columns[$0.new]) }) {
      guard let type = table.column(old.name), let newType = table.column(new.name) else {
        continue
      }
      retired.append(
        RetiredColumn(
          name: old.name, successor: new.name, path: new.path, type: type, newType: newType,
          isOfDeletedField: true, isFilling: false))
    }
    return retired.sorted { $0.name < $1.name }
  }
}

/// A view or function that still reads a retired column, and so lacks the new values.
///
/// One that also reads the successor, or shows the column under its present name, was made for both.
struct OutdatedReader {
  var message: String
  /// SQL in the message, joined by `; `.
  var statements: [String]

  /// - Parameters:
  ///   - relation: SQL name, not quoted, of the table or its live view.
  ///   - live: SQL name, not quoted, of the table's live view, which the sink updates.
  ///   - isFilled: runs read the records with their new columns.
  static func all(
    of column: RetiredColumn, in relation: String, live: String, isFilled: Bool,
    _ bookkeeping: Bookkeeping, over connection: PostgresConnection
  ) throws(PostgresError) -> [OutdatedReader] {
    let found = try connection.query(
      """
      WITH \(DependentView.path), p AS MATERIALIZED (\
      SELECT DISTINCT d.classid, d.objid, r.ev_class FROM pg_catalog.pg_depend AS d \
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
      LEFT JOIN pg_catalog.pg_rewrite AS r ON d.classid = 'pg_catalog.pg_rewrite'::regclass \
      AND r.oid = d.objid \
      WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = to_regclass($1) \
      AND a.attname = $2 AND (r.ev_class <> d.refobjid \
      OR d.classid = 'pg_catalog.pg_proc'::regclass) \
      AND r.ev_class IS DISTINCT FROM to_regclass($4) AND NOT EXISTS (\
      SELECT FROM pg_catalog.pg_depend AS e JOIN pg_catalog.pg_attribute AS b \
      ON b.attrelid = e.refobjid AND b.attnum = e.refobjsubid WHERE e.classid = d.classid \
      AND e.objid = d.objid AND e.refclassid = d.refclassid AND e.refobjid = d.refobjid \
      AND b.attname = $3) AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS o \
      WHERE o.attrelid = r.ev_class AND o.attname = $2 AND NOT o.attisdropped)) \
      SELECT pg_describe_object(p.classid, p.objid, 0), v.oid IS NOT NULL, \(DependentView.columns) \
      FROM path CROSS JOIN p LEFT JOIN pg_catalog.pg_class AS v ON v.oid = p.ev_class ORDER BY 3, 1
      """,
      [
        bookkeeping.qualified(relation), column.name, column.successor, bookkeeping.qualified(live),
      ])
    guard !column.isOfDeletedField else {
      return (0..<found.rowCount).map { row in
        let reader = found[row, 1] == "t" ? "view \(found[row, 2] ?? "")" : found[row, 0] ?? ""
        let (old, new) = (SQLIdentifier.quoted(column.name), SQLIdentifier.quoted(column.successor))
        return OutdatedReader(
          message: "postgres: \(reader) reads column \(old) of \(bookkeeping.qualified(relation)), "
            + "which has the values of a deleted field; the field that is named \(column.path) now "
            + "has column \(new). Make it read \(new), or show the old column as \(old)",
          statements: [])
      }
    }
    // By name: another of them may need one.
    var changed: [String: DependentView] = [:]
    for row in 0..<found.rowCount where found[row, 1] == "t" {
      var view = DependentView(found, row, from: 2)
      view.definition = view.definition.replacing(column.name, by: column.cast)
      changed[view.name] = view
    }
    var readers: [OutdatedReader] = []
    for row in 0..<found.rowCount {
      let view = found[row, 2].flatMap { changed[$0] }
      let reader = view.map { "view \($0.name)" } ?? found[row, 0] ?? ""
      var (remedy, statements) =
        try view.map { (view) throws(PostgresError) in
          try Self.remedy(view, changed, column, over: connection)
        } ?? ("Make it read \(SQLIdentifier.quoted(column.successor))", [])
      if column.isFilling, isFilled {
        // Statements that are executed too early show nulls, in a materialized view for good.
        remedy =
          "Column \(SQLIdentifier.quoted(column.successor)) is still being filled (see "
          + "\(bookkeeping.qualified(ReportingViews.columnsName))): the next run, or 'pubsub-etl "
          + "snapshot', reads it for all records. When it is complete, this message has the "
          + "statements to run"
        statements = []
      } else if column.isFilling {
        remedy =
          "Run 'pubsub-etl snapshot' first: until then the column is null for records that have "
          + "not changed since. \(remedy)"
      }
      readers.append(
        OutdatedReader(
          message: "postgres: \(reader) lacks new values of field \(column.path): it reads column "
            + "\(SQLIdentifier.quoted(column.name)) of \(bookkeeping.qualified(relation)), which "
            + "has the values from before the field changed its type; new values are in "
            + "\(SQLIdentifier.quoted(column.successor)) (\(column.newTypeName)). \(remedy)",
          statements: statements))
    }
    return readers
  }

  /// - Parameters:
  ///   - view: with its new definition.
  ///   - changed: all outdated views with their new definitions, by name.
  private static func remedy(
    _ view: DependentView, _ changed: [String: DependentView], _ column: RetiredColumn,
    over connection: PostgresConnection
  ) throws(PostgresError) -> (message: String, statements: [String]) {
    var others: [DependentView] = []
    if view.isMaterialized {
      others = try view.dependents(over: connection).map { changed[$0.name] ?? $0 }
      if let manual = DependentView.manual([view] + others) {
        let names = "\(SQLIdentifier.quoted(column.name)) by \(column.cast(""))"
        return ("\(manual). To show the new values, replace \(names)", [])
      }
    }
    let owners = others.isEmpty ? "the view" : "the views"
    let statements = view.replacement(others)
    return (
      "To show them, run as the owner of \(owners): \(statements.joined(separator: "; ")); a value "
        + "that cannot be converted makes a query fail, so change the expression if there are such "
        + "values", statements
    )
  }
}

extension TableCatalog {
  /// Views and functions that lack new values because they read columns of an earlier type.
  func outdatedReaders(
    of states: [EntityState], over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    var findings: [TableFinding] = []
    for state in states {
      for table in state.tables where table.isTable {
        findings += try self.inquiring(state.entity, over: connection) { () throws(PostgresError) in
          try self.outdatedReaders(of: table, state.entity, over: connection)
        }
      }
    }
    return findings
  }

  private func outdatedReaders(
    of table: TableState, _ entity: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    var findings: [TableFinding] = []
    let live = ReportingViews.liveName(table.name)
    let retired = try RetiredColumn.all(of: table, over: connection)
    guard !retired.isEmpty else { return [] }
    let isFilled = try self.hasReads(of: entity, over: connection)
    for column in retired {
      for relation in table.kind == .current ? [table.name, live] : [table.name] {
        findings += try self.inquiring(entity, over: connection) { () throws(PostgresError) in
          try OutdatedReader.all(
            of: column, in: relation, live: live, isFilled: isFilled, self.bookkeeping,
            over: connection
          ).map {
            TableFinding(
              entity: entity, message: $0.message, statements: $0.statements, disposition: nil,
              kind: .outdatedReader)
          }
        }
      }
    }
    return findings
  }

  /// Views and functions that will lack new values once the columns are renamed for fields of a new
  /// type.
  func futureReaders(
    of renames: [ColumnRename], over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    try self.inquiring("", over: connection) { () throws(PostgresError) in
      var findings: [TableFinding] = []
      // Views follow a column that only gets another name.
      for rename in renames where rename.reason != .fieldName {
        let table = self.bookkeeping.qualified(rename.table)
        let found = try connection.query(
          """
          SELECT DISTINCT coalesce('view ' || format('%I.%I', n.nspname, v.relname), \
          pg_describe_object(d.classid, d.objid, 0)) FROM pg_catalog.pg_depend AS d \
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
          LEFT JOIN pg_catalog.pg_rewrite AS r ON d.classid = 'pg_catalog.pg_rewrite'::regclass \
          AND r.oid = d.objid LEFT JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class \
          LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = v.relnamespace \
          WHERE d.refclassid = 'pg_catalog.pg_class'::regclass \
          AND d.refobjid IN (to_regclass($1), to_regclass($2)) AND a.attname = $3 \
          AND (v.oid NOT IN (d.refobjid, coalesce(to_regclass($2), d.refobjid)) \
          OR d.classid = 'pg_catalog.pg_proc'::regclass) ORDER BY 1
          """,
          [
            table, self.bookkeeping.qualified(ReportingViews.liveName(rename.table)), rename.from,
          ])
        for row in 0..<found.rowCount {
          findings.append(
            TableFinding(
              entity: "",
              message: "postgres: \(found[row, 0] ?? "") will lack new values after the next run, "
                + "which renames column \(SQLIdentifier.quoted(rename.from)) of \(table) to "
                + "\(SQLIdentifier.quoted(rename.to)), because "
                + (rename.reason == .type
                  ? "the field changed its type. The run prints the statements that update it"
                  : "another field has its name now"),
              disposition: nil, kind: .outdatedReader))
        }
      }
      return findings
    }
  }

  /// The object's records have been read, or are about to be.
  private func hasReads(
    of entity: String, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    let table = self.bookkeeping.qualified("_etl_snapshot")
    guard try connection.query("SELECT to_regclass($1) IS NOT NULL", [table])[0, 0] == "t" else {
      return false
    }
    return try connection.query(
      "SELECT EXISTS (SELECT FROM \(table) WHERE entity = $1 AND state <> 'none')", [entity])[0, 0]
      == "t"
  }

  /// Runs an inquiry about views, whose failure is a finding: views concern only their readers.
  ///
  /// - Throws: `PostgresError` if the connection is lost.
  func inquiring(
    _ entity: String, over connection: PostgresConnection,
    _ body: () throws(PostgresError) -> [TableFinding]
  ) throws(PostgresError) -> [TableFinding] {
    let isNested = connection.transactionStatus != .idle
    let savepoint = "SAVEPOINT _etl_inquiry"
    if isNested { try connection.execute(savepoint) } else { try connection.begin() }
    do throws(PostgresError) {
      // The server locks a view to print its definition.
      try connection.execute(self.configuration.lockLimit)
      let findings = try body()
      try connection.execute(isNested ? "RELEASE \(savepoint)" : "COMMIT")
      return findings
    } catch {
      guard connection.isConnected else { throw error }
      try connection.execute(
        isNested ? "ROLLBACK TO \(savepoint); RELEASE \(savepoint)" : "ROLLBACK")
      let subject = entity.isEmpty ? "" : " of \(entity)"
      return [
        TableFinding(
          entity: entity,
          message: "postgres: views and functions that may lack new values\(subject) could not be "
            + "examined: \(error.message)", disposition: nil, kind: .outdatedReader)
      ]
    }
  }

  /// The same for all tables of this sink, at the start of a run.
  func outdatedReaders(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFinding] {
    try self.inquiring("", over: connection) { () throws(PostgresError) in
      let renamed = try connection.query(
        """
        SELECT EXISTS (SELECT FROM \(self.bookkeeping.qualified("_etl_journal")) \
        WHERE action = 'rename_column')
        """)
      guard renamed[0, 0] == "t" else { return [] }
      return try self.outdatedReaders(
        of: self.registeredStates(Set(Bookkeeping.names), over: connection), over: connection)
    }
  }
}
