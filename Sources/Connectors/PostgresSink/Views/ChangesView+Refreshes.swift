internal import PostgresClient

/// The rows of `<table>_changes` for values that changed without an event. It is not known who changed
/// them, and they changed at some time between two reads.
extension ChangesView {
  /// The query of a row for each field in which a refresh found another value than was known before.
  var refreshed: String {
    """
    SELECT h._record_id, f.field, CASE WHEN k.is_known THEN \(self.text("v.old_value")) END, \
    \(self.text("v.new_value")), h._read_at, NULL::text, NULL::text, h._change_type, NULL::text, \
    k.is_known, true, 'refresh' FROM \(self.name) AS h \
    CROSS JOIN LATERAL (SELECT to_jsonb(h.*) AS image OFFSET 0) AS i \
    CROSS JOIN LATERAL (\(self.refreshedFields)) AS f \
    LEFT JOIN LATERAL (\(self.lastSetter)) AS e ON true \
    CROSS JOIN LATERAL (SELECT \(self.value(in: "to_jsonb(e.last)")) AS old_value, \
    \(self.value(in: "i.image")) AS new_value OFFSET 0) AS v \
    CROSS JOIN LATERAL (SELECT coalesce(v.old_value IS NOT NULL \
    OR (e.last)._change_type = 'UPDATE' OR (e.last)._change_type IN \(HistoryReader.fieldsTypes), \
    false) AS is_known OFFSET 0) AS k \
    WHERE h._kind = 'snapshot' AND h._change_type = '\(HistoryReader.refreshType)' \
    AND v.old_value IS DISTINCT FROM v.new_value
    """
  }

  private var refreshedFields: String {
    let present = self.names.present("n.name", schema: "h._schema_id")
    return
      "SELECT DISTINCT \(present) AS field FROM unnest(h._changed_fields) AS n (name) "
      + "WHERE i.image ? \(present)"
  }

  /// SQL: whether events with all fields have the field.
  private var imagesHaveField: String {
    let others = self.history.dataColumns.filter(\.isOnlyRead).map(\.name)
    return others.isEmpty ? "true" : "f.field <> ALL (\(ListedNames.literal(others)))"
  }

  /// The last row before the refresh that has the field's value.
  private var lastSetter: String {
    let isListed = "\(self.contains("_changed_fields", "_etl_p")) IS TRUE"
    return """
      SELECT q.last FROM (SELECT _etl_p AS last FROM \(self.name) AS _etl_p \
      WHERE _etl_p._record_id = h._record_id AND _etl_p._loaded_at <= h._loaded_at \
      AND _etl_p._event_id <> h._event_id AND CASE \
      WHEN _etl_p._change_type = 'UPDATE' \
      THEN \(isListed) OR \(self.contains("_nulled_fields", "_etl_p")) IS TRUE \
      WHEN _etl_p._change_type IN ('CREATE', 'UNDELETE') THEN \(self.imagesHaveField) \
      WHEN _etl_p._kind = 'snapshot' AND _etl_p._change_type <> 'SNAPSHOT_DELETE' \
      THEN _etl_p._changed_fields IS NULL OR \(isListed) ELSE false END \
      ORDER BY _etl_p._loaded_at DESC, _etl_p._kind = 'snapshot' DESC, _etl_p._ordinal DESC, \
      _etl_p._read_at DESC LIMIT 1) AS q
      """
  }
}
