internal import PostgresClient

/// The query of `<table>_changes`: a row for each field that an update changed, with its value
/// before and after, and a row for each other event of a record.
///
/// The value before comes from the last event of the record that sets the field, or from a read
/// that contains that event (`ReadMerge` has the rules). It counts as unknown if anything in
/// between may have changed the field: a gap event, a dead letter, another epoch.
struct ChangesView {
  typealias Column = ReportingViews.Column

  /// Where the names of users are.
  struct Users: Equatable {
    /// SQL name, not quoted.
    var table: String
    /// SQL names, not quoted, of the parts of a name, in their order.
    var nameColumns: [String]

    /// The fields with the parts of a name. An org with a plain name has no parts.
    static let paths = [
      "Name.FirstName", "Name.MiddleName", "Name.LastName", "Name.Suffix", "Name",
    ]

    init(table: String, nameColumns: [String]) {
      self.table = table
      self.nameColumns = nameColumns
    }

    /// Nil for the table of another object, and for one without names.
    init?(_ table: TableDefinition) {
      let columns = Self.paths.flatMap { path in
        table.dataColumns.filter { $0.path == path }.map(\.name)
      }
      guard table.kind == .current, table.entity == Self.entity, !columns.isEmpty else {
        return nil
      }
      self.init(table: table.name, nameColumns: columns)
    }

    static let entity = "User"
  }

  let history: TableDefinition
  var names = ListedNames()
  var users: Users?
  /// Milliseconds; see `ReadMerge`.
  var visibilityWait = ReadMerge.visibilityWait
  /// The changes from before the first event, if the org's field history is copied.
  var fieldHistory: FieldHistoryTable?
  /// Other changes may have been left out between two, so that no value before is known.
  var selectsChanges = false
  /// Fields that change without events are read again and again.
  var hasRefreshes = false

  static let columns: [Column] = [
    Column(name: "id", type: "text"), Column(name: "field", type: "text"),
    Column(name: "old_value", type: "text"), Column(name: "new_value", type: "text"),
    Column(name: "changed_at", type: "timestamp with time zone"),
    Column(name: "changed_by", type: "text"), Column(name: "changed_by_name", type: "text"),
    Column(name: "change_type", type: "text"), Column(name: "transaction_key", type: "text"),
    Column(name: "old_is_known", type: "boolean"), Column(name: "new_is_known", type: "boolean"),
    Column(name: "source", type: "text"),
  ]

  init(_ history: TableDefinition) { self.history = history }

  var name: String { self.history.qualifiedName }
  var bookkeeping: Bookkeeping { Bookkeeping(schema: self.history.schema) }

  // No WITH and no OFFSET here, so that the newest changes come from the end of an index, which has
  // the rows of reads before them: they have no time.
  var query: String {
    """
    SELECT h._record_id AS id, f.field, CASE WHEN k.old_is_known THEN \(self.text("v.old_value")) END \
    AS old_value, CASE WHEN k.new_is_known THEN \(self.text("v.new_value")) END AS new_value, \
    h._commit_timestamp AS changed_at, h._commit_user AS changed_by, \
    \(self.userName) AS changed_by_name, h._change_type AS change_type, \
    h._transaction_key AS transaction_key, k.old_is_known, k.new_is_known, 'event'::text AS source \
    FROM \(self.name) AS h \
    CROSS JOIN LATERAL (SELECT to_jsonb(h.*) AS image OFFSET 0) AS i \
    CROSS JOIN LATERAL (\(self.fields)) AS f \
    LEFT JOIN LATERAL (\(self.lastEvent)) AS e ON true \
    \(self.hasReads ? "LEFT JOIN LATERAL (\(self.lastRead)) AS r ON true " : "")\
    CROSS JOIN LATERAL (\(self.values)) AS v CROSS JOIN LATERAL (\(self.knowledge)) AS k\
    \(self.userJoin("h._commit_user")) WHERE h._kind IN ('change', 'gap') \
    AND h._commit_timestamp IS NOT NULL\(self.earlierChanges)
    """ + (self.hasRefreshes && self.hasReads ? " UNION ALL \(self.refreshed)" : "")
  }

