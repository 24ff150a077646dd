internal import JSON
internal import Pipeline
internal import PostgresClient

/// The number of calls that repairs have made today: `_etl_repair_calls`.
struct RepairCalls {
  private let pipeline: String
  private let sink: String
  private let table: String
  private static let today = "(now() AT TIME ZONE 'UTC')::date"

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.pipeline = pipeline
    self.sink = sink
    self.table = bookkeeping.qualified("_etl_repair_calls")
  }

  func ofDay(over connection: PostgresConnection) throws(PostgresError) -> Int {
    let result = try connection.query(
      "SELECT calls FROM \(self.table) WHERE pipeline = $1 AND sink = $2 AND day = \(Self.today)",
      [self.pipeline, self.sink])
    return result.rowCount == 0 ? 0 : result.number(0, 0).map(Int.init) ?? 0
  }

  /// Adds to the number, in the open transaction.
  func add(_ count: Int, over connection: PostgresConnection) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.table) AS c (pipeline, sink, day, calls) \
      VALUES ($1, $2, \(Self.today), $3) ON CONFLICT (pipeline, sink) DO UPDATE SET \
      day = excluded.day, \
      calls = CASE WHEN c.day = excluded.day THEN c.calls ELSE 0 END + excluded.calls
      """, [self.pipeline, self.sink, "\(count)"])
  }
}

/// Ranges of topics whose events expired before they were read: `_etl_missing_range`. Reading all
/// records of the affected objects again repairs the current tables, not the histories.
struct MissingRanges {
  /// An epoch before which events are missing.
  struct Hole: Equatable {
    var topic: String
    var epoch: Int
    /// Milliseconds since 1970; nil if unknown.
    var completeThrough: Int64?
    /// The number of the topic's holes, including this one.
    var count: Int64 = 1
  }

  private let pipeline: String
  private let sink: String
  /// As stored, by topic: the number of holes, and the time through which the topic was complete.
  private var known: [String: (holes: Int64, completeThrough: Int64?)] = [:]
  private let table: String
  private let snapshots: String
  private let resync: String

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.pipeline = pipeline
    self.sink = sink
    self.table = bookkeeping.qualified("_etl_missing_range")
    self.snapshots = bookkeeping.qualified("_etl_snapshot")
    self.resync = bookkeeping.qualified("_etl_resync")
  }

  /// Takes the positions that are stored when the run begins.
  mutating func begin(at positions: [String: TopicPosition]) {
    self.known = positions.mapValues { (Int64($0.holes), $0.completeThrough) }
  }

  /// Compares positions with those stored before.
  func holes(in topics: [String: JSONValue]) -> [Hole] {
    topics.compactMap { topic, position in
      let count = position["holes"]?.integer ?? 0
      guard count > self.known[topic]?.holes ?? 0 else { return nil }
      return Hole(
        topic: topic, epoch: Int(position["epoch"]?.integer ?? 0),
        completeThrough: self.known[topic]?.completeThrough, count: count)
    }
  }

  /// Call this when the positions with the holes are stored.
  mutating func noted(_ holes: [Hole]) {
    for hole in holes { self.known[hole.topic, default: (0, nil)].holes = hole.count }
  }

  /// Notes, in the open transaction, that events are missing before an epoch.
  ///
  /// - Parameter reason: one stable word.
  func note(
    _ hole: Hole, reason: String = "position_expired", over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.table) (pipeline, sink, topic, epoch, missing_from, reason) \
      VALUES ($1, $2, $3, $4, to_timestamp($5::double precision / 1000), $6)
      """,
      [
        self.pipeline, self.sink, hole.topic, "\(hole.epoch)",
        hole.completeThrough.map { "\($0)" }, reason,
      ])
  }

  /// Whether all records of an object have to be read again: an event said that any of them may have
  /// changed, or events are missing.
  func needsPass(
    over entity: String, topic: String, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    try connection.query(
      """
      SELECT EXISTS (SELECT FROM \(self.table) WHERE pipeline = $1 AND sink = $2 AND topic = $3 \
      AND repaired_at IS NULL) OR EXISTS (SELECT FROM \(self.resync) WHERE entity = $4 \
      AND kind IN ('overflow', 'wildcard') AND done_at IS NULL)
      """, [self.pipeline, self.sink, topic, entity])[0, 0] == "t"
  }

  /// Marks the ranges that a complete pass has repaired, in the open transaction. A channel's range
  /// is repaired once all its objects have been read. The pass also covers ranges noted in the
  /// transaction that began it: their changes were committed in the org before the wait that
  /// precedes the records. The same is true of dead letters, unless the read of their record was
  /// refused.
  func close(
    entity: String, topic: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      UPDATE \(self.resync) AS r SET done_at = now() WHERE r.entity = $3 AND r.done_at IS NULL \
      AND r.kind IN ('overflow', 'wildcard', 'dead_letter') AND NOT EXISTS (\
      SELECT FROM \(self.resync) AS o WHERE o.entity = r.entity AND o.record_id = r.record_id \
      AND o.event_id = '\(RefusedReads.eventID)' AND o.done_at IS NULL) \
      AND r.noted_at <= (SELECT begun_at FROM \(self.snapshots) \
      WHERE pipeline = $1 AND sink = $2 AND entity = $3)
      """, [self.pipeline, self.sink, entity])
    // Passes over some columns have keys of two words.
    let others =
      TopicName.isChannel(topic) ? "s.number > 0 AND strpos(s.entity, ' ') = 0" : "s.entity = $4"
    try connection.query(
      """
      UPDATE \(self.table) AS m SET repaired_at = now() WHERE m.pipeline = $1 AND m.sink = $2 \
      AND m.topic = $3 AND m.repaired_at IS NULL AND $4::text IS NOT NULL \
      AND NOT EXISTS (SELECT FROM \(self.snapshots) AS s WHERE s.pipeline = $1 AND s.sink = $2 \
      AND \(others) AND NOT (s.state = 'complete' AND s.begun_at >= m.noted_at))
      """, [self.pipeline, self.sink, topic, entity])
    guard TopicName.isChannel(topic) else { return }
    try connection.query(
      """
      UPDATE \(self.resync) AS r SET done_at = now() WHERE r.entity = $3 AND r.done_at IS NULL \
      AND r.kind = 'dead_letter' AND r.record_id IS NULL \
      AND NOT EXISTS (SELECT FROM \(self.snapshots) AS s WHERE s.pipeline = $1 AND s.sink = $2 \
      AND \(others) AND NOT (s.state = 'complete' AND s.begun_at >= r.noted_at))
      """, [self.pipeline, self.sink, TopicName.entity(topic)])
  }
}
