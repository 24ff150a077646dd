internal import PostgresClient

/// Records of an object whose rows may be wrong and can be read again.
struct RepairList {
  private let entity: String
  private let current: TableDefinition
  private let resync: String

  /// The condition of the index that finds such rows. It is repeated literally, so that the planner
  /// uses the index.
  static let condition = "_stale OR _partial OR _stale_fields IS NOT NULL"

  init(_ current: TableDefinition) {
    self.entity = current.entity
    self.current = current
    self.resync = ResyncTable.qualifiedName(schema: current.schema)
  }

  /// Some of the records, ordered by ID: those whose last event arrived so long ago that a read now
  /// contains it. For records that a pass did not return, an event that was certainly committed
  /// that long ago counts, too. Records that could not be seen or stored are requested once a day.
  ///
  /// - Parameters:
  ///   - id: only records after this ID.
  ///   - visibilityWait: milliseconds.
  func records(
    after id: String, limit: Int, visibilityWait: Int64, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let isUnseen = """
      EXISTS (SELECT FROM \(self.resync) AS u WHERE u.entity = $1 AND u.kind = 'unseen' \
      AND u.event_id = 'unseen' AND u.record_id = m.id AND u.noted_at > now() - interval '24 hours')
      """
    let isRecent = """
      EXISTS (SELECT FROM \(self.current.qualifiedName) AS c WHERE c.id = r.record_id \
      AND c._updated_at > now() - interval '\(visibilityWait) ms' AND c._commit_timestamp > now() \
      - interval '\(visibilityWait) ms' - \(SeenRecords.clockTolerance))
      """
    // A partial row that was read lacks fields that the user may not see.
    let result = try connection.query(
      """
      SELECT id FROM (SELECT id FROM \(self.current.qualifiedName) WHERE (\(Self.condition)) \
      AND (_stale OR _stale_fields IS NOT NULL OR _read_at IS NULL AND _deleted_at IS NULL) \
      AND _updated_at <= now() - interval '\(visibilityWait) ms' \
      UNION SELECT record_id FROM \(self.resync) AS r WHERE entity = $1 AND done_at IS NULL \
      AND (kind = 'missing' AND NOT \(isRecent) \
      AND (event_id IS DISTINCT FROM \(ResyncTable.subsetEventID) \
      OR noted_at <= now() - interval '\(visibilityWait) ms') OR kind = 'dead_letter' AND epoch IS NULL \
      AND noted_at <= now() - interval '24 hours')) AS m \
      WHERE id > $2 AND NOT \(isUnseen) ORDER BY id LIMIT \(limit)
      """, [self.entity, id])
    return (0..<result.rowCount).compactMap { result[$0, 0] }
  }

  /// Notes records that were requested and not found. Their state is unknown, and they may be
  /// deleted. In a history this counts as a gap.
  func noteUnseen(
    _ records: [String], epoch: Int, ordinal: Int64, over connection: PostgresConnection
  ) throws(PostgresError) {
    let ids = SQLArray.literal(records.map { .some($0) })
    try connection.query(
      """
      INSERT INTO \(self.resync) (entity, kind, record_id, event_id, epoch, ordinal) \
      SELECT $1, k.kind, u.id, 'unseen', $3, $4 FROM unnest($2::text[]) AS u (id), \
      (VALUES ('unseen'), ('gap')) AS k (kind) ON CONFLICT (entity, kind, event_id, record_id) \
      DO UPDATE SET noted_at = now(), done_at = NULL, epoch = excluded.epoch, \
      ordinal = excluded.ordinal
      """, [self.entity, ids, "\(epoch)", "\(ordinal)"])
  }
}