  private var hasReads: Bool { self.history.hasReadColumns }

  // MARK: Fields

  /// SQL: the value of the field `f.field` in a row.
  ///
  /// - Parameter image: the row as `jsonb`.
  func value(in image: String) -> String {
    guard !self.names.families.isEmpty else { return "\(image) ->> f.field" }
    let cases = self.names.families.sorted { $0.key < $1.key }.map { name, columns in
      let values = columns.map { "\(image) ->> \(SQLIdentifier.literal($0))" }
      return
        "WHEN \(SQLIdentifier.literal(name)) THEN coalesce(\(values.joined(separator: ", ")))"
    }
    return "CASE f.field \(cases.joined(separator: " ")) ELSE \(image) ->> f.field END"
  }

  /// SQL: whether a list of a row has the field `f.field`, by any name that its column had.
  func contains(_ list: String, _ row: String) -> String {
    let list = "\(row).\(list)"
    guard !self.names.dependOnSchema else {
      let present = self.names.present("g.name", schema: "\(row)._schema_id")
      return "EXISTS (SELECT FROM unnest(\(list)) AS g (name) WHERE \(present) = f.field)"
    }
    let others = Set(self.names.names.compactMap(\.column)).sorted().map { column in
      " OR f.field = \(SQLIdentifier.literal(column)) "
        + "AND \(list) && \(self.literal(self.names.former(of: column)))"
    }
    return "(f.field = ANY (\(list))\(others.joined()))"
  }

  /// The fields that an update lists; null for any other event.
  private var fields: String {
    let present = self.names.present("n.name", schema: "h._schema_id")
    return """
      SELECT DISTINCT \(present) AS field \
      FROM unnest(h._changed_fields || h._nulled_fields) AS n (name) \
      WHERE h._change_type = 'UPDATE' AND i.image ? \(present) \
      UNION ALL SELECT NULL WHERE h._change_type IS DISTINCT FROM 'UPDATE'
      """
  }

  private func literal(_ names: [String]) -> String { ListedNames.literal(names) }

  /// SQL: a value as text, in which times are in UTC, whatever the session's time zone is, and choices
  /// are separated by semicolons.
  func text(_ value: String) -> String {
    func columns(_ type: PostgresType) -> [String] {
      self.history.dataColumns.filter { $0.type == type }.map(\.name)
    }
    var cases: [String] = []
    let times = columns(.timestamptz)
    if !times.isEmpty {
      cases.append(
        """
        WHEN f.field = ANY (\(self.literal(times))) AND isfinite(\(value)::timestamptz) \
        THEN to_char(\(value)::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        """)
    }
    let choices = columns(.textArray)
    if !choices.isEmpty {
      cases.append(
        """
        WHEN f.field = ANY (\(self.literal(choices))) \
        THEN (SELECT string_agg(m.choice, ';' ORDER BY m.place) \
        FROM jsonb_array_elements_text(\(value)::jsonb) WITH ORDINALITY AS m (choice, place))
        """)
    }
    return cases.isEmpty ? value : "CASE \(cases.joined(separator: " ")) ELSE \(value) END"
  }

  // MARK: Values before

  static let tolerance = "interval '\(ReadMerge.clockTolerance) ms'"
  private var wait: String { "interval '\(self.visibilityWait) ms'" }

  /// The last event before this one that sets the field, or may have.
  private var lastEvent: String {
    """
    SELECT q.last FROM (SELECT _etl_p AS last FROM \(self.name) AS _etl_p WHERE f.field IS NOT NULL \
    AND _etl_p._record_id = h._record_id AND _etl_p._topic = h._topic AND _etl_p._epoch = h._epoch \
    AND _etl_p._ordinal < h._ordinal AND _etl_p._kind IN ('change', 'gap') \
    AND CASE _etl_p._change_type WHEN 'UPDATE' \
    THEN \(self.contains("_changed_fields", "_etl_p")) IS TRUE \
    OR \(self.contains("_nulled_fields", "_etl_p")) IS TRUE \
    WHEN 'DELETE' THEN false WHEN 'GAP_DELETE' THEN false ELSE true END \
    ORDER BY _etl_p._ordinal DESC LIMIT 1) AS q
    """
  }

