internal import PostgresClient

/// The records that a pass over an object has returned. Other records of the current table may have
/// been deleted without an event.
///
/// A separate table for the duration of the pass, named `_etl_seen_` and the name of the current
/// table. It is unlogged: if a crash of the server empties it, records are requested one by one
/// unnecessarily.
struct SeenRecords {
  private let current: TableDefinition
  private let name: String

  /// How far the clocks of the org and of the database may differ.
  static let clockTolerance = "interval '5 minutes'"

  init(_ current: TableDefinition) {
    self.current = current
    self.name =
      SQLIdentifier.quoted(current.schema) + "."
      + SQLIdentifier.quoted(SQLIdentifier.shortened("_etl_seen_\(current.name)"))
  }

  /// Creates the empty table in the open transaction, even if the current table is empty, because
  /// events from before the pass can still come.
  func begin(over connection: PostgresConnection) throws(PostgresError) {
    guard try connection.dropUnlessRead(self.name) else { return }
    try connection.execute("CREATE UNLOGGED TABLE \(self.name) (id text)")
  }

  private func exists(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try connection.query("SELECT to_regclass($1) IS NOT NULL", [self.name])[0, 0] == "t"
  }

  func add(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws {
    guard try self.exists(over: connection) else { return }
    try connection.copyIn("COPY \(self.name) (id) FROM STDIN (FORMAT binary)") { writer in
      var row = CopyRow()
      for index in rows {
        row.begin(fieldCount: 1)
        row.value(buffer.bytes[buffer.rows[index].recordID])
        try row.send(to: &writer)
      }
    }
  }

  /// Notes the records that the pass did not return, so that they are requested one by one, and
  /// drops the table. Records with an event from after the pass began are left out, because the
  /// pass may have been past their place by then. An event is older than the pass if it was loaded
  /// by the transaction that began the pass or earlier, or committed in the org before.
  ///
  /// - Parameter begunAt: SQL, when the pass began.
  func end(begunAt: String, over connection: PostgresConnection) throws(PostgresError) {
    guard try self.exists(over: connection) else { return }
    try self.noteMissing(begunAt: begunAt, over: connection)
    _ = try connection.dropUnlessRead(self.name)
  }

  /// Scans both tables once. With the plan settings for a few records, set earlier in the
  /// transaction, one table would be scanned for each record of the other.
  func noteMissing(
    begunAt: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.execute("\(DeltaTable.usualPlans); ANALYZE \(self.name)")
    try connection.execute(
      """
      INSERT INTO \(ResyncTable.qualifiedName(schema: self.current.schema)) \
      (entity, kind, record_id, event_id) \
      SELECT \(SQLIdentifier.literal(self.current.entity)), 'missing', c.id, 'snapshot' \
      FROM \(self.current.qualifiedName) AS c, (SELECT \(begunAt) AS begun_at) AS b WHERE c._deleted_at IS NULL \
      AND (c._updated_at <= b.begun_at OR c._commit_timestamp <= b.begun_at + \(Self.clockTolerance)) \
      AND NOT EXISTS (SELECT FROM \(self.name) AS s WHERE s.id = c.id) \
      ON CONFLICT (entity, kind, event_id, record_id) DO UPDATE SET noted_at = now(), done_at = NULL
      """)
  }
}
