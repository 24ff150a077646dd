internal import Pipeline
internal import PostgresClient

/// How complete the columns of tables are, in `_etl_column`; the view `_columns` shows it.
struct ColumnStates {
  enum State: String {
    case complete
    /// Rows of records that were read before the column existed, or before it could be read, lack
    /// its values.
    case filling
    /// The run-as user may not see the field.
    case hidden
    /// REST and Bulk do not have the field, so its values come from events alone.
    case notReadable = "not readable"
    /// A formula or roll-up, or a field that no event has. Its value is that of the record's last read
    /// or change.
    case withoutEvents = "without events"
    /// Events no longer have the field.
    case gone
  }

  private let bookkeeping: Bookkeeping
  private let columns: String

  init(_ bookkeeping: Bookkeeping) {
    self.bookkeeping = bookkeeping
    self.columns = bookkeeping.qualified("_etl_column")
  }

  /// What the bookkeeping has of each column.
  struct Kept {
    var states: Bool
    /// The IDs of custom fields.
    var fieldIDs: Bool
    /// When columns without events were last read.
    var readTimes: Bool
    /// The database's date, in UTC.
    var today: String
  }

  /// What the database has; one of an earlier version may lack some, if the role may not change its
  /// tables.
  private func existing(
    and condition: String = "true", over connection: PostgresConnection
  ) throws(PostgresError) -> Kept {
    let found = try connection.query(
      """
      SELECT coalesce(bool_or(attname = 'state'), false), coalesce(bool_or(attname = 'field_id'), false), \
      coalesce(bool_or(attname = 'refreshed_at'), false), to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM pg_catalog.pg_attribute \
      WHERE attrelid = to_regclass($1) AND NOT attisdropped AND \(condition)
      """, [self.columns])
    return Kept(
      states: found[0, 0] == "t", fieldIDs: found[0, 1] == "t", readTimes: found[0, 2] == "t",
      today: found[0, 3] ?? "")
  }

  func exist(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try self.existing(over: connection).states
  }

  /// What the role may also change.
  func kept(over connection: PostgresConnection) throws(PostgresError) -> Kept {
    try self.existing(and: "has_table_privilege(attrelid, 'UPDATE')", over: connection)
  }

  func areKept(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    try self.kept(over: connection).states
  }

  /// The statements that complete the bookkeeping of an earlier version.
  func additions(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    let existing = try self.existing(over: connection)
    var statements = existing.states ? [] : try self.stateAdditions(over: connection)
    if !existing.fieldIDs {
      statements.append("ALTER TABLE \(self.columns) ADD COLUMN IF NOT EXISTS field_id text")
    }
    if !existing.readTimes {
      statements.append(
        "ALTER TABLE \(self.columns) ADD COLUMN IF NOT EXISTS refreshed_at timestamptz")
    }
    return statements
  }

  /// Columns that were added to existing tables may lack values. Rows that were read were marked as
  /// partial if one field could not be read.
  private func stateAdditions(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let journal = self.bookkeeping.qualified("_etl_journal")
    var statements = [
      """
      ALTER TABLE \(self.columns) ADD COLUMN IF NOT EXISTS state text NOT NULL DEFAULT 'complete', \
      ADD COLUMN IF NOT EXISTS since timestamptz NOT NULL DEFAULT now()
      """,
      """
      UPDATE \(self.columns) AS c SET state = 'filling' WHERE EXISTS (SELECT FROM \(journal) AS j \
      WHERE j.table_name = c.table_name AND j.action IN ('add_column', 'adopt_column') \
      AND split_part(j.detail, ' ', 1) = c.column_name)
      """,
    ]
    let tables = try connection.query(
      """
      SELECT a.attrelid::regclass FROM \(self.bookkeeping.qualified("_etl_table")) AS t, \
      pg_catalog.pg_attribute AS a WHERE t.kind = 'current' AND a.attname = '_read_at' \
      AND a.attrelid = to_regclass(quote_ident($1) || '.' || quote_ident(t.table_name)) \
      AND NOT a.attisdropped ORDER BY 1
      """, [self.bookkeeping.schema])
    for row in 0..<tables.rowCount {
      statements.append(
        "UPDATE \(tables[row, 0] ?? "") SET _partial = false WHERE _partial "
          + "AND _read_at IS NOT NULL AND _deleted_at IS NULL")
    }
    return statements
  }

  private static let goneSince = "gone since "

  /// The comment of a column, which says since when events no longer have its field. Whatever else it
  /// says is kept.
  ///
  /// - Parameter day: nil if events have the field.
  static func comment(_ comment: String?, goneSince day: String?) -> String? {
    let parts = [self.parts(of: comment).text, day.map { self.goneSince + $0 }].compactMap { $0 }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }

  /// The comment of a column without that note, and the day in the note. A label, which may read
  /// like the note, is not the end of a comment.
  static func parts(of comment: String?) -> (text: String?, day: String?) {
    var parts = (comment ?? "").split(separator: ", ", omittingEmptySubsequences: false)
    var day: String?
    if let last = parts.last, last.hasPrefix(self.goneSince), last.last?.isNumber == true {
      day = String(last.dropFirst(self.goneSince.count))
      parts.removeLast()
    }
    let text = parts.joined(separator: ", ")
    return (text.isEmpty ? nil : text, day)
  }

  /// A statement that notes the state of a column.
  func set(_ state: State, column: String, of table: String) -> String {
    "UPDATE \(self.columns) SET state = \(SQLIdentifier.literal(state.rawValue)), since = now() "
      + "WHERE table_name = \(SQLIdentifier.literal(table)) "
      + "AND column_name = \(SQLIdentifier.literal(column))"
  }

