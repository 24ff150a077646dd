internal import PostgresClient

/// SQL for records as they were: the function `<table>_at` and the view `<table>_versions`.
///
/// A record's state at a moment is its newest read with a stamp up to that moment, followed by the
/// events up to it that the read does not contain (`ReadMerge` has the rules). A read says what the
/// record was since its stamp, so it also fills the time after a gap event.
struct RecordStates {
  typealias Column = ReportingViews.Column

  let current: TableDefinition
  let history: TableDefinition
  var names = ListedNames()
  /// Milliseconds; see `ReadMerge`.
  var visibilityWait = ReadMerge.visibilityWait
  /// Other changes may have been left out between two, so that no state is certain.
  var selectsChanges = false
  /// Fields that change without events are read again and again.
  var hasRefreshes = false
  /// The bookkeeping has the parts of topics that were lost.
  var notesRanges = false

  /// Nil if there are no columns, or if an update has only parts of a column's value, as without the
  /// stage `flatten`.
  init?(current: TableDefinition, history: TableDefinition) {
    guard !history.dataColumns.isEmpty, !history.dataColumns.contains(where: \.isCompound) else {
      return nil
    }
    self.current = current
    self.history = history
  }

  private var columns: [TableColumn] { self.history.dataColumns }
  private var hasReads: Bool { self.history.hasReadColumns && self.current.hasReadColumns }

  /// SQL names, not quoted, and types of the function's columns.
  var stateColumns: [Column] { self.dataColumns + [Self.validFrom, Self.stale] }

  /// The same of the view's columns.
  var versionColumns: [Column] {
    self.dataColumns + [
      Self.validFrom, Column(name: "_valid_to", type: "timestamp with time zone"),
      Column(name: "_is_current", type: "boolean"), Self.stale,
    ]
  }

  private static let validFrom = Column(name: "_valid_from", type: "timestamp with time zone")
  private static let stale = Column(name: "_stale", type: "boolean")

  private var dataColumns: [Column] {
    [Column(name: "id", type: "text")]
      + self.columns.map { Column(name: $0.name, type: $0.type.sqlName) }
  }

  // MARK: The function

  /// The body of `<table>_at`; `$1` is the moment. One pass over the history has the states of all
  /// records: many records are not looked up one by one.
  var functionBody: String {
    let tombstones = Bookkeeping(schema: self.history.schema).qualified("_etl_tombstone")
    let isWanted = """
      h._record_id IN (SELECT n.id FROM (\
      SELECT p._record_id AS id FROM \(self.history.qualifiedName) AS p \
      WHERE p._commit_timestamp > $1 AND p._kind IN ('change', 'gap') AND p._record_id IS NOT NULL \
      UNION SELECT c.id FROM \(self.current.qualifiedName) AS c \
      WHERE c._partial\(self.hasReads ? " OR c._system_modstamp > $1" : "")\(self.laterRefreshes) \
      UNION SELECT t.id FROM \(tombstones) AS t \
      WHERE t.entity = \(SQLIdentifier.literal(self.history.entity))) AS n)
      """
    return "SELECT \(self.unchanged) UNION ALL \(self.changed(isWanted))"
  }

  /// The body of `<table>_at` for one record; `$1` is the moment, `$2` the ID.
  var recordBody: String {
    "SELECT \(self.unchanged) AND c.id = $2 UNION ALL \(self.changed("h._record_id = $2"))"
  }

  /// SQL: a query for the records at the moment `$1` from the history, except unchanged ones.
  ///
  /// - Parameter isWanted: SQL, the condition on rows `h` of the history.
  private func changed(_ isWanted: String) -> String {
    """
    SELECT s._etl_id, \(self.values("s")), s._etl_since, s._etl_stale FROM (\(self.states(isWanted))) AS s \
    WHERE s._etl_alive AND NOT EXISTS (\
    SELECT FROM \(self.current.qualifiedName) AS c WHERE c.id = s._etl_id AND \(self.isUnchanged))
    """
  }

  /// SQL: the columns and conditions of a query for the records that nothing has changed since `$1`, from the current table.
  private var unchanged: String {
    let read = self.hasReads ? "c._read_at" : "NULL"
    return """
      c.id, \(self.values("c")), \(self.stamp), \
      c._stale OR c._stale_fields IS NOT NULL OR \(self.loss(of: "c.id", read: read, image: nil, "$1")) \
      FROM \(self.current.qualifiedName) AS c WHERE \(self.isUnchanged)
      """
  }

