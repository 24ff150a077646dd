internal import Pipeline
internal import PostgresClient

/// Records that were read and refused: `_etl_refused_read` has the reason, and because of an entry
/// in `_etl_resync` they are requested again once a day.
struct RefusedReads {
  static let tableName = "_etl_refused_read"
  /// The value of `event_id` in `_etl_resync` for such records.
  static let eventID = "read"

  private let entity: String
  private let bookkeeping: Bookkeeping

  init(entity: String, schema: String) {
    self.entity = entity
    self.bookkeeping = Bookkeeping(schema: schema)
  }

  /// Notes records in the open transaction. A record without an ID cannot be requested.
  func note(
    _ records: [UnreadableRecord], over connection: PostgresConnection
  ) throws(PostgresError) {
    var known: [String: UnreadableRecord] = [:]
    for record in records { if let id = record.recordID { known[id] = record } }
    guard !known.isEmpty else { return }
    let ids = SQLArray.literal(known.keys.map { .some($0) })
    let stamps = SQLArray.literal(
      known.values.map { record in
        record.stamp.flatMap { PostgresTimestamp(milliseconds: $0) }.map { String($0.microseconds) }
      })
    let reasons = SQLArray.literal(known.values.map { .some(PostgresText.storable($0.reason)) })
    try connection.query(
      """
      INSERT INTO \(self.bookkeeping.qualified(Self.tableName)) \
      (entity, record_id, system_modstamp, reason) SELECT $1, record_id, \
      '2000-01-01 00:00:00Z'::timestamptz + microseconds * interval '1 microsecond', reason \
      FROM unnest($2::text[], $3::bigint[], $4::text[]) AS u (record_id, microseconds, reason) \
      ON CONFLICT (entity, record_id) DO UPDATE SET system_modstamp = excluded.system_modstamp, \
      reason = excluded.reason, noted_at = now()
      """, [self.entity, ids, stamps, reasons])
    try connection.query(
      """
      INSERT INTO \(self.bookkeeping.qualified("_etl_resync")) \
      (entity, kind, record_id, event_id) SELECT $1, 'dead_letter', record_id, $3 \
      FROM unnest($2::text[]) AS u (record_id) ON CONFLICT (entity, kind, event_id, record_id) \
      DO UPDATE SET noted_at = now(), done_at = NULL
      """, [self.entity, ids, Self.eventID])
  }
}
