internal import Pipeline
internal import PostgresClient

/// SQL that compares records that were read with the current table, and keeps the findings in
/// temporary tables of the session; `r` is a record, `t` its row.
///
/// Records and rows that changed at or after the horizon are not compared, because they may still
/// be changing.
struct VerificationStatements {
  static let read = "pg_temp._etl_verify_read"
  /// The records of the org and the rows without a record, each with its kind after all records were
  /// read.
  static let seen = "pg_temp._etl_verify_seen"
  /// Records that differed at least once, with their kinds since then.
  static let candidates = "pg_temp._etl_verify_candidate"

  /// Kinds of candidates that count as drift if they remain.
  static let drift = "('missing', 'differing', 'extra', 'not_found', 'outside')"
  /// Kinds of drift that reading records again may correct.
  private static let repairable = "('missing', 'differing', 'extra', 'not_found')"

  private let table: VerifiedTable
  private let current: String
  private let entity: String
  private let resync: String
  private let horizon: String
  private let comparesStamps: Bool

  /// - Parameters:
  ///   - horizon: milliseconds since 1970.
  ///   - comparesStamps: a record that changed after the row's last change is a candidate.
  init(_ table: VerifiedTable, horizon: Int64, comparesStamps: Bool) {
    self.table = table
    self.comparesStamps = comparesStamps
    self.current = table.current.qualifiedName
    self.entity = SQLIdentifier.literal(table.current.entity)
    self.resync = ResyncTable.qualifiedName(schema: table.current.schema)
    self.horizon = "to_timestamp(\(horizon)::double precision / 1000)"
  }

  // MARK: Temporary tables

  var create: String {
    let columns = self.table.columns.enumerated().map { place, index in
      ", c\(place) \(self.table.tables.dataColumns[index].type.sqlName)"
    }
    return """
      DROP TABLE IF EXISTS \(Self.read); DROP TABLE IF EXISTS \(Self.seen); \
      DROP TABLE IF EXISTS \(Self.candidates); \
      CREATE TEMPORARY TABLE _etl_verify_read (_id text, _stamp timestamptz, _is_deleted boolean, \
      _omission text\(columns.joined())) ON COMMIT DELETE ROWS; \
      CREATE TEMPORARY TABLE _etl_verify_seen (id text PRIMARY KEY, kind text NOT NULL); \
      CREATE TEMPORARY TABLE _etl_verify_candidate (id text PRIMARY KEY, \
      round integer NOT NULL DEFAULT 0, kind text NOT NULL, fields integer[])
      """
  }

  let copy = "COPY \(Self.read) FROM STDIN (FORMAT binary)"

  static let forget = "TRUNCATE \(Self.seen), \(Self.candidates)"

  // MARK: Comparisons

  /// The source of the records.
  enum Origin {
    /// All records of the object.
    case pass
    /// Some records, chosen at random.
    case sample
  }

  /// Compares what was copied.
  ///
  /// - Parameter columns: places among the table's columns whose values every record has.
  func compare(_ origin: Origin, columns: [Int]) -> String {
    // Two pages may contain the same record, which counts once.
    let outcomes = """
      WITH o AS MATERIALIZED (SELECT DISTINCT ON (id) id, kind, fields \
      FROM (\(self.outcomes(columns, comparesStamps: self.comparesStamps && origin == .pass))) AS o)
      """
    switch origin {
    case .pass:
      return """
        \(outcomes), s AS (INSERT INTO \(Self.seen) (id, kind) SELECT id, kind FROM o \
        ON CONFLICT (id) DO NOTHING) \(Self.addCandidates("kind IN \(Self.drift)"))
        """
    case .sample: return "\(outcomes) \(Self.addCandidates("kind <> 'equal'"))"
    }
  }

  private static func addCandidates(_ condition: String) -> String {
    """
    INSERT INTO \(Self.candidates) (id, kind, fields) SELECT id, kind, fields FROM o \
    WHERE \(condition) ON CONFLICT (id) DO NOTHING
    """
  }

  /// Compares candidates again.
  func compareAgain(columns: [Int]) -> String {
    """
    UPDATE \(Self.candidates) AS k SET kind = o.kind, fields = o.fields \
    FROM (\(self.outcomes(columns, comparesStamps: false))) AS o WHERE k.id = o.id
    """
  }