  /// SQL: when a current row last changed.
  private var stamp: String {
    self.hasReads ? "greatest(c._commit_timestamp, c._system_modstamp)" : "c._commit_timestamp"
  }

  private var isUnchanged: String {
    let isRefreshed = "c.id IN (SELECT r._record_id \(self.refreshesAfterMoment))"
    return "c._deleted_at IS NULL AND NOT c._partial AND \(self.stamp) <= $1"
      + (self.hasRefreshes ? " AND NOT (\(isRefreshed))" : "")
  }

  /// SQL: the reads since `$1` that found other values without an event.
  private var refreshesAfterMoment: String {
    "FROM \(self.history.qualifiedName) AS r WHERE r._change_type = '\(HistoryReader.refreshType)' "
      + "AND r._kind = 'snapshot' AND r._read_at > $1 AND r._record_id IS NOT NULL"
  }

  private var laterRefreshes: String {
    self.hasRefreshes ? " UNION SELECT r._record_id \(self.refreshesAfterMoment)" : ""
  }

  /// SQL: since when a read is known to be true. A value that changes without an event says nothing
  /// about the time before the read.
  private func validFrom(_ read: String) -> String {
    self.hasRefreshes
      ? "CASE WHEN \(read)._change_type = '\(HistoryReader.refreshType)' THEN \(read)._read_at "
        + "ELSE \(read)._system_modstamp END"
      : "\(read)._system_modstamp"
  }

  private func values(_ alias: String) -> String {
    self.columns.map { "\(alias).\($0.quotedName)::\($0.type.sqlName)" }.joined(separator: ", ")
  }

  // MARK: The view

  /// The query of `<table>_versions`: the state of each record after each of its changes and at the
  /// stamp of each read. It is the state at the end of that time, which is stale if a change was lost
  /// meanwhile.
  ///
  /// - Parameter function: the name of `<table>_at`, for SQL text.
  func versions(by function: String) -> String {
    let history = self.history.qualifiedName
    let stamps =
      self.hasReads
      ? """
       UNION SELECT h._record_id, \(self.validFrom("h")) FROM \(history) AS h \
      WHERE h._kind = 'snapshot' AND h._system_modstamp IS NOT NULL
      """ : ""
    let states = self.columns.map { "s.\($0.quotedName)" }.joined(separator: ", ")
    return """
      SELECT v.id, \(states), v.valid_from AS _valid_from, v.valid_to AS _valid_to, \
      v.valid_to IS NULL AS _is_current, s._stale FROM (\
      SELECT t.id, t.valid_from, lead(t.valid_from) OVER (PARTITION BY t.id ORDER BY t.valid_from) \
      AS valid_to FROM (SELECT h._record_id AS id, h._commit_timestamp AS valid_from \
      FROM \(history) AS h WHERE h._kind IN ('change', 'gap') AND h._record_id IS NOT NULL \
      AND h._commit_timestamp IS NOT NULL GROUP BY 1, 2\(stamps)) AS t) AS v \
      CROSS JOIN LATERAL \(function)(coalesce(v.valid_to - interval '1 microsecond', 'infinity'), v.id) AS s
      """
  }

  // MARK: The state

  private static let tolerance = "interval '\(ReadMerge.clockTolerance) ms'"
  private var wait: String { "interval '\(self.visibilityWait) ms'" }

