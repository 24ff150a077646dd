internal import Pipeline
package import PostgresClient

/// Views for reports: `<table>_live` has the rows of a current table that are not deleted, and
/// `_freshness` shows how current and complete each table is.
package struct ReportingViews {
  private let schema: String
  let bookkeeping: Bookkeeping
  let style: SQLIdentifier.Style
  /// Milliseconds after which every reader sees a commit.
  let visibilityWait: Int64
  /// See `PostgresSinkConfiguration`.
  let selectsChanges: Bool
  /// The objects with fields that are read again and again.
  let refreshed: Set<String>

  /// - Parameter columns: the style of column names.
  package init(
    schema: String, columns: SQLIdentifier.Style = .lower,
    visibilityWait: Int64 = ReadMerge.visibilityWait, selectsChanges: Bool = false,
    refreshed: Set<String> = []
  ) {
    self.schema = schema
    self.bookkeeping = Bookkeeping(schema: schema)
    self.style = columns
    self.visibilityWait = visibilityWait
    self.selectsChanges = selectsChanges
    self.refreshed = refreshed
  }

  package init(_ configuration: PostgresSinkConfiguration) {
    self.init(
      schema: configuration.schema, columns: configuration.columns,
      visibilityWait: configuration.reads?.visibilityWait ?? ReadMerge.visibilityWait,
      selectsChanges: configuration.selectsChanges,
      refreshed: Set(configuration.refreshes.map { ReadPass.entity(ofKey: $0) }))
  }

  package enum Outcome: Sendable, Equatable {
    case unchanged, created, replaced
    /// The view was missing, although this program had made it; its grants are lost.
    case restored
    /// The view was dropped and recreated because its columns changed; its grants are lost.
    case remade
    /// Other views depend on it, so it is unchanged.
    case kept
    /// Somebody else made something of that name, which stays.
    case foreign
  }

  /// Updates the live view of a current table in the open transaction.
  package func updateLive(
    _ table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    try self.update(try self.live(table, over: connection), over: connection)
  }

  /// - Parameter renames: columns of the table that the plan will have renamed, in order.
  func live(
    _ table: TableDefinition, renames: [ColumnRename] = [], over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange {
    func renamed(_ column: String) -> String {
      renames.reduce(column) { $1.table == table.name && $1.from == $0 ? $1.to : $0 }
    }
    let name = Self.liveName(table.name)
    let types = try self.types(of: table, renamed, over: connection)
    let state = try ViewState(name, self.bookkeeping, over: connection)
    var view = LiveView(table, style: self.style, types: types, existing: state.columns)
    var change = ViewChange(
      name: name, query: view.query, state: state, fit: ViewChange.Fit(state.columns, view.columns),
      bookkeeping: self.bookkeeping)
    guard change.fit != .none, !change.isDone else { return change }
    // PostgreSQL carries a view's columns along when the table's are renamed, under their old names.
    // Views that read them follow the field, also where another column has its name now.
    let wanted = Set(view.columns.map(\.name))
    let sources = try ViewState.sources(
      of: name, table: table.name, self.bookkeeping, over: connection)
    var columns = state.columns
    for place in columns.indices {
      guard let source = sources[place].map(renamed), source != columns[place].name,
        wanted.contains(source)
      else { continue }
      change.renames.append((columns[place].name, source))
      columns[place].name = source
    }
    guard !change.renames.isEmpty else { return change }
    view = LiveView(table, style: self.style, types: types, existing: columns)
    let fit = ViewChange.Fit(columns, view.columns)
    guard fit != .other else {
      change.renames = []
      return change
    }
    (change.query, change.fit) = (view.query, fit)
    return change
  }

  /// Types of the table's columns, because somebody may have changed `text` to `varchar(80)`, which
  /// is accepted.
  private func types(
    of table: TableDefinition, _ renamed: (String) -> String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String: Column] {
    let found = try connection.query(
      """
      SELECT a.attname, a.atttypid, a.atttypmod FROM pg_attribute AS a \
      JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace \
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p') AND a.attnum > 0 \
      AND NOT a.attisdropped
      """, [table.schema, table.name])
    let wanted = Dictionary(
      table.dataColumns.map { ($0.name, $0.type) }, uniquingKeysWith: { first, _ in first })
    var types: [String: Column] = [:]
    for row in 0..<found.rowCount {
      // In a plan, a column of another type may be about to replace this one.
      guard let name = found[row, 0].map(renamed), let oid = found[row, 1].flatMap(UInt32.init),
        let type = wanted[name], PostgresType(oid: oid) == type
      else { continue }
      types[name] = Column(
        name: name, typeOID: oid, typeModifier: found[row, 2].flatMap { Int32($0) } ?? -1)
    }
    return types
  }

  /// SQL name, not quoted, of the live view of a table.
  package static func liveName(_ table: String) -> String {
    SQLIdentifier.shortened("\(table)_live")
  }

  /// SQL names, not quoted, of all views of a current table.
  package static func names(_ table: String) -> [String] {
    [
      Self.liveName(table), Self.changesName(table), Self.versionsName(table),
      Self.formulasName(table),
    ]
  }

  /// Creates `_freshness` for all tables of the schema, in the open transaction: one row per table
  /// and sink that feeds it, from what the sinks store with their positions.
  package func updateFreshness(
    over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    try self.update(try self.freshnessChange(over: connection), over: connection)
  }

  func freshnessChange(over connection: PostgresConnection) throws(PostgresError) -> ViewChange {
    let tables = try self.currentTables(adding: [], hasBookkeeping: true, over: connection)
    let query = self.freshness(
      tables, hasReads: try self.hasReads(over: connection),
      hasPolls: try self.exists(PollTable.name, over: connection))
    return try self.freshnessChange(query, over: connection)
  }

  private func freshnessChange(
    _ query: String, over connection: PostgresConnection
  ) throws(PostgresError) -> ViewChange {
    let state = try ViewState(Self.freshnessName, self.bookkeeping, over: connection)
    return ViewChange(
      name: Self.freshnessName, query: query, state: state,
      fit: ViewChange.Fit(state.columns, Self.freshnessColumns), bookkeeping: self.bookkeeping)
  }

  /// `_freshness` exists in the form of an earlier version.
  package func isFreshnessOutdated(
    over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    switch try self.freshnessChange("", over: connection).fit {
    case .none, .same: false
    case .extensible, .other: true
    }
  }

  /// The statements that would update the views for these tables. Changes nothing.
  ///
  /// - Parameters:
  ///   - tables: tables after the planned changes.
  ///   - renames: the columns that these changes rename.
  ///   - hasBookkeeping: false while the sink's own tables do not exist.
  ///   - makesReads: the plan creates the tables for reading records.
  ///   - makesPolls: the plan creates the table of objects without change events.
  /// - Returns: statements without semicolons; empty if every view is up to date.
  package func plan(
    _ tables: [TableDefinition], renames: [ColumnRename] = [], hasBookkeeping: Bool,
    makesReads: Bool = false, makesPolls: Bool = false, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    var statements: [String] = []
    let histories = Dictionary(
      tables.filter { $0.kind == .history }.map { ($0.entity, $0) },
      uniquingKeysWith: { first, _ in first })
    let tables = tables.filter { $0.kind == .current }
    let users = tables.lazy.compactMap { ChangesView.Users($0) }.first
    for table in tables {
      let change = try self.live(table, renames: renames, over: connection)
      if !change.mayBeDone { statements += try self.statements(change, over: connection) }
      statements += try self.formulaStatements(of: table, over: connection)
      guard let history = histories[table.entity] else { continue }
      let changes = try self.changes(
        of: table, history: history, renames: renames, users: users, over: connection)
      if !changes.mayBeDone, !changes.isOfAnother {
        statements += try self.statements(changes, over: connection)
      }
      statements += try self.stateStatements(
        of: table, history: history, renames: renames, makesReads: makesReads, over: connection)
    }
    let before = try self.currentTables(
      adding: [], hasBookkeeping: hasBookkeeping, over: connection)
    let after = try self.currentTables(
      adding: tables, hasBookkeeping: hasBookkeeping, over: connection)
    let hasReads = try makesReads ? true : self.hasReads(over: connection)
    let hasPolls = try makesPolls ? true : self.exists(PollTable.name, over: connection)
    let change = try self.freshnessChange(
      self.freshness(after, hasReads: hasReads, hasPolls: hasPolls), over: connection)
    if !change.mayBeDone || before != after {
      statements += try self.statements(change, over: connection)
    }
    let columns = try self.columnsChange(over: connection)
    if !columns.mayBeDone { statements += try self.statements(columns, over: connection) }
    return statements
  }

  private func hasReads(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let names = ["_etl_snapshot", "_etl_missing_range"].map { self.bookkeeping.qualified($0) }
    return try connection.query(
      "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL", names)[0, 0] == "t"
  }

  // MARK: Definitions

  package static let freshnessName = "_freshness"

  private static let freshnessColumns: [Column] = [
    Column(name: "table_name", type: "text"), Column(name: "entity", type: "text"),
    Column(name: "pipeline", type: "text"), Column(name: "sink", type: "text"),
    Column(name: "complete_through", type: "timestamp with time zone"),
    Column(name: "last_run", type: "timestamp with time zone"),
    Column(name: "stale", type: "bigint"), Column(name: "partial", type: "bigint"),
    Column(name: "holes", type: "numeric"),
    Column(name: "last_change", type: "timestamp with time zone"),
    Column(name: "topics", type: "text[]"),
    Column(name: "snapshot_at", type: "timestamp with time zone"),
    Column(name: "missing_ranges", type: "bigint"),
    Column(name: "waiting_for_repair", type: "bigint"),
    Column(name: "snapshot_state", type: "text"),
    Column(name: "snapshot_rows", type: "bigint"),
    Column(name: "snapshot_total", type: "bigint"),
    Column(name: "unseen", type: "bigint"),
    Column(name: "columns_filling", type: "text[]"),
    Column(name: "columns_hidden", type: "text[]"),
    Column(name: "state", type: "text"),
    Column(name: "dead_letters", type: "bigint"),
    Column(name: "polled_every", type: "interval"),
    Column(name: "polled_at", type: "timestamp with time zone"),
    Column(name: "refreshed_at", type: "timestamp with time zone"),
  ]

  /// A table whose rows `_freshness` counts.
  private struct CountedTable: Equatable {
    var name: String
    var entity: String
    var hasReadColumns: Bool

    /// The SQL condition for rows that will be read again. Partial rows that were read lack fields
    /// that the user may not see.
    var waits: String {
      let isPartial =
        self.hasReadColumns ? "_read_at IS NULL AND _deleted_at IS NULL" : "_deleted_at IS NULL"
      return "(_stale OR _stale_fields IS NOT NULL OR \(isPartial))"
    }
  }

  /// - Parameters:
  ///   - hasReads: the tables for reading records exist.
  ///   - hasPolls: the table of objects without change events exists.
  private func freshness(_ tables: [CountedTable], hasReads: Bool, hasPolls: Bool) -> String {
    let schema = SQLIdentifier.quoted(self.schema)
    let counts = tables.map { self.counts($0, hasReads: hasReads) }
    let none = "SELECT NULL::text, 0::bigint, 0::bigint, 0::bigint WHERE false"
    let noted =
      "SELECT count(*) FROM \(schema)._etl_resync AS r WHERE r.entity = t.entity AND r.done_at IS NULL"
    // Until all records have been read once, nothing is complete.
    let (completeThrough, pass, join): (String, String, String) =
      hasReads
      ? (
        """
        CASE WHEN s.finished_at IS NOT NULL OR coalesce(s.state, 'none') = 'none' \
        THEN f.complete_through END \
        AS complete_through
        """,
        """
        s.finished_at AS snapshot_at, \
        (SELECT count(*) FROM \(schema)._etl_missing_range AS m WHERE m.pipeline = f.pipeline \
        AND m.sink = f.sink AND m.topic = ANY (f.topics) AND m.repaired_at IS NULL) \
        + (\(noted) AND r.kind IN ('overflow', 'wildcard')) AS missing_ranges, \
        n.waiting AS waiting_for_repair, \
        CASE WHEN s.state IN ('awaited', 'begun') THEN 'waiting' ELSE nullif(s.state, 'none') END \
        AS snapshot_state, \
        s.rows AS snapshot_rows, s.total AS snapshot_total, \
        (\(noted) AND r.kind = 'unseen') AS unseen
        """,
        """
        LEFT JOIN \(schema)._etl_snapshot AS s ON s.entity = t.entity \
        AND (f.pipeline IS NULL OR s.pipeline = f.pipeline AND s.sink = f.sink)
        """
      )
      : (
        "f.complete_through",
        """
        NULL::timestamptz AS snapshot_at, NULL::bigint AS missing_ranges, \
        n.waiting AS waiting_for_repair, NULL::text AS snapshot_state, \
        NULL::bigint AS snapshot_rows, NULL::bigint AS snapshot_total, NULL::bigint AS unseen
        """, ""
      )
    func time(_ milliseconds: String) -> String { "to_timestamp((\(milliseconds)) / 1000)" }
    // A table is complete up to the time through which all its topics are. Values that no
    // run stores count as unknown.
    let through = """
      CASE WHEN jsonb_typeof(p.value -> 'complete_through_ms') = 'number' \
      AND (p.value ->> 'complete_through_ms')::numeric BETWEEN 0 AND 253402300799999 \
      THEN (p.value ->> 'complete_through_ms')::double precision END
      """
    let feeds = """
      SELECT e.key AS table_name, c.pipeline, c.sink, c.committed_at AS last_run, \
      CASE WHEN count(\(through)) = count(*) THEN \(time("min(\(through))")) END \
      AS complete_through, \(time("max(e.value::double precision)")) AS last_change, \
      sum(coalesce((p.value ->> 'holes')::numeric, 0)) AS holes, \
      array_agg(p.key ORDER BY p.key) AS topics \
      FROM \(schema)._etl_checkpoint AS c, jsonb_each(c.topics) AS p, \
      jsonb_each_text(CASE jsonb_typeof(p.value -> 'tables') WHEN 'object' \
      THEN p.value -> 'tables' END) AS e \
      GROUP BY e.key, c.pipeline, c.sink, c.committed_at
      """ + (hasPolls ? " UNION ALL \(self.polledFeeds)" : "")
    let facts = """
      SELECT t.table_name, t.entity, f.pipeline, f.sink, \(completeThrough), f.last_run, \
      n.stale, n.partial, coalesce(f.holes, 0) AS holes, f.last_change, f.topics, \(pass), \
      \(self.columnNames("filling")) AS columns_filling, \(self.columnNames("hidden")) AS columns_hidden \
      FROM \(schema)._etl_table AS t LEFT JOIN (\(feeds)) AS f ON f.table_name = t.table_name \
      LEFT JOIN (\((counts + [none]).joined(separator: " UNION ALL "))) \
      AS n (table_name, stale, partial, waiting) ON n.table_name = t.table_name \(join)
      """
    let polls =
      hasPolls
      ? """
      LEFT JOIN \(schema)._etl_poll AS o ON o.pipeline = v.pipeline AND o.sink = v.sink \
      AND o.entity = v.entity
      """ : "CROSS JOIN (SELECT NULL::interval AS every, NULL::timestamptz AS polled_at) AS o"
    return """
      SELECT v.*, \(Self.state) AS state, d.dead_letters, o.every AS polled_every, o.polled_at, \
      (SELECT min((to_jsonb(c) ->> 'refreshed_at')::timestamptz) FROM \(schema)._etl_column AS c \
      WHERE c.table_name = v.table_name AND to_jsonb(c) ->> 'state' IS DISTINCT FROM 'gone') AS refreshed_at \
      FROM (\(facts)) AS v CROSS JOIN LATERAL (\(self.deadLetters)) AS d \(polls)
      """
  }

  /// SQL: the tables of objects without change events. They are complete up to the beginning of the
  /// last read.
  private var polledFeeds: String {
    let schema = SQLIdentifier.quoted(self.schema)
    return """
      SELECT u.name, c.pipeline, c.sink, c.committed_at, o.complete_through, NULL, 0, NULL \
      FROM \(schema)._etl_poll AS o JOIN \(schema)._etl_checkpoint AS c \
      ON c.pipeline = o.pipeline AND c.sink = o.sink CROSS JOIN LATERAL unnest(o.tables) AS u (name) \
      WHERE NOT EXISTS (SELECT FROM jsonb_each(c.topics) AS p WHERE p.value -> 'tables' ? u.name)
      """
  }

  /// SQL: the number of dead letters that neither a retry nor a read of their records has made up for.
  /// An event of a channel that could not be decoded may be of any object. Refused reads are in
  /// `waiting_for_repair`.
  private var deadLetters: String {
    """
    SELECT count(DISTINCT coalesce(r.replay_id, r.id::text)) AS dead_letters \
    FROM \(SQLIdentifier.quoted(self.schema))._etl_resync AS r \
    WHERE r.kind = 'dead_letter' AND r.done_at IS NULL \
    AND r.event_id IS DISTINCT FROM '\(RefusedReads.eventID)' AND (r.entity = v.entity \
    OR r.entity IN (SELECT split_part(u.topic, '/', 3) FROM unnest(v.topics) AS u (topic)))
    """
  }

  /// SQL: how current a table is, in one word. The view `_freshness` of files has the same rules
  /// (`DuckDBViews`).
  private static let state = """
    CASE WHEN v.snapshot_state <> 'complete' THEN 'copying' \
    WHEN v.stale > 0 OR v.waiting_for_repair > 0 OR v.missing_ranges > 0 OR d.dead_letters > 0 \
    OR v.columns_filling IS NOT NULL THEN 'stale' \
    WHEN v.complete_through BETWEEN now() - coalesce(\
    nullif(current_setting('pubsub_etl.late_after', true), '')::interval, '2 hours') \
    - coalesce(o.every, '0') AND now() + interval '5 minutes' THEN 'fresh' ELSE 'late' END
    """

  /// SQL: the names of a table's columns in a state, of which bookkeeping of earlier versions has
  /// none; null without any.
  private func columnNames(_ state: String) -> String {
    """
    (SELECT array_agg(c.column_name ORDER BY c.ordinal) \
    FROM \(SQLIdentifier.quoted(self.schema))._etl_column AS c \
    WHERE c.table_name = t.table_name AND to_jsonb(c) ->> 'state' = '\(state)')
    """
  }

  /// Counts a table's rows by defect, and the records to read again without duplicates: those of
  /// such rows, those that a pass did not return, and those that could not be stored. Excludes
  /// records that were requested within a day and not found, because they are requested once a day.
  private func counts(_ table: CountedTable, hasReads: Bool) -> String {
    let schema = SQLIdentifier.quoted(self.schema)
    let name = "\(schema).\(SQLIdentifier.quoted(table.name))"
    let entity = SQLIdentifier.literal(table.entity)
    func isUnseen(_ id: String) -> String {
      """
      EXISTS (SELECT FROM \(schema)._etl_resync AS u WHERE u.entity = \(entity) \
      AND u.kind = 'unseen' AND u.event_id = 'unseen' AND u.record_id = \(id) \
      AND u.noted_at > now() - interval '24 hours')
      """
    }
    let waiting =
      hasReads
      ? """
      count(*) FILTER (WHERE \(table.waits) AND NOT \(isUnseen("c.id"))) \
      + (SELECT count(DISTINCT r.record_id) FROM \(schema)._etl_resync AS r \
      WHERE r.entity = \(entity) AND r.done_at IS NULL \
      AND (r.kind = 'missing' OR r.kind = 'dead_letter' AND r.epoch IS NULL) \
      AND NOT \(isUnseen("r.record_id")) AND NOT EXISTS (SELECT FROM \(name) AS w \
      WHERE w.id = r.record_id AND (\(RepairList.condition)) AND \(table.waits)))
      """ : "count(*) FILTER (WHERE \(table.waits))"
    return """
      SELECT \(SQLIdentifier.literal(table.name))::text, count(*) FILTER (WHERE _stale), \
      count(*) FILTER (WHERE _partial AND _deleted_at IS NULL), \(waiting) \
      FROM \(name) AS c WHERE \(RepairList.condition)
      """
  }

  /// All tables, current ones and others, in the order of `_freshness`.
  private func currentTables(
    adding others: [TableDefinition], hasBookkeeping: Bool, over connection: PostgresConnection
  ) throws(PostgresError) -> [CountedTable] {
    var tables: [CountedTable] = []
    if hasBookkeeping {
      let known = try connection.query(
        """
        SELECT t.table_name, t.entity, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.id \
        AND a.attname = '_read_at' AND a.attnum > 0 AND NOT a.attisdropped) \
        FROM \(SQLIdentifier.quoted(self.schema))._etl_table AS t, LATERAL (SELECT \
        to_regclass(quote_ident($1) || '.' || quote_ident(t.table_name)) AS id) AS c \
        WHERE t.kind = 'current' AND c.id IS NOT NULL
        """, [self.schema])
      for row in 0..<known.rowCount {
        tables.append(
          CountedTable(
            name: known[row, 0] ?? "", entity: known[row, 1] ?? "",
            hasReadColumns: known[row, 2] == "t"))
      }
    }
    for other in others where !tables.contains(where: { $0.name == other.name }) {
      tables.append(
        CountedTable(
          name: other.name, entity: other.entity, hasReadColumns: other.hasReadColumns))
    }
    return tables.sorted { $0.name < $1.name }
  }

  // MARK: Views

  struct Column: Equatable {
    var name: String
    /// `pg_type.oid`
    var typeOID: UInt32
    /// `pg_attribute.atttypmod`
    var typeModifier: Int32 = -1

    init(name: String, typeOID: UInt32, typeModifier: Int32) {
      (self.name, self.typeOID, self.typeModifier) = (name, typeOID, typeModifier)
    }

    /// - Parameter type: the SQL name of a `PostgresType`.
    init(name: String, type: String) {
      self.name = name
      self.typeOID = PostgresType(rawValue: type)?.oid ?? 0
    }
  }

  /// Takes no lock on a view that is up to date.
  func update(
    _ change: ViewChange, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    guard !change.isDone else { return .unchanged }
    let hasJournal = try connection.query(
      "SELECT to_regclass($1) IS NOT NULL", [self.bookkeeping.qualified("_etl_journal")])
    let make = [change.create] + change.note(hasJournal: hasJournal[0, 0] == "t")
    guard change.fit == .other else {
      try connection.execute((change.renaming + make).joined(separator: "; "))
      guard change.renames.isEmpty else { return .replaced }
      return change.fit == .none ? .created : change.fit == .same ? .unchanged : .replaced
    }
    try connection.execute("SAVEPOINT _etl_view")
    do {
      try connection.execute(
        "\(change.drop); \(make.joined(separator: "; ")); RELEASE SAVEPOINT _etl_view")
      return .remade
    } catch {
      // dependent_objects_still_exist
      guard error.sqlState == "2BP01" else { throw error }
      try connection.execute("ROLLBACK TO SAVEPOINT _etl_view; RELEASE SAVEPOINT _etl_view")
      return .kept
    }
  }

  /// Why a live view is not up to date although nothing but other views prevents it, with the
  /// statements that solve it; nil if it can be updated.
  func conflict(
    _ table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> OutdatedReader? {
    let change = try self.live(table, over: connection)
    guard change.fit == .other else { return nil }
    let others = try DependentView.all(
      on: self.bookkeeping.qualified(change.name), over: connection)
    guard !others.isEmpty else { return nil }
    let lacking = LiveView(table, style: self.style, types: [:], existing: []).columns.map(\.name)
      .filter { name in !change.state.columns.contains { $0.name == name } }
    let manual = DependentView.manual(others)
    let statements = manual == nil ? try self.statements(change, over: connection) : []
    let columns =
      lacking.isEmpty
      ? "" : " (\(lacking.map { SQLIdentifier.quoted($0) }.joined(separator: ", ")))"
    return OutdatedReader(
      message: "view \(self.bookkeeping.qualified(change.name)) cannot get the columns of its "
        + "table\(columns) because other views depend on it: "
        + "\(others.map(\.name).joined(separator: ", ")). "
        + (manual ?? "Run \(statements.joined(separator: "; "))"),
      statements: statements)
  }

  /// The statements of a change, with those that drop and recreate the views that prevent it.
  func statements(
    _ change: ViewChange, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    guard !change.isDone else { return [] }
    let make = [change.create] + change.note(hasJournal: true)
    guard change.fit == .other else { return change.renaming + make }
    let own = try DependentView.attributes(
      on: self.bookkeeping.qualified(change.name), over: connection)
    let others = try DependentView.all(
      on: self.bookkeeping.qualified(change.name), over: connection)
    guard !others.isEmpty else { return [change.drop] + make + own }
    return ["BEGIN"] + others.reversed().map(\.drop) + [change.drop] + make + own
      + others.flatMap(\.creation) + ["COMMIT"]
  }
}
