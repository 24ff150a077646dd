/// The view of current records: `"Opportunity_now"` has a row for each record that is not deleted, with
/// its newest values.
///
/// The newest read of each field comes first, then the changes that this read may not contain, in the
/// order of the stream. `RecordStream` has the same rule for `verify`.
extension DuckDBViews {
  static func currentName(of entity: String) -> String { "\(entity)_now" }

  /// Metadata columns that the view needs; a stage may have removed some.
  private static let needed = [
    "_topic", "_kind", "_change_type", "_record_id", "_commit_timestamp", "_changed_fields",
    "_nulled_fields", "_diff_fields",
  ]

  /// Whether an object with these columns has changes to records.
  private static func isOfRecords(_ own: Set<String>) -> Bool {
    own.contains("_change_type") || own.contains("_changed_fields")
  }

  /// Whether the view takes a column from the record; those of every line begin with `_`.
  static func isOfRecord(_ column: String) -> Bool {
    column.utf8.first != UInt8(ascii: "_")
  }

  /// Whether `currentView` returns a statement.
  static func hasCurrentView(_ columns: EntityColumns) -> Bool {
    let own = Set(columns.entries.map(\.name))
    return Self.isOfRecords(own) && Self.needed.allSatisfy(own.contains)
      && own.contains(where: Self.isOfRecord)
  }