  /// The last read of the field that does not contain this event.
  private var lastRead: String {
    """
    SELECT q.last FROM (SELECT _etl_p AS last FROM \(self.name) AS _etl_p WHERE f.field IS NOT NULL \
    AND _etl_p._record_id = h._record_id AND _etl_p._topic = h._topic AND _etl_p._epoch = h._epoch \
    AND _etl_p._kind = 'snapshot' AND (_etl_p._change_type = 'SNAPSHOT' OR _etl_p._change_type IN \(HistoryReader.fieldsTypes)) \
    AND (_etl_p._changed_fields IS NULL OR \(self.contains("_changed_fields", "_etl_p"))) \
    AND _etl_p._system_modstamp < h._commit_timestamp - \(Self.tolerance) \
    AND _etl_p._read_at - h._loaded_at < \(self.wait) ORDER BY _etl_p._read_at DESC LIMIT 1) AS q
    """
  }

  /// The values of the field, and whether the one before is that of the read.
  private var values: String {
    let new = self.value(in: "i.image")
    let ofEvent = self.value(in: "to_jsonb(e.last)")
    guard self.hasReads else {
      return "SELECT \(new) AS new_value, \(ofEvent) AS old_value OFFSET 0"
    }
    return """
      SELECT b.*, CASE WHEN b.is_read THEN b.read_value ELSE b.event_value END AS old_value \
      FROM (SELECT \(new) AS new_value, \(ofEvent) AS event_value, \
      \(self.value(in: "to_jsonb(r.last)")) AS read_value, (r.last)._read_at IS NOT NULL \
      AND ((e.last)._ordinal IS NULL \
      OR \(self.isRead("(e.last)._commit_timestamp", "(e.last)._loaded_at"))) AS is_read) AS b OFFSET 0
      """
  }

  /// SQL: whether the last read contains something of that commit time and time of arrival.
  private func isRead(_ commit: String, _ arrivedAt: String) -> String {
    """
    coalesce(\(commit) < (r.last)._system_modstamp - \(Self.tolerance) \
    OR (r.last)._read_at - \(arrivedAt) >= \(self.wait), false)
    """
  }

  /// SQL: whether the row of an update has the value itself. A long text may come as a diff, and an
  /// update of a compound has only the parts that changed.
  private func isFull(_ row: String) -> String {
    let compounds = self.history.dataColumns.filter(\.isCompound).map(\.name)
    let isDiff = "\(self.contains("_diff_fields", row)) IS NOT TRUE"
    return compounds.isEmpty
      ? isDiff : "(\(isDiff) AND f.field <> ALL (\(self.literal(compounds))))"
  }

  /// Whether the two values are known; null for events without fields.
  private var knowledge: String {
    let ofEvent = """
      CASE (e.last)._change_type WHEN 'UPDATE' THEN \(self.isFull("(e.last)")) \
      WHEN 'CREATE' THEN \(self.isSet(self.hasReads ? "v.event_value" : "v.old_value", "(e.last)")) \
      WHEN 'UNDELETE' THEN \(self.isSet(self.hasReads ? "v.event_value" : "v.old_value", "(e.last)")) \
      ELSE false END
      """
    // A read with the new value may contain the change, in spite of its stamp.
    let known =
      !self.hasReads
      ? ofEvent
      : """
      CASE WHEN NOT v.is_read THEN \(ofEvent) \
      WHEN v.read_value IS NOT DISTINCT FROM v.new_value \
      THEN v.event_value IS NOT DISTINCT FROM v.read_value AND \(ofEvent) \
      ELSE (r.last)._changed_fields IS NOT NULL OR \(self.isSet("v.read_value", "(r.last)")) END
      """
    let isNew = "CASE WHEN f.field IS NOT NULL THEN \(self.isFull("h")) END AS new_is_known"
    guard !self.selectsChanges else {
      return
        "SELECT \(isNew), CASE WHEN f.field IS NOT NULL THEN false END AS old_is_known OFFSET 0"
    }
    return """
      SELECT \(isNew), \
      CASE WHEN f.field IS NOT NULL THEN coalesce(NOT EXISTS (SELECT FROM \(self.states) \
      AND to_jsonb(c.*) ->> 'state' = 'without events') AND (\(known)) AND NOT (\(self.isLost)), false) \
      END AS old_is_known OFFSET 0
      """
  }

