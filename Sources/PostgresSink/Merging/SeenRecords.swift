internal import PostgresClient

/// The records that a pass over an object has brought: those of the current table that are not among
/// them may have been deleted without an event.
///
/// A table of its own, `_etl_seen_` before the name of the current table, for as long as the pass takes.
/// Unlogged: when a crash of the server empties it, records are asked for one by one that need not be.
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

  /// Makes the table, empty, in the open transaction. The current table may be empty as well: events from
  /// before the pass can still come.
  func begin(over connection: PostgresConnection) throws(PostgresError) {
    try self.drop(over: connection)
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

  /// Notes the records that the pass did not bring, to be asked for one by one; ends the table. Those
  /// with an event from after the beginning of the pass are left out: their rows may have been read
  /// before. An event is from before the beginning if it was loaded then, the transaction that began the
  /// pass included, or was committed in the org then.
  ///
  /// - Parameter begunAt: SQL, when the pass began.
  func end(begunAt: String, over connection: PostgresConnection) throws(PostgresError) {
    guard try self.exists(over: connection) else { return }
    try self.noteMissing(begunAt: begunAt, over: connection)
    try self.drop(over: connection)
  }

  /// Goes through both tables once: the settings of statements for a few records, earlier in the
  /// transaction, would go through one of them for each record of the other.
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

  private func drop(over connection: PostgresConnection) throws(PostgresError) {
    try connection.execute("DROP TABLE IF EXISTS \(self.name)")
  }
}
