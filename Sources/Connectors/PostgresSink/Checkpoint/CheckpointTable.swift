internal import Bytes
internal import Checkpoint
internal import JSON
package import Pipeline
package import PostgresClient

/// The state of a sink in its database, without its rows.
package struct DatabaseState: Sendable, Equatable {
  package var org: String
  package var positions: [String: TopicPosition]
  /// Host, state directory and process of the last run.
  package var owner: String
  /// The number of the sink's last run.
  package var fence: Int
  /// Times are milliseconds since 1970 by the database's clock.
  package var leaseUntil: Int64
  package var isLeased: Bool
  package var committedAt: Int64
  /// Nil before the first event.
  package var completeThrough: Int64?
}

/// A line of `_freshness`.
package struct TableFreshness: Sendable, Equatable {
  package var table: String
  package var entity: String
  /// Records; nil for history tables.
  package var stale: Int64?
  package var partial: Int64?
  package var holes: Int64
  /// The time through which all topics that feed the table are complete, in milliseconds since
  /// 1970; nil if unknown.
  package var completeThrough: Int64?
  /// Milliseconds since 1970; nil before the first change and if unknown.
  package var lastChange: Int64?
  package var topics: [String]
  /// When all records were last read, in milliseconds since 1970; nil before the first time.
  package var snapshotAt: Int64?
  /// Ranges that its topics lost and that no full reread of the records has repaired.
  package var missingRanges: Int64 = 0
  /// Number of records; nil for history tables and when unknown.
  package var waitingForRepair: Int64?
  /// Number of records that were requested and not found, because they are not shared with the
  /// run-as user or were deleted without an event. Nil for history tables and when unknown.
  package var unseen: Int64?
  /// The pass that is waiting or in progress; nil if there is none.
  package var reading: Reading?
  /// Columns whose values rows may lack until the next run has read them.
  package var fillingColumns: [String] = []
  /// Columns of fields that the run-as user may not see.
  package var hiddenColumns: [String] = []
  /// When columns without events were last read, the one of the oldest; milliseconds since 1970, nil
  /// if none was.
  package var refreshedAt: Int64?
  /// Columns in other states than these and `complete`, by the names of `_columns`.
  package var otherColumns: [String: [String]] = [:]
  /// Nil for objects that are no lookups.
  package var polls: Polls?

  package struct Polls: Sendable, Equatable {
    package var every: Duration
    /// When a read last found the copy current, in milliseconds since 1970; nil before the first time.
    package var lastAt: Int64?

    package init(every: Duration, lastAt: Int64?) {
      self.every = every
      self.lastAt = lastAt
    }
  }

  package struct Reading: Sendable, Equatable {
    package var rows: Int64
    /// Nil while unknown.
    package var total: Int64?
  }
}

