internal import PostgresClient

/// SQL that compares records that were read with the current table, and keeps the findings in
/// temporary tables of the session; `r` is a record, `t` its row.
///
/// Records and rows that changed at or after the horizon are not compared, because they may still
/// be changing.
struct VerificationStatements {
  static let read = "pg_temp._etl_verify_read"
  /// Records that the org has.
  static let seen = "pg_temp._etl_verify_seen"
  /// Records that differed at least once.
  static let candidates = "pg_temp._etl_verify_candidate"

  /// Kinds of candidates that count as drift if they remain.
  static let drift = "('missing', 'differing', 'extra', 'not_found')"

  private let table: VerifiedTable
  private let current: String
  private let entity: String
  private let resync: String
  private let horizon: String

  /// - Parameter horizon: milliseconds since 1970.
  init(_ table: VerifiedTable, horizon: Int64) {
    self.table = table
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
      CREATE TEMPORARY TABLE _etl_verify_read (_id text, _stamp timestamptz, _is_deleted boolean\
      \(columns.joined())) ON COMMIT DELETE ROWS; \
      CREATE TEMPORARY TABLE _etl_verify_seen (id text); \
      CREATE TEMPORARY TABLE _etl_verify_candidate (id text PRIMARY KEY, \
      origin text NOT NULL, round integer NOT NULL DEFAULT 0, kind text NOT NULL, fields integer[])
      """
  }

  let copy = "COPY \(Self.read) FROM STDIN (FORMAT binary)"

  static let forget = "TRUNCATE \(Self.seen), \(Self.candidates)"

  // MARK: Comparisons

  /// The source of the records.
  enum Origin: String {
    /// All records of the object.
    case pass
    /// Some records, chosen at random.
    case sample
  }

  /// Compares what was copied; the result has each outcome and its count.
  ///
  /// - Parameter columns: places among the table's columns whose values every record has.
  func compare(_ origin: Origin, columns: [Int]) -> String {
    let seen = origin == .pass ? ", s AS (INSERT INTO \(Self.seen) SELECT id FROM o)" : ""
    return """
      WITH o AS MATERIALIZED (\(self.outcomes(columns)))\(seen), \
      k AS (INSERT INTO \(Self.candidates) (id, origin, kind, fields) \
      SELECT DISTINCT ON (id) id, '\(origin.rawValue)', kind, fields FROM o \
      WHERE kind IN ('missing', 'differing') ON CONFLICT (id) DO NOTHING) \
      SELECT kind, count(*) FROM o GROUP BY kind
      """
  }

  /// Compares candidates again.
  func compareAgain(columns: [Int]) -> String {
    """
    UPDATE \(Self.candidates) AS k SET kind = o.kind, fields = o.fields \
    FROM (\(self.outcomes(columns))) AS o WHERE k.id = o.id
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

  /// Rows of records that the org does not have, as candidates; the result has each outcome and its count.
  var findExtra: String {
    """
    WITH o AS MATERIALIZED (SELECT t.id, CASE WHEN \(self.isRowYoung) THEN 'young' \
    WHEN t._stale OR \(self.isPartial) THEN 'marked' ELSE 'extra' END AS kind FROM \(self.current) AS t \
    WHERE t._deleted_at IS NULL AND NOT EXISTS (SELECT FROM \(Self.seen) AS s WHERE s.id = t.id)), \
    k AS (INSERT INTO \(Self.candidates) (id, origin, kind) SELECT id, 'table', kind FROM o \
    WHERE kind = 'extra' ON CONFLICT (id) DO NOTHING) SELECT kind, count(*) FROM o GROUP BY kind
    """
  }

  private func outcomes(_ columns: [Int]) -> String {
    let differences = columns.map { "CASE WHEN \(self.differs($0)) THEN \($0) END" }
    let waiting = self.isWaiting("r._id")
    return """
      SELECT r._id AS id, f.fields, CASE \
      WHEN r._stamp >= \(self.horizon) OR \(self.isRowYoung) THEN 'young' \
      WHEN r._is_deleted THEN CASE WHEN NOT \(Self.isLive) THEN 'gone' \
      WHEN t._stale OR \(waiting) THEN 'marked' ELSE 'extra' END \
      WHEN NOT \(Self.isLive) THEN CASE WHEN \(waiting) THEN 'marked' ELSE 'missing' END \
      WHEN t._stale THEN 'marked' \
      WHEN cardinality(f.fields) > 0 THEN CASE WHEN \(waiting) THEN 'marked' ELSE 'differing' END \
      WHEN \(self.isPartial) OR t._stale_fields IS NOT NULL THEN 'marked' ELSE 'equal' END AS kind \
      FROM \(Self.read) AS r LEFT JOIN \(self.current) AS t ON t.id = r._id CROSS JOIN LATERAL \
      (SELECT array_remove(ARRAY[\(differences.joined(separator: ", "))]::integer[], NULL) AS fields) AS f
      """
  }

  private static let isLive = "(t.id IS NOT NULL AND t._deleted_at IS NULL)"

  /// The row contains events from after the horizon.
  private var isRowYoung: String {
    let newest =
      self.table.current.hasReadColumns
      ? "greatest(t._commit_timestamp, t._system_modstamp)" : "t._commit_timestamp"
    return "coalesce(\(newest) >= \(self.horizon), false)"
  }

  /// Only part of the record is known. A partial row that was read lacks the fields that the user
  /// may not see, which are not compared.
  private var isPartial: String {
    self.table.current.hasReadColumns ? "(t._partial AND t._read_at IS NULL)" : "t._partial"
  }

  /// The record is already noted for repair.
  private func isWaiting(_ id: String) -> String {
    "EXISTS (SELECT FROM \(self.resync) AS w WHERE w.entity = \(self.entity) "
      + "AND w.record_id = \(id) AND w.done_at IS NULL)"
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

  static let outcomes = "SELECT origin, kind, count(*) FROM \(Self.candidates) GROUP BY 1, 2"

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
    SELECT \(self.entity), 'missing', id, 'verify' FROM \(Self.candidates) WHERE kind IN \(Self.drift) \
    ON CONFLICT (entity, kind, event_id, record_id) DO UPDATE SET noted_at = now(), done_at = NULL; \
    UPDATE \(self.current) AS t SET _stale = true FROM \(Self.candidates) AS k \
    WHERE k.kind IN \(Self.drift) AND k.id = t.id AND NOT t._stale
    """
  }
}
