internal import PostgresClient

/// The query for events and reads of some records; `$1` are their IDs.
extension HistoryReader {
  /// Events among the dead letters, which count as gaps, in columns of the history.
  private static func deadLetters(_ history: TableDefinition, arrivedAt: String) -> String {
    let none = history.dataColumns.map { "NULL::\($0.type.sqlName)" }
    let columns =
      [
        "r.record_id", "r.event_id", "r.epoch", "r.ordinal", "NULL::text", "r.commit_timestamp",
        "NULL::text", "NULL::text[]", "NULL::text[]", "NULL::text[]", "NULL::text",
      ] + none
    return """
      SELECT \(columns.joined(separator: ", "))\(arrivedAt) \
      FROM \(ResyncTable.qualifiedName(schema: history.schema)) AS r \
      WHERE r.entity = \(SQLIdentifier.literal(history.entity)) \
      AND r.record_id = ANY($1::text[]) AND r.kind IN ('dead_letter', 'gap') \
      AND r.done_at IS NULL AND r.epoch IS NOT NULL AND r.ordinal IS NOT NULL \
      AND NOT EXISTS (SELECT FROM \(history.qualifiedName) AS h \
      WHERE h._record_id = r.record_id AND h._event_id = r.event_id)
      """
  }

  /// Orders events; between epochs, by commit time.
  private static let time = """
    coalesce(max(_commit_timestamp) OVER (PARTITION BY _record_id COLLATE "C", _epoch \
    ORDER BY _ordinal), min(_commit_timestamp) OVER (PARTITION BY _record_id COLLATE "C", _epoch))
    """

  /// A record that was requested and not found follows the event after which it was requested.
  private static let place = "_epoch, _ordinal, _event_id IS NOT DISTINCT FROM 'unseen'"

  static func select(_ history: TableDefinition, fixed: [String], data: [String]) -> String {
    let all = (fixed + data).joined(separator: ", ")
    return """
      SELECT \(all) FROM (\
      SELECT \(all) FROM \(history.qualifiedName) \
      WHERE _record_id = ANY($1::text[]) AND _kind IN ('change', 'gap') \
      UNION ALL \(Self.deadLetters(history, arrivedAt: ""))) AS s \
      ORDER BY _record_id COLLATE "C", \(Self.time), \(Self.place)
      """
  }

  /// The change type of reads that have only some fields.
  static let fieldsType = "SNAPSHOT_FIELDS"
  /// The change type of reads of fields that change without events.
  static let refreshType = "SNAPSHOT_REFRESH"
  /// SQL: the change types of reads that set some columns.
  static let fieldsTypes = "('\(fieldsType)', '\(refreshType)')"

  /// The query with each record's newest read, which comes before its events. Names that it makes
  /// begin with `_etl_`, because fields may have any other. The rules of
  /// `ReadMerge` decide which events the read contains. If the user could not read every field, the
  /// newest complete read comes before it, without the events that it contains. Reads of some
  /// fields come before the first event that they do not contain.
  static func selectMerged(
    _ history: TableDefinition, fixed: [String], data: [String], visibilityWait: Int64
  ) -> String {
    let all = (fixed + data).joined(separator: ", ")
    let own = ["_system_modstamp", "_read_at", "_etl_is_contained"]
    func names(_ alias: String) -> String {
      (fixed + data).map { "\(alias).\($0)" }.joined(separator: ", ")
    }
    func age(_ alias: String) -> String { "(\(alias)._system_modstamp, \(alias)._read_at)" }
    return """
      WITH e AS (SELECT *, row_number() OVER (PARTITION BY _record_id COLLATE "C" \
      ORDER BY _etl_time, \(Self.place)) AS _etl_n FROM (SELECT *, \(Self.time) AS _etl_time FROM (\
      SELECT \(all), _loaded_at FROM \(history.qualifiedName) \
      WHERE _record_id = ANY($1::text[]) AND _kind IN ('change', 'gap') \
      UNION ALL \(Self.deadLetters(history, arrivedAt: ", r.noted_at"))) AS s) AS s), \
      snapshots AS MATERIALIZED (SELECT *, _change_type IN \(Self.fieldsTypes) AS _etl_is_fill \
      FROM (\(Self.datedReads(history, visibilityWait: visibilityWait))) AS s), \
      placed AS (SELECT *, _changed_fields IS NULL AS _etl_is_whole, \
      row_number() OVER (PARTITION BY _record_id COLLATE "C" \(Self.newestFirst)) AS _etl_place, \
      row_number() OVER (PARTITION BY _record_id COLLATE "C", _changed_fields IS NULL \
      \(Self.newestFirst)) AS _etl_place_alike \
      FROM snapshots WHERE NOT _etl_is_fill), \
      reads AS (SELECT * FROM placed WHERE _etl_place_alike = 1 AND (_etl_place = 1 OR _etl_is_whole)), \
      fills AS (SELECT *, row_number() OVER (PARTITION BY _record_id COLLATE "C" \
      ORDER BY _system_modstamp, _read_at) AS _etl_place FROM snapshots WHERE _etl_is_fill), \
      starts AS (\(Self.firstApplied(to: "reads", by: "_etl_is_whole", visibilityWait))), \
      fill_starts AS (\(Self.firstApplied(to: "fills", by: "_etl_place", after: "CREATE", visibilityWait))), \
      first AS (SELECT _record_id, max(_etl_n) AS _etl_n, max(_etl_n) FILTER (WHERE _etl_is_whole) AS _etl_whole \
      FROM starts GROUP BY _record_id) \
      SELECT \((fixed + own + data).joined(separator: ", ")) FROM (\
      SELECT \(all), _system_modstamp, _read_at, false AS _etl_is_contained, 0 AS _etl_part, -_etl_place AS _etl_n, \
      0 AS _etl_fill FROM reads \
      UNION ALL SELECT \(names("e")), NULL, NULL, coalesce(e._etl_n < f._etl_n, false), 1, e._etl_n, 0 \
      FROM e LEFT JOIN first AS f ON f._record_id = e._record_id \
      WHERE f._etl_whole IS NULL OR e._etl_n >= f._etl_whole \
      UNION ALL SELECT \(names("f")), f._system_modstamp, f._read_at, \
      coalesce(\(age("f")) < \(age("r")) OR f._read_at < r._etl_seen_all_at, false), 1, coalesce(s._etl_n, 1) - 0.5, f._etl_place \
      FROM fills AS f \
      LEFT JOIN fill_starts AS s ON s._record_id = f._record_id AND s._etl_place = f._etl_place \
      LEFT JOIN reads AS r ON r._record_id = f._record_id AND r._etl_place = 1 \
      LEFT JOIN reads AS w ON w._record_id = f._record_id AND w._etl_is_whole \
      WHERE w._record_id IS NULL OR \(age("f")) > \(age("w")) \
      AND (f._read_at < w._etl_seen_all_at) IS NOT TRUE) AS m \
      ORDER BY _record_id COLLATE "C", _etl_part, _etl_n, _etl_fill
      """
  }

