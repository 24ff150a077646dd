extension DuckDBViews {
  /// SQL for the view of changes: a query of a row for each value that a refresh has found to be another
  /// than was known before. Who changed it is unknown, and when, apart from the time of the read.
  static let refreshedFields = """
    refreshes AS (
        SELECT DISTINCT _record_id AS id, unnest(_changed_fields) AS field FROM lines
        WHERE _change_type = 'SNAPSHOT_REFRESH' AND _record_id IN (SELECT _record_id FROM lines
          WHERE _kind IN ('change', 'gap', 'snapshot') AND _change_type <> 'SNAPSHOT_REFRESH')
      ),
      refreshed AS (
        SELECT id, field, value, time, type, true AS is_known, lag(value) OVER steps AS old,
          lag(value IS NOT NULL OR is_set) OVER steps AS old_is_known
        FROM (
          SELECT f.id, f.field, l._line AS line, l._read_at AS time, l._change_type AS type,
            if(list_contains(l._diff_fields, f.field), NULL, t.value) AS value,
            l._change_type IN ('UPDATE', 'SNAPSHOT_REFRESH')
              AND list_contains(l._diff_fields, f.field) IS NOT TRUE AS is_set,
            if(l._kind = 'snapshot', (l._file_epoch, l._first_ordinal, 0), (l._epoch,
              coalesce(l._ordinal, l._first_ordinal), 1)) AS place
          FROM refreshes AS f JOIN lines AS l ON l._record_id = f.id
          LEFT JOIN texts AS t ON t.line = l._line AND t.field = f.field
          WHERE CASE WHEN l._change_type = 'UPDATE' THEN list_contains(
              coalesce(l._changed_fields, []) || coalesce(l._nulled_fields, []), f.field)
            WHEN l._kind = 'snapshot'
              THEN l._changed_fields IS NULL OR list_contains(l._changed_fields, f.field)
            ELSE l._change_type IN ('CREATE', 'UNDELETE') END
        )
        WINDOW steps AS (PARTITION BY id, field ORDER BY place, time, line)
        QUALIFY type = 'SNAPSHOT_REFRESH' AND value IS DISTINCT FROM old
          -- A record that has left the copy is refreshed all the same.
          AND last_value(if(type IN ('UPDATE', 'SNAPSHOT_REFRESH'), NULL, type) IGNORE NULLS)
            OVER steps IS DISTINCT FROM 'SNAPSHOT_DELETE'
      )
    """
}