  /// SQL: a row for each record with its state at the moment `$1`. A record of which only changes are known
  /// exists, and most of its values are unknown.
  ///
  /// The function runs with the caller's rights and `search_path`, so polymorphic functions and
  /// operators have their schema: one of exactly these types in another schema would come first.
  private func states(_ isWanted: String) -> String {
    let values = self.columns.map { column in
      let name = "x.\(column.quotedName)"
      func isIn(_ list: String) -> String {
        self.names.contains(column.name, in: list, schema: "x._etl_schema")
      }
      let isListed = isIn("x._etl_listed")
      // No event has the values of some columns, not even one with all fields.
      let isWhole =
        column.isOnlyRead ? "x._etl_whole AND x._etl_read IS NOT NULL" : "x._etl_whole"
      let isDiff = column.type == .text ? " AND (\(isIn("x._etl_diffs"))) IS NOT TRUE" : ""
      // Arrays of arrays have no null elements.
      let (element, back) = column.type == .textArray ? ("\(name)::text", "::text[]") : (name, "")
      return """
        (pg_catalog.array_agg(\(element)) FILTER (WHERE \(isWhole) \
        OR (\(name) IS NOT NULL OR \(isListed))\(isDiff)))[1]\(back) AS \(column.quotedName)
        """
    }
    let loss = self.loss(of: "a._etl_id", read: "a._etl_read", image: "a._etl_image", "$1")
    // Reads of some fields say nothing about the others.
    let clears = "x._etl_whole OR x._etl_read IS NOT NULL"
    return """
      SELECT a.*, coalesce(a._etl_gap, false) OR a._etl_image IS NULL AND a._etl_read IS NULL \
      OR \(loss) AS _etl_stale FROM (\
      SELECT x._etl_id, \(values.joined(separator: ", ")), max(x._etl_at) AS _etl_since, \
      coalesce((pg_catalog.array_agg(x._etl_alive) FILTER (WHERE x._etl_alive IS NOT NULL))[1], true) \
      AS _etl_alive, (pg_catalog.array_agg(x._etl_gap) FILTER (WHERE x._etl_gap OR \(clears)))[1] AS _etl_gap, \
      max(x._etl_read) AS _etl_read, max(x._etl_at) FILTER (WHERE x._etl_whole) AS _etl_image \
      FROM (\(self.rows(isWanted))) AS x GROUP BY x._etl_id) AS a
      """
  }

  /// SQL: the rows of records up to the moment `$1`, the newest of each first. A read follows the last
  /// event that it contains: `_etl_by_stamp` and `_etl_by_arrival` number the record's last event that
  /// it contains by each of the two rules. Names begin with `_etl_`, because fields may have any other.
  private func rows(_ isWanted: String) -> String {
    let data = self.columns.map { "h.\($0.quotedName)" }.joined(separator: ", ")
    let schema = self.names.dependOnSchema ? "h._schema_id AS _etl_schema, " : ""
    let isRead = "h._kind = 'snapshot'"
    func value(ofRead read: String, ofEvent event: String) -> String {
      self.hasReads ? "CASE WHEN \(isRead) THEN \(read) ELSE \(event) END" : event
    }
    let none = "NULL::timestamptz"
    let at = value(ofRead: self.validFrom("h"), ofEvent: "h._commit_timestamp")
    let listed = "h._changed_fields OPERATOR(pg_catalog.||) h._nulled_fields"
    let gap = """
      (h._change_type IN ('CREATE', 'UPDATE', 'DELETE', 'UNDELETE', 'GAP_DELETE')) IS NOT TRUE \
      OR coalesce(pg_catalog.cardinality(h._diff_fields), 0) > 0
      """
    let fullRead =
      "CASE WHEN h._change_type NOT IN \(HistoryReader.fieldsTypes) THEN h._read_at END"
    let kinds = "('change', 'gap'\(self.hasReads ? ", 'snapshot'" : ""))"
    let stamp = value(
      ofRead: "coalesce(h._system_modstamp - \(Self.tolerance), '-infinity')",
      ofEvent: ReadMerge.time(of: "h"))
    let arrival = value(
      ofRead: "coalesce(h._read_at - \(self.wait), '-infinity')", ofEvent: "h._loaded_at")
    let order =
      self.hasReads
      ? ", NOT (\(isRead)) AS _etl_is_event, \(stamp) AS _etl_stamp, \(arrival) AS _etl_arrival"
      : ""
    let rows = """
      SELECT h._record_id AS _etl_id, \(data), \
      \(value(ofRead: "h._changed_fields", ofEvent: listed)) AS _etl_listed, \
      \(value(ofRead: "NULL", ofEvent: "h._diff_fields")) AS _etl_diffs, \(schema)\
      CASE WHEN h._change_type IN ('CREATE', 'UNDELETE', 'GAP_CREATE', 'GAP_UNDELETE', 'SNAPSHOT') \
      THEN true WHEN h._change_type IN ('DELETE', 'GAP_DELETE', 'SNAPSHOT_DELETE') THEN false END AS _etl_alive, \
      (h._change_type IN ('CREATE', 'UNDELETE') \
      OR h._change_type = 'SNAPSHOT' AND h._changed_fields IS NULL) IS TRUE AS _etl_whole, \
      \(value(ofRead: "false", ofEvent: gap)) AS _etl_gap, \(at) AS _etl_at, \
      \(value(ofRead: fullRead, ofEvent: none)) AS _etl_read, \
      \(value(ofRead: "h._read_at", ofEvent: none)) AS _etl_read_at, \
      h._epoch AS _etl_epoch, h._ordinal AS _etl_ordinal\(order) FROM \(self.history.qualifiedName) AS h \
      WHERE \(isWanted) AND h._kind IN \(kinds) AND \(at) <= $1
      """
    guard self.hasReads else {
      return "\(rows) ORDER BY _etl_id, _etl_at DESC, _etl_epoch DESC, _etl_ordinal DESC"
    }
    return """
      SELECT z.*, CASE WHEN z._etl_is_event THEN z._etl_by_stamp \
      ELSE greatest(z._etl_by_stamp, z._etl_by_arrival) END AS _etl_place FROM (\
      SELECT y.*, max(y._etl_by_stamp) FILTER (WHERE y._etl_is_event) OVER (PARTITION BY y._etl_id \
      ORDER BY y._etl_arrival, NOT y._etl_is_event ROWS UNBOUNDED PRECEDING) AS _etl_by_arrival FROM (\
      SELECT w.*, count(*) FILTER (WHERE w._etl_is_event) OVER (PARTITION BY w._etl_id \
      ORDER BY w._etl_stamp, w._etl_is_event, w._etl_epoch, w._etl_ordinal ROWS UNBOUNDED PRECEDING) \
      AS _etl_by_stamp FROM (\(rows)) AS w) AS y) AS z \
      ORDER BY z._etl_id, _etl_place DESC, z._etl_read_at DESC NULLS LAST
      """
  }

