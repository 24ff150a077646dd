internal import Checkpoint
internal import JSON
package import Pipeline
internal import PostgresClient

/// Moves a sink to another org when the user has decided so.
extension CheckpointTable {
  /// What the schema holds before the sink moves to another org.
  package struct OrgState: Sendable, Equatable {
    /// The orgs whose data the schema's tables hold.
    package var orgs: [String]
    /// The highest epoch of any row; 0 without one.
    package var newestEpoch: Int
  }

  /// - Returns: nil when the schema has no tables of this program.
  package func orgState() throws -> OrgState? {
    try self.reading(isQuick: false) {
      guard try self.exists("_etl_checkpoint"), try self.exists("_etl_journal"),
        try self.exists("_etl_table")
      else { return nil }
      let tables = try self.connection.query(
        """
        SELECT table_name FROM \(self.bookkeeping.qualified("_etl_table")) \
        WHERE to_regclass($1 || '.' || quote_ident(table_name)) IS NOT NULL
        """, [SQLIdentifier.quoted(self.bookkeeping.schema)])
      try self.checkVisible(and: (0..<tables.rowCount).compactMap { tables[$0, 0] })
      var newest = 0
      for row in 0..<tables.rowCount {
        guard let table = tables[row, 0] else { continue }
        let epoch = try self.connection.query(
          "SELECT max(_epoch) FROM \(self.bookkeeping.qualified(table))"
        ).number(0, 0).map(Int.init)
        newest = max(newest, epoch ?? 0)
      }
      return OrgState(
        orgs: try SchemaOrgs(self.bookkeeping).read(over: self.connection), newestEpoch: newest)
    }
  }

  /// Moves the sink to an org, at positions that begin new epochs, and creates its row if there is
  /// none. The state of records that were read applies only to the old org. `commit` makes the
  /// change durable.
  ///
  /// - Parameters:
  ///   - entities: objects whose records the next run has to read, whatever was read before.
  ///   - expected: the result of `read`.
  ///   - command: the command that the user gave.
  /// - Throws: `LeaseError` while another place runs the pipeline, or when the positions have changed.
  package func accept(
    org: String, _ positions: [String: TopicPosition], reading entities: [String],
    expecting expected: DatabaseState?, owner: LeaseOwner, command: String
  ) throws {
    try self.correctSequences()
    try self.connection.begin()
    do {
      let found = try self.state(locking: true)
      if let state = found ?? expected { try self.checkLease(state, owner: owner) }
      guard found?.positions == expected?.positions, found?.fence == expected?.fence else {
        throw self.changed(by: found)
      }
      let members = positions.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value.json) }
      let topics = PostgresCheckpoint.text(JSONValue(.object(members)))
      // Each topic keeps its tables.
      try self.connection.query(
        """
        INSERT INTO \(self.table) AS c \
        (pipeline, sink, org, topics, owner, fence, lease_until, committed_at) \
        VALUES ($1, $2, $3, $4::jsonb, $5, 1, now(), now()) \
        ON CONFLICT (pipeline, sink) DO UPDATE SET org = excluded.org, topics = \
        (SELECT coalesce(jsonb_object_agg(p.key, p.value || CASE WHEN c.topics -> p.key ? 'tables' \
        THEN jsonb_build_object('tables', c.topics -> p.key -> 'tables') ELSE '{}' END), '{}') \
        FROM jsonb_each(excluded.topics) AS p), owner = excluded.owner, fence = c.fence + 1, \
        lease_until = now(), complete_through = NULL
        """, [self.pipeline, self.sink, org, topics, owner.text])
      try self.restartReads(entities, isNew: found == nil)
      try self.noteMissing(positions, before: expected)
      let detail: JSONValue = [
        "command": .string(command), "pipeline": .string(self.pipeline),
        "sink": .string(self.sink), "owner": .string(owner.text),
        "old": expected.map { .string($0.org) } ?? nil, "new": .string(org),
        "topics": JSONValue(.object(members)),
      ]
      try self.connection.query(
        """
        INSERT INTO \(self.bookkeeping.qualified("_etl_journal")) (table_name, action, detail) \
        VALUES ('_etl_checkpoint', 'accept_org', $1)
        """, [PostgresCheckpoint.text(detail)])
      try SchemaOrgs(self.bookkeeping).note(
        org, pipeline: self.pipeline, sink: self.sink, over: self.connection)
    } catch {
      self.rollBack()
      throw self.explained(error)
    }
  }

  /// Forgets the progress of incomplete passes, because the old org's jobs are useless, and all
  /// passes over the requested objects. Known stamps stay.
  private func restartReads(_ entities: [String], isNew: Bool) throws {
    if !entities.isEmpty {
      let existing = Set(try Bookkeeping.readNames.filter { try self.exists($0) })
      for statement in self.bookkeeping.readStatements(existing: existing) {
        try self.connection.execute(statement)
      }
    }
    if try self.exists(PollTable.name) {
      // Changes of the new org since a read of the old one are not all its records.
      try self.connection.query(
        "DELETE FROM \(self.bookkeeping.qualified(PollTable.name)) WHERE pipeline = $1 AND sink = $2",
        [self.pipeline, self.sink])
    }
    guard try self.exists("_etl_snapshot") else { return }
    let snapshots = self.bookkeeping.qualified("_etl_snapshot")
    try self.connection.query(
      """
      UPDATE \(snapshots) SET number = 0, state = 'awaited', job = NULL, locator = NULL, \
      page_row = 0, rows = 0, total = NULL, requested_at = NULL, finished_at = NULL \
      WHERE pipeline = $1 AND sink = $2 AND entity <> '*' \
      AND (state IN ('begun', 'reading') OR entity = ANY ($3::text[]))
      """, [self.pipeline, self.sink, SQLArray.literal(entities)])
    // An object without a row is also awaited; the row `*` makes the run read awaited objects (see
    // PassTable).
    for entity in entities + (isNew || !entities.isEmpty ? ["*"] : []) {
      try self.connection.query(
        """
        INSERT INTO \(snapshots) (pipeline, sink, entity, number, state, begun_at, page_row, rows) \
        VALUES ($1, $2, $3, 0, $4, now(), 0, 0) ON CONFLICT (pipeline, sink, entity) DO NOTHING
        """, [self.pipeline, self.sink, entity, entity == "*" ? "none" : "awaited"])
    }
  }

  /// Until all records are read, the copy lacks the org's changes from before the new epochs.
  private func noteMissing(
    _ positions: [String: TopicPosition], before old: DatabaseState?
  ) throws {
    guard try self.exists("_etl_missing_range") else { return }
    let ranges = MissingRanges(pipeline: self.pipeline, sink: self.sink, self.bookkeeping)
    for (topic, position) in positions.sorted(by: { $0.key < $1.key }) {
      let through = old?.positions[topic]?.completeThrough
      try ranges.note(
        .init(topic: topic, epoch: position.epoch, completeThrough: through),
        reason: "org_accepted", over: self.connection)
    }
  }

  func changed(by found: DatabaseState?) -> LeaseError {
    LeaseError(
      description:
        "the positions of sink '\(self.sink)' in its database have just been changed by "
        + "\(found?.owner ?? "another run"); nothing was set; check the positions and try again")
  }
}
