internal import Pipeline
internal import PostgresClient

/// The objects without change events that a sink reads again and again: `_etl_poll`.
struct PollTable {
  static let name = "_etl_poll"
  static let columns = """
    pipeline text, sink text, entity text, every interval not null,
    tables text[] not null default '{}', polled_at timestamptz, complete_through timestamptz,
    full_at timestamptz, primary key (pipeline, sink, entity)
    """

  private let pipeline: String
  private let sink: String
  private let table: String

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.pipeline = pipeline
    self.sink = sink
    self.table = bookkeeping.qualified(Self.name)
  }

  /// Replaces the list of objects, in the open transaction. What is known of the ones that stay is
  /// kept.
  func set(
    _ polls: [String: Duration], over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      "DELETE FROM \(self.table) WHERE pipeline = $1 AND sink = $2 AND entity <> ALL ($3::text[])",
      [self.pipeline, self.sink, SQLArray.literal(polls.keys.sorted())])
    for (entity, every) in polls.sorted(by: { $0.key < $1.key }) {
      try connection.query(
        """
        INSERT INTO \(self.table) (pipeline, sink, entity, every) \
        VALUES ($1, $2, $3, $4::bigint * interval '1 second') \
        ON CONFLICT (pipeline, sink, entity) DO UPDATE SET every = excluded.every
        """, [self.pipeline, self.sink, entity, "\(every.components.seconds)"])
    }
  }

  /// When the last complete reads of each object began.
  func read(
    _ clock: DatabaseClock, over connection: PostgresConnection
  ) throws(PostgresError) -> [String: PollSchedule.LastReads] {
    func milliseconds(_ column: String) -> String {
      "floor(extract(epoch FROM \(column)) * 1000)::bigint"
    }
    let rows = try connection.query(
      """
      SELECT entity, \(milliseconds("full_at")), \(milliseconds("complete_through")) \
      FROM \(self.table) WHERE pipeline = $1 AND sink = $2
      """, [self.pipeline, self.sink])
    var reads: [String: PollSchedule.LastReads] = [:]
    for row in 0..<rows.rowCount {
      guard let entity = rows[row, 0] else { continue }
      reads[entity] = PollSchedule.LastReads(
        full: rows.number(row, 1).map { clock.instant(of: $0) },
        any: rows.number(row, 2).map { clock.instant(of: $0) })
    }
    return reads
  }

  /// Notes the tables of an object, and a pass that is complete, in the open transaction.
  ///
  /// - Parameter begunAt: SQL, when the pass began.
  func note(
    _ pass: ReadPass, begunAt: String, tables: [String], over connection: PostgresConnection
  ) throws(PostgresError) {
    let progress =
      pass.state == .complete
      ? ", polled_at = now(), complete_through = \(begunAt)"
        + (pass.isOfChanges ? "" : ", full_at = \(begunAt)")
      : ""
    try connection.query(
      """
      UPDATE \(self.table) SET tables = $4\(progress) \
      WHERE pipeline = $1 AND sink = $2 AND entity = $3
      """, [self.pipeline, self.sink, pass.entity, SQLArray.literal(tables)])
  }
}