  /// Fields that every record has, although events of some objects lack them.
  private var neverEmpty: [String] {
    self.history.dataColumns.filter { RecordFold.neverEmptyFields.contains($0.path) }.map(\.name)
  }

  /// SQL: the row of the field's column in the bookkeeping.
  private var states: String {
    """
    \(self.bookkeeping.qualified("_etl_column")) AS c \
    WHERE c.table_name = \(SQLIdentifier.literal(self.history.name)) AND c.column_name = f.field
    """
  }

  /// SQL: whether a complete image has the value. A null counts if the column was complete before.
  private func isSet(_ value: String, _ row: String) -> String {
    """
    (\(value) IS NOT NULL OR EXISTS (SELECT FROM \(self.states) \
    AND to_jsonb(c.*) ->> 'state' = 'complete' \
    AND (to_jsonb(c.*) ->> 'since')::timestamptz <= \(row)._loaded_at) \
    AND f.field <> ALL (\(self.literal(self.neverEmpty))))
    """
  }

  /// SQL: whether the history lacks a change after the event or read that has the value before: an
  /// event among the dead letters, or one that reports changes of any record. A letter of a channel
  /// that could not be decoded may be of any object. What does not depend on the row is asked once.
  private var isLost: String {
    let isContained =
      self.hasReads ? " AND NOT \(self.isRead("l.commit_timestamp", "l.noted_at"))" : ""
    // An event that could not be decoded has no place, but came with its neighbours.
    let isBetween = """
      CASE WHEN l.epoch IS NOT NULL THEN l.epoch = h._epoch AND l.ordinal < h._ordinal \
      AND ((e.last)._ordinal IS NULL OR l.ordinal > (e.last)._ordinal) \
      ELSE l.noted_at <= h._loaded_at \
      AND ((e.last)._ordinal IS NULL OR l.noted_at >= (e.last)._loaded_at) END\(isContained)
      """
    let entity = SQLIdentifier.literal(self.history.entity)
    let losses = """
      FROM \(ResyncTable.qualifiedName(schema: self.history.schema)) AS l \
      WHERE l.kind IN ('overflow', 'wildcard', 'dead_letter') \
      AND l.event_id IS DISTINCT FROM '\(RefusedReads.eventID)'
      """
    let isOfAny = "(l.record_id IS NULL OR l.kind <> 'dead_letter')"
    return """
      (SELECT EXISTS (SELECT \(losses) AND \(isOfAny))) AND EXISTS (SELECT \(losses) \
      AND \(isOfAny) AND l.entity = ANY (ARRAY[\(entity), split_part(h._topic, '/', 3)]) \
      AND \(isBetween)) \
      OR h._record_id IN (SELECT l.record_id \(losses) AND l.entity = \(entity) \
      AND l.record_id IS NOT NULL) \
      AND EXISTS (SELECT \(losses) AND l.entity = \(entity) AND l.record_id = h._record_id \
      AND \(isBetween) AND NOT EXISTS (SELECT FROM \(self.name) AS d \
      WHERE d._record_id = l.record_id AND d._event_id = l.event_id))
      """
  }

  // MARK: Users

  var userName: String {
    guard let users else { return "NULL::text" }
    let parts = users.nameColumns.map {
      "nullif(to_jsonb(u.*) ->> \(SQLIdentifier.literal($0)), '')"
    }
    return "nullif(concat_ws(' ', \(parts.joined(separator: ", "))), '')"
  }

  func userJoin(_ id: String) -> String {
    guard let users else { return "" }
    return " LEFT JOIN \(self.bookkeeping.qualified(users.table)) AS u ON u.id = \(id)"
  }
}