  /// The place of the first event that each read does not contain.
  ///
  /// - Parameter contained: a type of change that every read contains. That of a creation may be of a
  ///   schema without the columns that a read fills.
  private static func firstApplied(
    to reads: String, by key: String, after contained: String? = nil, _ visibilityWait: Int64
  ) -> String {
    let contains = """
      \(ReadMerge.time(of: "e")) < r._system_modstamp - interval '\(ReadMerge.clockTolerance) ms'
      """
    let isVisible = "r._read_at - e._loaded_at >= interval '\(visibilityWait) ms'"
    // Reads the change type as `change(_:)` does: an event of any other type does not say what has
    // changed.
    let isGap =
      "(e._change_type IS NULL OR e._change_type NOT IN ('CREATE', 'UPDATE', 'DELETE', 'UNDELETE'))"
    let isContained = contained.map { " OR e._change_type = '\($0)'" } ?? ""
    return """
      SELECT e._record_id, r.\(key), greatest(coalesce(max(e._etl_n) FILTER (WHERE \
      \(isGap) AND \(contains) OR \(isVisible)\(isContained)), 0) + 1, coalesce(min(e._etl_n) FILTER (\
      WHERE (\(contains)) IS NOT TRUE), max(e._etl_n) + 1)) AS _etl_n \
      FROM e JOIN \(reads) AS r ON r._record_id = e._record_id GROUP BY e._record_id, r.\(key)
      """
  }

  /// The reads, each with two properties: `_etl_is_asked`, it was made after `verify --repair` asked for
  /// the record; and `_etl_seen_all_at`, the time of a read that has seen the newest change of all of
  /// them (`ReadMerge.Read.isNewer`).
  private static func datedReads(_ history: TableDefinition, visibilityWait: Int64) -> String {
    let margin = "interval '\(visibilityWait + ReadMerge.clockTolerance) ms'"
    return """
      SELECT *, CASE WHEN _read_at >= max(_system_modstamp) OVER (\
      PARTITION BY _record_id COLLATE "C", _etl_is_asked) + \(margin) THEN _read_at END AS _etl_seen_all_at \
      FROM (SELECT h.*, EXISTS (SELECT FROM \(ResyncTable.qualifiedName(schema: history.schema)) AS w \
      WHERE w.entity = \(SQLIdentifier.literal(history.entity)) AND w.kind = 'missing' \
      AND w.event_id = \(ResyncTable.verifyEventID) AND w.record_id = h._record_id \
      AND w.noted_at <= h._read_at + interval '\(ReadMerge.clockTolerance) ms') AS _etl_is_asked FROM \(history.qualifiedName) AS h \
      WHERE h._record_id = ANY($1::text[]) AND h._kind = 'snapshot') AS h
      """
  }

  private static let newestFirst = """
    ORDER BY _etl_is_asked DESC, _etl_seen_all_at DESC NULLS LAST, _system_modstamp DESC, _read_at DESC, \
    _changed_fields IS NOT NULL, _change_type
    """
}