  /// Classifies candidates that REST finds neither as records nor in the recycle bin; `$1` are
  /// their IDs.
  var judgeMissing: String {
    """
    UPDATE \(Self.candidates) AS k SET fields = NULL, kind = CASE WHEN \(self.isRowYoung) THEN 'young' \
    WHEN NOT \(Self.isLive) THEN 'gone' WHEN t._stale OR \(self.isPartial) OR \(self.isWaiting("m.id")) \
    THEN 'marked' ELSE 'not_found' END FROM unnest($1::text[]) AS m (id) \
    LEFT JOIN \(self.current) AS t ON t.id = m.id WHERE k.id = m.id
    """
  }

  /// Adds the rows of records that the org does not have.
  var findExtra: String {
    """
    WITH o AS MATERIALIZED (SELECT t.id, CASE WHEN \(self.isRowYoung) THEN 'young' \
    WHEN t._stale OR \(self.isPartial) THEN 'marked' ELSE 'extra' END AS kind, \
    NULL::integer[] AS fields FROM \(self.current) AS t \
    WHERE t._deleted_at IS NULL AND NOT EXISTS (SELECT FROM \(Self.seen) AS s WHERE s.id = t.id)), \
    s AS (INSERT INTO \(Self.seen) (id, kind) SELECT id, kind FROM o) \
    \(Self.addCandidates("kind = 'extra'"))
    """
  }

  private func outcomes(_ columns: [Int], comparesStamps: Bool) -> String {
    let differences = columns.map { "CASE WHEN \(self.differs($0)) THEN \($0) END" }
    let (waiting, noted) = (self.isWaiting("r._id", .others), self.isWaiting("r._id", .verify))
    let isLate = comparesStamps ? " OR \(self.isLate)" : ""
    return """
      SELECT r._id AS id, f.fields, CASE \
      WHEN coalesce(r._stamp >= \(self.horizon), false) OR \(self.isRowYoung) THEN 'young' \
      WHEN r._omission = '\(OmittedRecord.Kind.leftOut.rawValue)' \
      THEN CASE WHEN \(Self.isLive) THEN 'outside' ELSE 'left_out' END \
      WHEN r._omission IS NOT NULL \
      THEN r._omission || CASE WHEN \(Self.isLive) THEN '' ELSE '_missing' END \
      WHEN r._is_deleted THEN CASE WHEN NOT \(Self.isLive) THEN 'gone' \
      WHEN t._stale OR \(waiting) THEN 'outdated' ELSE 'extra' END \
      WHEN NOT \(Self.isLive) THEN CASE WHEN \(waiting) THEN 'outdated' ELSE 'missing' END \
      WHEN cardinality(f.fields) > 0\(isLate) \
      THEN CASE WHEN t._stale AND NOT \(noted) OR \(waiting) THEN 'outdated' ELSE 'differing' END \
      WHEN t._stale OR \(self.isPartial) OR t._stale_fields IS NOT NULL THEN 'marked' \
      ELSE 'equal' END AS kind \
      FROM \(Self.read) AS r LEFT JOIN \(self.current) AS t ON t.id = r._id CROSS JOIN LATERAL \
      (SELECT array_remove(ARRAY[\(differences.joined(separator: ", "))]::integer[], NULL) AS fields) AS f
      """
  }

  private static let isLive = "(t.id IS NOT NULL AND t._deleted_at IS NULL)"

  /// The row contains events from after the horizon. A time in the future is wrong, and does not keep
  /// the row from being judged.
  private var isRowYoung: String {
    let newest =
      self.table.current.hasReadColumns
      ? "greatest(t._commit_timestamp, t._system_modstamp)" : "t._commit_timestamp"
    return """
      coalesce(\(newest) >= \(self.horizon) \
      AND \(newest) <= clock_timestamp() + \(SeenRecords.clockTolerance), false)
      """
  }

  /// Only part of the record is known. A partial row that was read lacks the fields that the user
  /// may not see, which are not compared.
  private var isPartial: String {
    self.table.current.hasReadColumns ? "(t._partial AND t._read_at IS NULL)" : "t._partial"
  }

  /// The record has changed since the row's last change, or the row's read has another stamp.
  private var isLate: String {
    let tolerance = "interval '\(ReadMerge.clockTolerance) ms'"
    guard self.table.current.hasReadColumns else {
      return "coalesce(r._stamp > t._commit_timestamp + \(tolerance), false)"
    }
    return """
      coalesce(r._stamp > greatest(t._commit_timestamp, t._system_modstamp) + \(tolerance) \
      OR r._stamp < t._system_modstamp - \(tolerance), false)
      """
  }

