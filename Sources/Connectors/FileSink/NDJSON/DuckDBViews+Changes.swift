/// The view of changes: `"Opportunity_changes"` has a row for each field that an update changed, with its
/// value before and after, and a row for each other event of a record.
///
/// It has the columns and the rules of the view of that name in PostgreSQL (`ChangesView`). What a read
/// contains is known by its place in the stream and by its stamp.
extension DuckDBViews {
  static func changesName(of entity: String) -> String { "\(entity)_changes" }

  /// Fields that every record has, although events of some objects lack them.
  private static let neverEmpty = [
    "CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById", "OwnerId",
  ]

  /// - Parameters:
  ///   - users: the columns of users, if there is a view of current users.
  ///   - history: the columns of the object's field history, if there is a view of it.
  /// - Returns: the statement; empty if the view of current records is missing too.
  static func changesView(
    of columns: EntityColumns, users: EntityColumns?, history: EntityColumns?
  ) -> String {
    guard Self.hasCurrentView(columns) else { return "" }
    let (types, _) = Self.types(of: columns)
    let fields = types.filter { Self.isOfRecord($0.name) }
    let own = Set(types.map(\.name))
    func optional(_ name: String) -> String { own.contains(name) ? name : "NULL::VARCHAR" }
    let texts = fields.map { "\(Self.text(of: $0)) AS \(Self.identifier($0.name))" }
    let literals = fields.map { Self.identifier($0.name) }.joined(separator: ", ")
    let compounds = fields.filter { $0.type == "JSON" }.map { Self.literal($0.name) }
    let neverEmpty = Self.neverEmpty.map { Self.literal($0) }.joined(separator: ", ")
    let (userName, userJoin) = Self.userName(users)
    let hasModified = types.contains { $0.name == "LastModifiedDate" && $0.type == "TIMESTAMPTZ" }
    return """

      CREATE OR REPLACE VIEW \(Self.identifier(Self.changesName(of: columns.entity))) AS
      WITH stream AS MATERIALIZED (
        SELECT *, row_number() OVER () AS _line FROM \(Self.identifier(columns.entity))
      ),
      lines AS (
        SELECT *, (_epoch, coalesce(_ordinal, _first_ordinal)) AS _place,
          \(optional("_schema_id")) AS _schema,
          count(*) FILTER (_kind IN ('overflow', 'wildcard')) OVER (
            ORDER BY _epoch, coalesce(_ordinal, _first_ordinal), _line) AS _losses
        FROM stream
        WHERE (_pipeline, _topic) = (SELECT min((_pipeline, _topic)) FROM stream)
      ),
      texts AS (
        SELECT _line AS line, field, value FROM (
          SELECT _line,
            \(texts.joined(separator: ",\n      "))
          FROM lines
        ) UNPIVOT (value FOR field IN (\(literals)))
      ),
      events AS (
        SELECT _line AS line, _record_id AS id, _epoch AS epoch, _place AS place, _losses AS losses,
          _commit_timestamp AS time, \(optional("_commit_user")) AS user_id, _change_type AS type,
          \(optional("_transaction_key")) AS transaction_key, _schema AS schema,
          list_distinct(coalesce(_changed_fields, []) || coalesce(_nulled_fields, [])) AS fields,
          coalesce(_diff_fields, []) AS diffs,
          \(hasModified ? "LastModifiedDate" : "NULL::TIMESTAMPTZ") AS modified,
          row_number() OVER (PARTITION BY _record_id ORDER BY _place, _line) AS n
        FROM lines WHERE _kind IN ('change', 'gap')
      )\(Self.earlierChanges(of: columns, fields, in: history)),
      changed AS (
        SELECT * FROM (SELECT *, unnest(fields) AS field FROM events WHERE type = 'UPDATE')
        WHERE field IN (\(fields.map { Self.literal($0.name) }.joined(separator: ", ")))
      ),
      -- The schemas that are known to have a field.
      schemas AS (
        SELECT DISTINCT l._schema AS schema, t.field
        FROM lines AS l JOIN texts AS t ON t.line = l._line
        UNION SELECT DISTINCT schema, field FROM changed
      ),
      -- Events that set a field, or may have.
      setters AS (
        SELECT e.*, f.field, t.value, h.field IS NOT NULL AND f.field NOT IN (\(neverEmpty)) AS is_had,
          CASE WHEN type = 'UPDATE' THEN NOT list_contains(diffs, f.field)\(
            compounds.isEmpty ? "" : " AND f.field NOT IN (\(compounds.joined(separator: ", ")))")
          ELSE type IN ('CREATE', 'UNDELETE') AND (t.value IS NOT NULL OR is_had) END AS is_known
        FROM events AS e JOIN (SELECT DISTINCT id, field FROM changed) AS f USING (id)
        LEFT JOIN texts AS t ON t.line = e.line AND t.field = f.field
        LEFT JOIN schemas AS h ON h.schema = e.schema AND h.field = f.field
        WHERE CASE type WHEN 'UPDATE' THEN list_contains(fields, f.field)
          ELSE type NOT IN ('DELETE', 'GAP_DELETE') END
      ),
      updates AS (
        SELECT * FROM (
          SELECT *, lag({'value': value, 'is_known': is_known, 'place': place, 'losses': losses,
            'time': time}) OVER (PARTITION BY id, field, epoch ORDER BY n) AS event FROM setters
        ) WHERE type = 'UPDATE'
      ),
      -- The last read of the field that does not contain the change.
      reads AS (
        SELECT u.line, u.field, arg_max({'value': t.value, 'stamp': r._system_modstamp,
          'place': (r._file_epoch, r._first_ordinal), 'losses': r._losses, 'is_had':
            r._changed_fields IS NOT NULL OR h.field IS NOT NULL AND u.field NOT IN (\(neverEmpty))},
          r._read_at) AS read
        FROM updates AS u JOIN lines AS r ON r._record_id = u.id AND r._kind = 'snapshot'
        LEFT JOIN texts AS t ON t.line = r._line AND t.field = u.field
        LEFT JOIN schemas AS h ON h.schema = r._schema AND h.field = u.field
        WHERE r._change_type IN ('SNAPSHOT', 'SNAPSHOT_FIELDS', 'SNAPSHOT_REFRESH')
          AND r._file_epoch = u.epoch
          AND (r._changed_fields IS NULL OR list_contains(r._changed_fields, u.field))
          AND r._system_modstamp < u.time - INTERVAL 5 SECONDS
          AND u.place >= (r._file_epoch, r._first_ordinal)
        GROUP BY ALL
      ),
      known AS (
        SELECT u.*, CASE
          WHEN read IS NULL OR event IS NOT NULL
            AND (event.place < read.place OR event.time < read.stamp - INTERVAL 5 SECONDS) IS NOT TRUE
          THEN (event.value, event.is_known AND event.losses = u.losses)
          WHEN read.value IS NOT DISTINCT FROM u.value
          THEN (read.value, event.value IS NOT DISTINCT FROM read.value AND event.is_known
            AND read.losses = u.losses)
          ELSE (read.value, (read.value IS NOT NULL OR read.is_had) AND read.losses = u.losses)
          END AS old
        FROM updates AS u LEFT JOIN reads USING (line, field)
      ),
      \(Self.refreshedFields)
      SELECT c.id, c.field, CASE WHEN c.old_is_known THEN c.old END AS old_value,
        CASE WHEN c.is_known THEN c.value END AS new_value, c.time AS changed_at, c.user_id AS changed_by,
        \(userName) AS changed_by_name, c.type AS change_type, c.transaction_key,
        c.old_is_known, c.is_known AS new_is_known, c.source
      FROM (
        SELECT id, field, old[1] AS old, value, time, user_id, type, transaction_key, is_known,
          coalesce(old[2], false) AS old_is_known, 'event' AS source FROM known
        UNION ALL BY NAME
        SELECT id, NULL AS field, NULL AS old, NULL AS value, time, user_id, type, transaction_key,
          NULL AS is_known, NULL AS old_is_known, 'event' AS source
        FROM events WHERE type IS DISTINCT FROM 'UPDATE'
        UNION ALL BY NAME
        SELECT id, field, old, value, time, NULL AS user_id, type, NULL AS transaction_key, is_known,
          coalesce(old_is_known, false) AS old_is_known, 'refresh' AS source
        FROM refreshed\(
          history == nil ? "" : "\n  UNION ALL BY NAME SELECT * FROM earlier")
      ) AS c\(userJoin);

      """
  }

