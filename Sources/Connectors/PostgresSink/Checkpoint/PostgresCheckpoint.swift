internal import Checkpoint
package import JSON
package import Pipeline
package import PostgresClient

/// The owner of a pipeline, as stored in its row of `_etl_checkpoint`.
package struct LeaseOwner: Sendable, Equatable {
  /// Host and state directory, for people.
  package var place: String
  /// The identity of the state directory. Only one process at a time holds that directory's lock,
  /// so a stored owner with the same identity has ended. Contains no spaces.
  package var identity: String
  package var processID: Int32

  package init(place: String, identity: String, processID: Int32) {
    self.place = place
    self.identity = identity
    self.processID = processID
  }

  package var text: String { "\(self.place) pid \(self.processID)\(self.suffix)" }

  private var suffix: String { " id \(self.identity)" }

  /// - Parameter text: the owner in a row. An owner without identity, from an earlier version,
  ///   counts as a different one, because several may share its place.
  package func isSameState(_ text: String) -> Bool { text.hasSuffix(self.suffix) }
}

/// Another run holds the pipeline or has taken it over.
package struct LeaseError: Error, Sendable, CustomStringConvertible {
  package var description: String
}

/// The row of a sink in `_etl_checkpoint`: positions, fence and lease, changed in the transaction
/// that holds the rows.
///
/// Every run increments the fence; a commit whose fence differs from the row's changes nothing. All
/// times are the database's.
package struct PostgresCheckpoint {
  /// The time without a commit after which another run may take over.
  static let lease = "interval '60 seconds'"

  private let pipeline: String
  private let sink: String
  let org: String
  private let owner: LeaseOwner
  private let table: String
  private let journal: String
  private let orgs: SchemaOrgs
  private var fence = 0
  /// Positions that the database has confirmed, JSON text; nil before the lease is taken.
  private var confirmed: String?
  /// Positions when the lease was taken, JSON text; nil before.
  private var acquired: String?
  /// The owner whose lease `acquire` took over; nil if no other run held it.
  package private(set) var formerLease: (owner: String, fence: Int)?

  package init(
    pipeline: String, sink: String, org: String, owner: LeaseOwner, bookkeeping: Bookkeeping
  ) {
    self.pipeline = pipeline
    self.sink = sink
    self.org = org
    self.owner = owner
    self.table = bookkeeping.qualified("_etl_checkpoint")
    self.journal = bookkeeping.qualified("_etl_journal")
    self.orgs = SchemaOrgs(bookkeeping)
  }

  /// Takes the lease.
  ///
  /// - Parameter positions: the initial content of a new row; nil creates no row.
  /// - Returns: the stored positions by topic; nil without a row.
  /// - Throws: `LeaseError` naming the owner, `OtherOrgError`, `PostgresError`, `TopicPositionError`.
  package mutating func acquire(
    over connection: PostgresConnection, takesOver: Bool,
    creating positions: [String: TopicPosition]?
  ) throws -> [String: TopicPosition]? {
    try connection.begin()
    do {
      if let positions {
        // Serialized, so that the second of two first runs sees the org of the first.
        try connection.execute("LOCK TABLE \(self.table) IN SHARE ROW EXCLUSIVE MODE")
        try self.orgs.check(self.org, over: connection)
        let members = positions.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value.json) }
        let made = try connection.query(
          """
          INSERT INTO \(self.table) \
          (pipeline, sink, org, topics, owner, fence, lease_until, committed_at) \
          VALUES ($1, $2, $3, $5::jsonb, $4, 1, now() + \(Self.lease), now()) \
          ON CONFLICT (pipeline, sink) DO NOTHING
          """,
          [
            self.pipeline, self.sink, self.org, self.owner.text,
            Self.text(JSONValue(.object(members))),
          ])
        if made.affectedRowCount == 1 {
          try self.orgs.note(
            self.org, pipeline: self.pipeline, sink: self.sink, over: connection)
        }
      }
      let positions = try self.acquireInTransaction(over: connection, takesOver: takesOver)
      try connection.execute("COMMIT")
      return positions
    } catch {
      if connection.isConnected { try? connection.execute("ROLLBACK") }
      throw error
    }
  }

  private mutating func acquireInTransaction(
    over connection: PostgresConnection, takesOver: Bool
  ) throws -> [String: TopicPosition]? {
    self.confirmed = nil
    let row = try connection.query(
      """
      SELECT org, topics::text, owner, fence, lease_until > now(), \
      to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') \
      FROM \(self.table) WHERE pipeline = $1 AND sink = $2 FOR UPDATE
      """, [self.pipeline, self.sink])
    if row.rowCount == 0 { return nil }
    guard let org = row[0, 0], let topics = row[0, 1], let owner = row[0, 2],
      let fence = row.number(0, 3).map(Int.init), fence < Int.max
    else {
      throw PostgresError(.resources, "postgres: the checkpoint row is incomplete or damaged")
    }
    guard org == self.org else {
      throw OtherOrgError(
        description:
          "postgres: the positions of pipeline '\(self.pipeline)', sink '\(self.sink)' belong to "
          + "org \(org), but the login is for org \(self.org); nothing was written")
    }
    if row[0, 4] == "t", !takesOver, !self.owner.isSameState(owner) {
      throw LeaseError(
        description:
          "pipeline '\(self.pipeline)' is being run by \(owner), sink '\(self.sink)', until at "
          + "least \(row[0, 5] ?? "?"); run again later, or with --take-over if you know that "
          + "the run has ended")
    }
    if row[0, 4] == "t", !self.owner.isSameState(owner) {
      try self.noteTakeOver(from: owner, fence: fence, until: row[0, 5], over: connection)
    }
    self.fence = fence + 1
    try connection.query(
      """
      UPDATE \(self.table) SET owner = $3, fence = $4, lease_until = now() + \(Self.lease) \
      WHERE pipeline = $1 AND sink = $2
      """, [self.pipeline, self.sink, self.owner.text, "\(self.fence)"])
    self.confirmed = topics
    self.acquired = topics
    return try Self.positions(topics)
  }

  /// The place of the next event of each topic when the lease was taken and after the last commit, JSON
  /// text; nil without a lease.
  ///
  /// - Throws: `TopicPositionError`.
  func places() throws -> String? {
    guard let acquired, let confirmed else { return nil }
    let begin = try Self.positions(acquired)
    let members = try Self.positions(confirmed).sorted { $0.key < $1.key }.map { topic, end in
      JSONMember(
        topic,
        [
          "begin_epoch": .integer(begin[topic]?.epoch ?? 0),
          "begin_ordinal": .integer(begin[topic]?.nextOrdinal ?? 0),
          "end_epoch": .integer(end.epoch), "end_ordinal": .integer(end.nextOrdinal),
        ])
    }
    return Self.text(JSONValue(.object(members)))
  }

  /// Checks that the schema's tables belong to the login's org, before anything changes.
  ///
  /// - Throws: `OtherOrgError`.
  func checkOrg(over connection: PostgresConnection) throws {
    try self.orgs.check(self.org, over: connection)
  }

  /// Call this once a transaction with these positions is known to be committed.
  mutating func committed(topics: String) { self.confirmed = topics }

  /// Runs in the transaction that takes the lease.
  private mutating func noteTakeOver(
    from former: String, fence: Int, until lease: String?, over connection: PostgresConnection
  ) throws(PostgresError) {
    let detail: JSONValue = [
      "command": "run --take-over", "pipeline": .string(self.pipeline), "sink": .string(self.sink),
      "owner": .string(self.owner.text), "fence": .integer(fence + 1),
      "former_owner": .string(former), "former_lease_until": lease.map { .string($0) } ?? nil,
    ]
    try connection.query(
      """
      INSERT INTO \(self.journal) (table_name, action, detail) \
      VALUES ('_etl_checkpoint', 'take_over', $1)
      """, [Self.text(detail)])
    self.formerLease = (former, fence)
  }

  static func positions(_ text: String) throws -> [String: TopicPosition] {
    var positions: [String: TopicPosition] = [:]
    let limits = JSONLimits(byteCount: FileCheckpointStore.maxByteCount)
    for member in try JSONValue(parsing: text, limits: limits).members ?? [] {
      positions[member.name] = try TopicPosition(json: member.value, topic: member.name)
    }
    return positions
  }

  /// Stores positions and renews the lease, in the open transaction. Locks the row first, so that
  /// no other run commits at the same time.
  ///
  /// - Parameters:
  ///   - topics: JSON text.
  ///   - completeThrough: milliseconds since 1970; nil if unknown.
  ///   - verifies: the server may be a different one. A promoted standby may lack commits that its
  ///     predecessor confirmed, and continuing would lose their events.
  package func store(
    topics: String, completeThrough: Int64?, verifies: Bool = false,
    over connection: PostgresConnection
  ) throws {
    guard topics.utf8.count <= FileCheckpointStore.maxByteCount else {
      throw PostgresError(
        .contract,
        "postgres: the positions of pipeline '\(self.pipeline)', sink '\(self.sink)' would "
          + "take \(topics.utf8.count) bytes, more than the \(FileCheckpointStore.maxByteCount) "
          + "that can be read back; the transaction was not committed")
    }
    let stored = try connection.query(
      """
      UPDATE \(self.table) SET topics = $4::jsonb, lease_until = now() + \(Self.lease), \
      committed_at = now(), complete_through = to_timestamp($5::double precision / 1000) \
      WHERE pipeline = $1 AND sink = $2 AND fence = $3 \
      AND ($6::jsonb IS NULL OR topics = $6::jsonb)
      """,
      [
        self.pipeline, self.sink, "\(self.fence)", topics, completeThrough.map { "\($0)" },
        verifies ? self.confirmed : nil,
      ])
    guard stored.affectedRowCount == 1 else {
      if verifies, try self.hasLease(over: connection) { throw self.rewound }
      throw self.takenOver(over: connection)
    }
  }

  private func hasLease(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let row = try connection.query(
      "SELECT fence = $3 FROM \(self.table) WHERE pipeline = $1 AND sink = $2",
      [self.pipeline, self.sink, "\(self.fence)"])
    return row.rowCount == 1 && row[0, 0] == "t"
  }

  private var rewound: PostgresError {
    PostgresError(
      .rewound,
      "postgres: pipeline '\(self.pipeline)', sink '\(self.sink)': the positions in the database are not "
        + "those that it had confirmed, as after a failover to a standby that was behind; nothing more "
        + "was written. Run again: the next run resumes from what the database has")
  }

  /// JSON text that `jsonb` accepts: without U+0000, which a hostile event ID may contain.
  package static func text(_ value: JSONValue) -> String {
    let text = value.text()
    guard text.utf8.contains(0x5C), text.contains("\\u0000") else { return text }
    return Self.withoutNull(value).text()
  }

  private static func withoutNull(_ value: JSONValue) -> JSONValue {
    switch value.content {
    case .null, .boolean, .number: value
    case .string(let text): .string(PostgresText.storable(text))
    case .array(let values): .array(values.map(Self.withoutNull))
    case .object(let members):
      JSONValue(
        .object(
          members.map { JSONMember(PostgresText.storable($0.name), Self.withoutNull($0.value)) }))
    }
  }

  /// Finds out whether an unanswered `COMMIT` was executed. The lock on the row waits for a
  /// transaction that is still committing.
  package func isStored(topics: String, over connection: PostgresConnection) throws -> Bool {
    let row = try connection.query(
      """
      SELECT topics = $4::jsonb FROM \(self.table) \
      WHERE pipeline = $1 AND sink = $2 AND fence = $3 FOR UPDATE
      """, [self.pipeline, self.sink, "\(self.fence)", topics])
    guard row.rowCount == 1 else { throw self.takenOver(over: connection) }
    return row[0, 0] == "t"
  }

  /// Renews the lease without a commit. Changes nothing if another run has taken the row.
  package func renew(over connection: PostgresConnection) throws {
    try connection.query(
      """
      UPDATE \(self.table) SET lease_until = now() + \(Self.lease) \
      WHERE pipeline = $1 AND sink = $2 AND fence = $3
      """, [self.pipeline, self.sink, "\(self.fence)"])
  }

  /// Ends the lease at once, for the next run.
  package func release(over connection: PostgresConnection) throws {
    try connection.query(
      """
      UPDATE \(self.table) SET lease_until = now() \
      WHERE pipeline = $1 AND sink = $2 AND fence = $3
      """, [self.pipeline, self.sink, "\(self.fence)"])
  }

  private func takenOver(over connection: PostgresConnection) -> LeaseError {
    let row = try? connection.query(
      "SELECT owner FROM \(self.table) WHERE pipeline = $1 AND sink = $2",
      [self.pipeline, self.sink])
    let owner =
      row.flatMap { $0.rowCount == 1 ? $0[0, 0] : nil } ?? "an unknown run: its row is gone"
    return LeaseError(
      description: "pipeline '\(self.pipeline)', sink '\(self.sink)' has been taken over by "
        + "\(owner); nothing more was written")
  }
}