  /// How long events are kept, and so how much earlier an event may be that could not be decoded.
  private static let retention = "interval '72 hours'"

  /// SQL: whether a change up to a moment is missing that may concern the record, and that neither its
  /// newest read nor a later image contains.
  ///
  /// - Parameter image: when the newest image was; nil for the current row, which has what was read since
  ///   the loss.
  private func loss(of id: String, read: String, image: String?, _ moment: String) -> String {
    guard !self.selectsChanges else { return "true" }
    let bookkeeping = Bookkeeping(schema: self.history.schema)
    let entity = SQLIdentifier.literal(self.history.entity)
    let resync = """
      SELECT coalesce(r.commit_timestamp, r.noted_at - \(Self.retention)) AS at, \
      coalesce(r.commit_timestamp, r.noted_at) AS until, r.noted_at, r.done_at, r.record_id, r.event_id \
      FROM \(bookkeeping.qualified("_etl_resync")) AS r WHERE \
      r.event_id IS DISTINCT FROM '\(RefusedReads.eventID)'
      """
    let ranges =
      self.notesRanges
      ? """
       UNION ALL SELECT coalesce(m.missing_from, '-infinity'), m.noted_at, m.noted_at, m.repaired_at, \
      NULL, NULL FROM \(bookkeeping.qualified("_etl_missing_range")) AS m \
      WHERE m.topic IN (SELECT t.key FROM \(bookkeeping.qualified("_etl_checkpoint")) AS k, \
      jsonb_each(k.topics) AS t WHERE t.value -> 'tables' ? \(SQLIdentifier.literal(self.history.name)))
      """ : ""
    let ofAny = """
      FROM (\(resync) AND (r.entity = \(entity) AND (r.kind IN ('overflow', 'wildcard') \
      OR r.kind = 'dead_letter' AND r.record_id IS NULL) OR r.kind = 'dead_letter' \
      AND r.record_id IS NULL AND (r.entity = 'ChangeEvents' OR right(r.entity, 5) = '__chn'))\
      \(ranges)) AS l
      """
    let ofRecord = """
      FROM (\(resync) AND r.entity = \(entity) AND r.kind = 'dead_letter' \
      AND r.record_id IS NOT NULL) AS l
      """
    let isOpen = """
      l.at <= \(moment) AND (\(read)::timestamptz < l.noted_at) IS NOT FALSE \
      AND \(image.map { "(\($0) <= l.until) IS NOT FALSE" } ?? "l.done_at IS NULL")
      """
    return """
      ((SELECT EXISTS (SELECT \(ofAny))) AND EXISTS (SELECT \(ofAny) WHERE \(isOpen)) \
      OR \(id) IN (SELECT l.record_id \(ofRecord)) AND EXISTS (SELECT \(ofRecord) \
      WHERE l.record_id = \(id) AND \(isOpen) AND NOT EXISTS (SELECT \
      FROM \(self.history.qualifiedName) AS d WHERE d._record_id = l.record_id \
      AND d._event_id = l.event_id)))
      """
  }
}