  /// SQL: a value as PostgreSQL's view has it.
  private static func text(of column: (name: String, type: String)) -> String {
    let name = Self.identifier(column.name)
    switch column.type {
    case "TIMESTAMPTZ": return "strftime(\(name) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"
    case "DOUBLE", "FLOAT":
      return """
        CASE WHEN \(name) = trunc(\(name)) AND abs(\(name)) < 1e18
          THEN \(name)::BIGINT::VARCHAR ELSE \(name)::VARCHAR END
        """
    case "VARCHAR[]":
      return """
        '[' || array_to_string([to_json(item)::VARCHAR for item in \(name)], ', ') || ']'
        """
    default: return "\(name)::VARCHAR"
    }
  }

  /// SQL: the name of the user `c.user_id`, and the join that it needs.
  private static func userName(_ users: EntityColumns?) -> (name: String, join: String) {
    guard let users else { return ("NULL::VARCHAR", "") }
    let own = Set(users.entries.map(\.name))
    let parts = Self.nameParts
    let names = [parts, parts.map { "Name_\($0)" }, ["Name"]].map { $0.filter(own.contains) }
    guard let found = names.first(where: { !$0.isEmpty }) else { return ("NULL::VARCHAR", "") }
    let selected = found.map { "nullif(u.\(Self.identifier($0)), '')" }.joined(separator: ", ")
    return (
      "nullif(concat_ws(' ', \(selected)), '')",
      "\nLEFT JOIN \(Self.identifier(Self.currentName(of: users.entity))) AS u "
        + "ON u._record_id = c.user_id"
    )
  }
}