  /// Who has noted a record for repair. A difference that a repair should have corrected is drift.
  private enum Note { case verify, others }

  /// The record is already noted for repair.
  private func isWaiting(_ id: String, _ note: Note? = nil) -> String {
    let condition =
      switch note {
      case nil: ""
      case .verify: " AND w.event_id IS NOT DISTINCT FROM \(ResyncTable.verifyEventID)"
      case .others: " AND w.event_id IS DISTINCT FROM \(ResyncTable.verifyEventID)"
      }
    return "EXISTS (SELECT FROM \(self.resync) AS w WHERE w.entity = \(self.entity) "
      + "AND w.record_id = \(id) AND w.done_at IS NULL\(condition))"
  }

  /// Values that differ in more than their form, without a mark that explains the difference.
  private func differs(_ place: Int) -> String {
    let column = self.table.tables.dataColumns[self.table.columns[place]]
    let (left, right) = ("r.c\(place)", "t.\(column.quotedName)")
    var conditions = ["\(left) IS DISTINCT FROM \(right)"]
    if let form = Self.normalForm(column.type) {
      conditions.append("\(form(left)) IS DISTINCT FROM \(form(right))")
    }
    conditions.append("NOT (\(self.isPartial) AND \(right) IS NULL)")
    conditions.append(
      "NOT coalesce(\(SQLIdentifier.literal(column.name)) = ANY (t._stale_fields), false)")
    return conditions.joined(separator: " AND ")
  }

  /// Events have CR LF where REST has LF, and choices in another order; parts that a compound lacks are
  /// null or left out.
  private static func normalForm(_ type: PostgresType) -> ((String) -> String)? {
    switch type {
    case .text: { "replace(\($0), E'\\r\\n', E'\\n')" }
    case .textArray: { "ARRAY(SELECT e FROM unnest(\($0)) AS u (e) ORDER BY e COLLATE \"C\")" }
    case .jsonb: { "replace(jsonb_strip_nulls(\($0))::text, E'\\\\r\\\\n', E'\\\\n')" }
    default: nil
    }
  }

  // MARK: Findings

  static let total = "SELECT count(*) FROM \(Self.seen)"

  /// Each kind and its count.
  static let outcomes = """
    SELECT coalesce(k.kind, s.kind), count(*) FROM \(Self.seen) AS s \
    FULL JOIN \(Self.candidates) AS k ON k.id = s.id GROUP BY 1
    """

  /// Kind, count and some IDs of records with drift.
  static func records(limit: Int) -> String {
    """
    SELECT kind, id FROM (SELECT kind, id, row_number() OVER (PARTITION BY kind ORDER BY id) AS place \
    FROM \(Self.candidates) WHERE kind IN \(Self.drift)) AS k WHERE place <= \(limit) ORDER BY kind, id
    """
  }

  /// Place of the column, count and some IDs of differing records.
  static func fields(limit: Int) -> String {
    """
    SELECT field, total, id FROM (SELECT u.field, k.id, count(*) OVER (PARTITION BY u.field) AS total, \
    row_number() OVER (PARTITION BY u.field ORDER BY k.id) AS place \
    FROM \(Self.candidates) AS k, unnest(k.fields) AS u (field) WHERE k.kind = 'differing') AS f \
    WHERE place <= \(limit) ORDER BY field, id
    """
  }

  /// Makes the next run read records with drift again, like records that a complete pass did not
  /// return. Until then their rows are marked as wrong.
  var noteForRepair: String {
    """
    INSERT INTO \(self.resync) (entity, kind, record_id, event_id) \
    SELECT \(self.entity), 'missing', id, \(ResyncTable.verifyEventID) FROM \(Self.candidates) \
    WHERE kind IN \(Self.repairable) \
    ON CONFLICT (entity, kind, event_id, record_id) DO UPDATE SET noted_at = now(), done_at = NULL; \
    UPDATE \(self.current) AS t SET _stale = true FROM \(Self.candidates) AS k \
    WHERE k.kind IN \(Self.repairable) AND k.id = t.id AND NOT t._stale
    """
  }
}