  /// Dotted names of the object's fields in the tables, without computed columns.
  func fields(
    ofTables tables: [String], over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let result = try connection.query(
      """
      SELECT DISTINCT path FROM \(self.columns) WHERE table_name = ANY ($1::text[]) \
      AND state <> 'gone' AND \(Self.isOfObject)
      """, [SQLArray.literal(tables)])
    return (0..<result.rowCount).compactMap { result[$0, 0] }
  }

  /// Only fields of the schema have a Salesforce type; parts of compounds may have none.
  private static let isOfObject = "(salesforce_type IS NOT NULL OR strpos(path, '.') > 0)"

  /// No schema has had the field, so only reads bring it.
  private static let isOnlyRead = "(first_schema_id IS NULL)"

  /// Notes what can be read.
  func note(
    _ access: [String: FieldAccess], tables: [String], over connection: PostgresConnection
  ) throws(PostgresError) {
    guard !access.isEmpty else { return }
    let known = access.sorted { $0.key < $1.key }
    try connection.query(
      """
      UPDATE \(self.columns) AS c SET state = n.state, since = now() FROM (\
      SELECT c.table_name, c.column_name, CASE WHEN a.access = 'hidden' THEN 'hidden' \
      WHEN a.access = 'unreadable' THEN 'not readable' \
      WHEN c.state IN ('hidden', 'not readable') THEN 'filling' \
      WHEN (a.access = 'calculated' OR \(Self.isOnlyRead)) AND c.state = 'complete' \
      THEN 'without events' WHEN a.access = 'readable' AND NOT \(Self.isOnlyRead) \
      AND c.state = 'without events' THEN 'complete' \
      ELSE c.state END AS state FROM \(self.columns) AS c \
      JOIN unnest($2::text[], $3::text[]) AS a (path, access) ON a.path = c.path \
      WHERE c.table_name = ANY ($1::text[]) AND c.state <> 'gone') AS n \
      WHERE c.table_name = n.table_name AND c.column_name = n.column_name AND c.state <> n.state
      """,
      [
        SQLArray.literal(tables), SQLArray.literal(known.map(\.key)),
        SQLArray.literal(known.map(\.value.rawValue)),
      ])
  }

  /// Notes that the values of columns are as of a read of all records, in the open transaction. Such a
  /// read fills columns that nothing else does.
  ///
  /// - Parameters:
  ///   - fields: dotted names; nil for all that change without events.
  ///   - columns: those that got the values; nil if there were no records.
  ///   - begunAt: SQL, when the read began. Columns that are newer keep their state.
  func refreshed(
    _ fields: Set<String>?, columns: [String]?, tables: [String], begunAt: String,
    over connection: PostgresConnection
  ) throws(PostgresError) {
    let isUnfilled = "(state = 'filling' AND \(Self.isOnlyRead))"
    try connection.query(
      """
      UPDATE \(self.columns) SET refreshed_at = \(begunAt), \
      since = CASE WHEN \(isUnfilled) THEN now() ELSE since END, \
      state = CASE WHEN \(isUnfilled) THEN 'without events' ELSE state END \
      WHERE table_name = ANY ($1::text[]) AND state <> 'gone' \
      AND (NOT \(isUnfilled) OR since <= \(begunAt)) \
      AND CASE WHEN $2::text[] IS NULL THEN (state = 'without events' OR refreshed_at IS NOT NULL) \
      AND (NOT \(Self.isOnlyRead) OR $3::text[] IS NULL OR column_name = ANY ($3::text[])) \
      ELSE path = ANY ($2::text[]) END
      """,
      [
        SQLArray.literal(tables), fields.map { SQLArray.literal($0.sorted()) },
        columns.map { SQLArray.literal($0) },
      ])
  }

  /// Columns that a pass of their own has to fill. Those that no event fills wait for their refresh.

  func filling(
    tables: [String], over connection: PostgresConnection
  ) throws(PostgresError) -> [FillingColumn] {
    let result = try connection.query(
      """
      SELECT path, bool_or(\(Self.isOfObject)) FROM \(self.columns) \
      WHERE table_name = ANY ($1::text[]) AND state = 'filling' AND NOT \(Self.isOnlyRead) \
      GROUP BY path ORDER BY path
      """, [SQLArray.literal(tables)])
    return (0..<result.rowCount).map {
      FillingColumn(field: result[$0, 0] ?? "", isOfObject: result[$0, 1] == "t")
    }
  }

  /// Notes that every record was read with these columns, in the open transaction.
  ///
  /// - Parameters:
  ///   - fields: dotted names; nil for all.
  ///   - columns: those that got the values; nil if there were no records. A field whose type has
  ///     changed has several columns.
  ///   - begunAt: SQL, when the pass began. Columns that are newer keep their state.
  func complete(
    _ fields: [String]?, columns: [String]?, calculated: [String], tables: [String],
    begunAt: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      UPDATE \(self.columns) SET since = now(), \
      state = CASE WHEN path = ANY ($3::text[]) OR \(Self.isOnlyRead) THEN 'without events' \
      ELSE 'complete' END \
      WHERE table_name = ANY ($1::text[]) AND state = 'filling' AND since <= \(begunAt) \
      AND ($2::text[] IS NULL OR path = ANY ($2::text[])) \
      AND ($4::text[] IS NULL OR column_name = ANY ($4::text[]))
      """,
      [
        SQLArray.literal(tables), fields.map { SQLArray.literal($0) },
        SQLArray.literal(calculated), columns.map { SQLArray.literal($0) },
      ])
  }
}