  /// - Returns: the statement, or a comment with the reason why there is none.
  static func currentView(of columns: EntityColumns) -> String {
    let name = Self.currentName(of: columns.entity)
    let own = Set(columns.entries.map(\.name))
    guard Self.isOfRecords(own) else { return "" }
    if let missing = Self.needed.first(where: { !own.contains($0) }) {
      return Self.comment("No view \(name): a stage removes the column \(missing).")
    }
    guard own.contains(where: Self.isOfRecord) else {
      return Self.comment("No view \(name): there are no columns of records.")
    }
    return """

      CREATE OR REPLACE VIEW \(Self.identifier(name)) AS
      WITH stream AS MATERIALIZED (
        SELECT *, row_number() OVER () AS _line FROM \(Self.identifier(columns.entity))
      ),
      lines AS (
        SELECT *, _change_type IN ('CREATE', 'UNDELETE')
          OR _change_type = 'SNAPSHOT' AND _changed_fields IS NULL AS _whole,
          -- It has values of a record, and says nothing else: not even that the record is in the copy.
          (_change_type = 'SNAPSHOT_REFRESH') IS TRUE AS _refresh
        FROM stream WHERE _kind IN ('change', 'gap', 'snapshot')
          AND (_pipeline, _topic) = (SELECT min((_pipeline, _topic)) FROM stream)
      ),
      events AS (
        SELECT _line, _record_id, _kind = 'gap' AS gap,
          _change_type IN ('CREATE', 'GAP_CREATE') AS created,
          CASE WHEN _change_type NOT IN ('UNDELETE', 'GAP_UNDELETE') THEN _commit_timestamp
            ELSE coalesce(lag(CASE WHEN _change_type IN ('DELETE', 'GAP_DELETE')
              THEN _commit_timestamp END) OVER stream, _commit_timestamp - INTERVAL 10 SECONDS)
            END AS time,
          (_epoch, coalesce(_ordinal, _first_ordinal)) AS file, row_number() OVER stream AS n
        FROM lines WHERE _kind <> 'snapshot'
        WINDOW stream AS (PARTITION BY _record_id
          ORDER BY _epoch, coalesce(_ordinal, _first_ordinal), _line)
      ),
      reads AS (
        SELECT _line, _record_id, _system_modstamp - INTERVAL 5 SECONDS AS time,
          (_file_epoch, _first_ordinal) AS file,
          row_number() OVER (PARTITION BY _record_id
            ORDER BY _system_modstamp DESC, _read_at DESC) AS _age
        FROM lines WHERE _kind = 'snapshot'
        -- The newest read of all fields, and after it the newest read of each list of fields.
        QUALIFY row_number() OVER (PARTITION BY _record_id, _change_type, _changed_fields
          ORDER BY _system_modstamp DESC, _read_at DESC) = 1
          AND ((_system_modstamp, _read_at) < max((_system_modstamp, _read_at)) FILTER (_whole)
            OVER (PARTITION BY _record_id)) IS NOT TRUE
      ),
      contained AS (
        SELECT r._line, r._record_id, r._age, greatest(
          max(e.n) FILTER (e.file < r.file OR e.created OR e.gap AND e.time < r.time),
          coalesce(min(e.n) FILTER ((e.time < r.time) IS NOT TRUE) - 1, max(e.n)), 0) AS n
        FROM reads AS r LEFT JOIN events AS e USING (_record_id) GROUP BY ALL
      ),
      places AS (
        SELECT _line, (n, 0::DOUBLE) AS _place FROM events UNION ALL
        SELECT _line, (max(n) OVER (PARTITION BY _record_id ORDER BY _age DESC), 1 / _age::DOUBLE)
        FROM contained
      )
      SELECT *\(Self.fullName(of: columns)) FROM (
      SELECT _record_id, max(_commit_timestamp) AS _changed_at,
        max(_read_at) FILTER (NOT _refresh) AS _read_at,
        max(_place) FILTER (_whole) IS NULL AS _partial,
        coalesce(max(_place) FILTER (_kind = 'gap')
          > max(_place) FILTER (_whole OR _kind = 'snapshot' AND NOT _refresh),
          bool_or(_kind = 'gap')) AS _stale,
        arg_max_null(COLUMNS('^[^_]'), CASE
          WHEN _whole OR _refresh AND _changed_fields IS NULL
            OR _change_type = 'SNAPSHOT_DELETE' AND COLUMNS('^[^_]') IS NOT NULL THEN _place
          WHEN _kind = 'gap' OR list_contains(_diff_fields, alias(COLUMNS('^[^_]'))) THEN NULL
          WHEN list_contains(_changed_fields || coalesce(_nulled_fields, []),
            alias(COLUMNS('^[^_]'))) THEN _place END)
      FROM (SELECT * EXCLUDE (commit_date) FROM lines) JOIN places USING (_line)
      GROUP BY _record_id
      HAVING arg_max(_change_type, _place)
        FILTER (_change_type NOT IN ('UPDATE', 'GAP_UPDATE', 'SNAPSHOT_REFRESH'))
        IN ('DELETE', 'GAP_DELETE', 'SNAPSHOT_DELETE') IS NOT TRUE AND bool_or(NOT _refresh));

      """
  }

  /// SQL after `*`: the full name of a person, composed like `Name` in REST, without the salutation;
  /// events have only its parts. Organizations with person accounts send `Name` itself for the other
  /// accounts. Empty for objects without the parts.
  private static func fullName(of columns: EntityColumns) -> String {
    let (types, _) = Self.types(of: columns)
    let own = Set(types.map(\.name))
    guard let prefix = ["Name_", ""].first(where: { own.contains($0 + "LastName") }) else {
      return ""
    }
    let parts = Self.nameParts.map { prefix + $0 }.filter(own.contains)
      .map { "nullif(\(Self.identifier($0)), '')" }
    let composed = "nullif(concat_ws(' ', \(parts.joined(separator: ", "))), '')"
    let name = Self.identifier("Name")
    guard let taken = types.first(where: { Self.isEqual($0.name, "Name") }) else {
      return ", \(composed) AS \(name)"
    }
    guard taken.name == "Name", taken.type == "VARCHAR" else { return "" }
    return " REPLACE (coalesce(\(name), \(composed)) AS \(name))"
  }

  /// The parts of a name, in their order.
  static let nameParts = ["FirstName", "MiddleName", "LastName", "Suffix"]
}