/// The positions of a sink in its database, for commands other than the run: those that show
/// positions and those that set them.
///
/// Nothing is retried. Used by one thread at a time.
package final class CheckpointTable {
  let connection: PostgresConnection
  let bookkeeping: Bookkeeping
  let pipeline: String
  let sink: String
  private let configuration: PostgresSinkConfiguration
  var table: String { self.bookkeeping.qualified("_etl_checkpoint") }

  /// Connects.
  package init(
    pipeline: String, sink: String, _ configuration: PostgresSinkConfiguration
  ) throws(PostgresError) {
    self.pipeline = pipeline
    self.sink = sink
    self.bookkeeping = Bookkeeping(schema: configuration.schema)
    self.configuration = configuration
    self.connection = try PostgresConnection(configuration.connection.brief)
  }

  // MARK: Reading

  /// - Returns: nil if the database has no row for the sink.
  /// - Throws: `PostgresError`, `TopicPositionError`.
  package func read() throws -> DatabaseState? {
    try self.reading { try self.exists("_etl_checkpoint") ? try self.state(locking: false) : nil }
  }

  /// The freshness of this sink's tables. Counts stale and partial rows, which reads whole tables.
  /// Empty before the first run.
  package func freshness() throws -> [TableFreshness] {
    try self.reading(isQuick: false) {
      guard try self.exists(ReportingViews.freshnessName) else { return [] }
      let columns = try self.otherColumns()
      let rows = try self.connection.query(
        """
        SELECT table_name, entity, stale, partial, holes, \(Self.milliseconds("complete_through")), \
        \(Self.milliseconds("(to_jsonb(f) ->> 'last_change')::timestamptz")), \
        to_jsonb(f) -> 'topics', \
        \(Self.milliseconds("(to_jsonb(f) ->> 'snapshot_at')::timestamptz")), \
        to_jsonb(f) ->> 'missing_ranges', to_jsonb(f) ->> 'waiting_for_repair', \
        to_jsonb(f) ->> 'snapshot_state', to_jsonb(f) ->> 'snapshot_rows', \
        to_jsonb(f) ->> 'snapshot_total', to_jsonb(f) ->> 'unseen', \
        to_jsonb(f) -> 'columns_filling', to_jsonb(f) -> 'columns_hidden', \
        \(Self.milliseconds("(to_jsonb(f) ->> 'refreshed_at')::timestamptz")), \
        extract(epoch FROM (to_jsonb(f) ->> 'polled_every')::interval)::bigint, \
        \(Self.milliseconds("(to_jsonb(f) ->> 'polled_at')::timestamptz")) \
        FROM \(self.bookkeeping.qualified(ReportingViews.freshnessName)) AS f \
        WHERE pipeline = $1 AND sink = $2 ORDER BY table_name COLLATE "C"
        """, [self.pipeline, self.sink])
      func names(_ row: Int, _ column: Int) throws -> [String] {
        try JSONValue(parsing: rows[row, column] ?? "null").array?.compactMap(\.string) ?? []
      }
      // The columns that the view of an earlier version lacks are null.
      return try (0..<rows.rowCount).map { row in
        TableFreshness(
          table: rows[row, 0] ?? "", entity: rows[row, 1] ?? "",
          stale: rows.number(row, 2), partial: rows.number(row, 3),
          holes: rows.number(row, 4) ?? 0,
          completeThrough: rows.number(row, 5),
          lastChange: rows.number(row, 6),
          topics: try names(row, 7),
          snapshotAt: rows.number(row, 8),
          missingRanges: rows.number(row, 9) ?? 0,
          waitingForRepair: rows.number(row, 10),
          unseen: rows.number(row, 14),
          reading: ["waiting", "reading"].contains(rows[row, 11])
            ? TableFreshness.Reading(
              rows: rows.number(row, 12) ?? 0,
              total: rows.number(row, 13)) : nil,
          fillingColumns: try names(row, 15), hiddenColumns: try names(row, 16),
          refreshedAt: rows.number(row, 17),
          otherColumns: columns[rows[row, 0] ?? ""] ?? [:],
          polls: rows.number(row, 18).map {
            TableFreshness.Polls(every: .seconds($0), lastAt: rows.number(row, 19))
          })
      }
    }
  }

  /// Columns that `_freshness` does not list, by table and state.
  private func otherColumns() throws -> [String: [String: [String]]] {
    guard try self.exists(ReportingViews.columnsName) else { return [:] }
    let rows = try self.connection.query(
      """
      SELECT table_name, state, "column" \
      FROM \(self.bookkeeping.qualified(ReportingViews.columnsName)) \
      WHERE state NOT IN ('complete', 'filling', 'hidden') ORDER BY "column" COLLATE "C"
      """)
    var columns: [String: [String: [String]]] = [:]
    for row in 0..<rows.rowCount {
      guard let table = rows[row, 0], let state = rows[row, 1], let column = rows[row, 2] else {
        continue
      }
      columns[table, default: [:]][state, default: []].append(column)
    }
    return columns
  }

  /// The number of records that were read and refused and that no read has brought since, by object.
  package func refusedReads() throws -> [String: Int64] {
    try self.reading {
      guard try self.exists("_etl_resync") else { return [:] }
      let rows = try self.connection.query(
        """
        SELECT entity, count(*) FROM \(self.bookkeeping.qualified("_etl_resync")) \
        WHERE kind = 'dead_letter' AND event_id = $1 AND done_at IS NULL GROUP BY entity
        """, [RefusedReads.eventID])
      var counts: [String: Int64] = [:]
      for row in 0..<rows.rowCount {
        counts[rows[row, 0] ?? ""] = rows[row, 1].flatMap { Int64($0) } ?? 0
      }
      return counts
    }
  }

  /// - Throws: `PostgresError` (lostTable) if the schema, in which the sink has run, is missing.
  package func checkSchema(feeder: TableFeeder) throws {
    try self.reading {
      try TableCatalog(self.configuration, feeder: feeder).checkSchema(over: self.connection)
    }
  }

  /// Manual changes of the tables, if any.
  package func survey(feeder: TableFeeder) throws -> [TableFinding] {
    try self.reading {
      try TableCatalog(self.configuration, feeder: feeder).survey(over: self.connection)
    }
  }

  /// - Parameter isQuick: `body` reads no whole tables.
  func reading<Value>(isQuick: Bool = true, _ body: () throws -> Value) throws -> Value {
    try self.connection.begin()
    do {
      try self.connection.execute("SET TRANSACTION READ ONLY")
      try self.connection.quickly { try self.checkVisible() }
      let value = try isQuick ? self.connection.quickly(body) : body()
      try self.connection.execute("COMMIT")
      return value
    } catch {
      self.rollBack()
      // What was read from an answer with gaps has misled the body.
      try self.connection.checkAnswers()
      throw self.explained(error)
    }
  }

  /// Adds the statements to run to an error about a missing privilege.
  func explained(_ error: any Error) -> any Error {
    (error as? PostgresError).map(self.configuration.explained) ?? error
  }

  /// A position that a policy hides is not lost.
  ///
  /// - Parameter tables: names of other tables that are read.
  func checkVisible(and tables: [String] = []) throws(PostgresError) {
    let catalog = TableCatalog(self.configuration)
    if let error = try catalog.hiddenBookkeeping(and: tables, over: self.connection) { throw error }
  }

  func exists(_ name: String) throws(PostgresError) -> Bool {
    try self.connection.query(
      "SELECT 1 WHERE to_regclass($1) IS NOT NULL", [self.bookkeeping.qualified(name)]
    ).rowCount == 1
  }

  func state(locking: Bool) throws -> DatabaseState? {
    let row = try self.connection.query(
      """
      SELECT org, topics::text, owner, fence, \(Self.milliseconds("lease_until")), \
      lease_until > now(), \(Self.milliseconds("committed_at")), \
      \(Self.milliseconds("complete_through")) FROM \(self.table) \
      WHERE pipeline = $1 AND sink = $2 \(locking ? "FOR UPDATE" : "")
      """, [self.pipeline, self.sink])
    guard row.rowCount == 1 else { return nil }
    guard let org = row[0, 0], let topics = row[0, 1], let owner = row[0, 2],
      let fence = row.number(0, 3).map(Int.init), let leaseUntil = row.number(0, 4),
      let committedAt = row.number(0, 6)
    else {
      throw PostgresError(.resources, "postgres: the checkpoint row is incomplete or damaged")
    }
    return DatabaseState(
      org: org, positions: try PostgresCheckpoint.positions(topics), owner: owner, fence: fence,
      leaseUntil: leaseUntil, isLeased: row[0, 5] == "t", committedAt: committedAt,
      completeThrough: row.number(0, 7))
  }

  /// Clamps times, including infinities, to the years 1 to 9999.
  private static func milliseconds(_ column: String) -> String {
    """
    CASE WHEN \(column) IS NOT NULL THEN floor(extract(epoch FROM \
    least(greatest(\(column), timestamptz '0001-01-01 00:00Z'), \
    timestamptz '9999-12-31 00:00Z')) * 1000)::bigint END
    """
  }

  // MARK: Setting

  /// The journal's sequence may be behind.
  func correctSequences() throws(PostgresError) {
    _ = try TableCatalog(self.configuration).correctSequences(over: self.connection)
  }

  /// Sets the positions of some topics, ends the lease and records both in `_etl_journal`. A run
  /// that only seemed to have ended can then no longer commit. `commit` makes the change durable.
  ///
  /// - Parameters:
  ///   - expected: what `read` returned; any difference is an error.
  ///   - owner: the owner that sets the positions.
  ///   - command: the command that the user gave.
  /// - Throws: `LeaseError` while another place runs the pipeline, or when the positions have
  ///   changed; `PostgresError`.
  package func set(
    _ positions: [String: TopicPosition], expecting expected: DatabaseState, owner: LeaseOwner,
    command: String
  ) throws {
    try self.correctSequences()
    try self.connection.begin()
    do {
      let found = try self.state(locking: true)
      try self.checkLease(found ?? expected, owner: owner)
      guard let found, found.positions == expected.positions, found.fence == expected.fence else {
        throw self.changed(by: found)
      }
      let members = positions.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value.json) }
      try self.connection.query(
        """
        UPDATE \(self.table) SET topics = topics || (SELECT coalesce(jsonb_object_agg(p.key, \
        p.value || CASE WHEN topics -> p.key ? 'tables' \
        THEN jsonb_build_object('tables', topics -> p.key -> 'tables') ELSE '{}' END), '{}') \
        FROM jsonb_each($3::jsonb) AS p), owner = $4, fence = fence + 1, \
        lease_until = now() WHERE pipeline = $1 AND sink = $2
        """,
        [
          self.pipeline, self.sink, PostgresCheckpoint.text(JSONValue(.object(members))),
          owner.text,
        ])
      for member in members {
        let detail: JSONValue = [
          "command": .string(command), "pipeline": .string(self.pipeline),
          "sink": .string(self.sink), "topic": .string(member.name), "owner": .string(owner.text),
          "old": expected.positions[member.name]?.json ?? nil, "new": member.value,
        ]
        try self.connection.query(
          """
          INSERT INTO \(self.bookkeeping.qualified("_etl_journal")) (table_name, action, detail) \
          VALUES ('_etl_checkpoint', 'set_position', $1)
          """, [detail.text()])
      }
    } catch {
      self.rollBack()
      throw self.explained(error)
    }
  }

  /// - Throws: `LeaseError` while another place runs the pipeline.
  package func checkLease(_ state: DatabaseState, owner: LeaseOwner) throws {
    guard state.isLeased, !owner.isSameState(state.owner) else { return }
    throw LeaseError(
      description:
        "pipeline '\(self.pipeline)' is being run by \(state.owner), sink '\(self.sink)', "
        + "until at least \(UTCTime.timestamp(milliseconds: state.leaseUntil)); nothing was "
        + "set; stop that run first")
  }

  /// Makes the changes of `set` durable.
  package func commit() throws(PostgresError) { try self.connection.execute("COMMIT") }

  package func rollBack() {
    // If the rollback fails, closing the connection ends the transaction.
    if self.connection.transactionStatus != .idle { try? self.connection.execute("ROLLBACK") }
  }
}
