/// The view `_freshness`: a row for each object and pipeline, in the terms of the view of that name in
/// PostgreSQL (`ReportingViews`).
extension DuckDBViews {
  static let freshnessName = "_freshness"

  /// The columns of `_freshness.ndjson`.
  static let lineColumns: [(name: String, type: String)] = [
    ("entity", "VARCHAR"), ("pipeline", "VARCHAR"), ("sink", "VARCHAR"), ("topics", "VARCHAR[]"),
    ("complete_through", "TIMESTAMPTZ"), ("last_run", "TIMESTAMPTZ"), ("holes", "BIGINT"),
    ("missing_ranges", "BIGINT"), ("dead_letters", "BIGINT"), ("snapshot_at", "TIMESTAMPTZ"),
    ("snapshot_begun_at", "TIMESTAMPTZ"), ("snapshot_state", "VARCHAR"),
    ("snapshot_rows", "BIGINT"), ("snapshot_total", "BIGINT"), ("columns_filling", "VARCHAR[]"),
    ("columns_hidden", "VARCHAR[]"), ("selects_changes", "BOOLEAN"),
    ("polled_every_seconds", "BIGINT"), ("polled_at", "TIMESTAMPTZ"),
    ("refreshed_at", "TIMESTAMPTZ"), ("changed_records", "BIGINT"),
  ]

  /// - Parameters:
  ///   - entities: the objects that have a view.
  ///   - hasCurrent: whether an object has a view of current records.
  func freshnessView(
    of entities: [EntityColumns], hasCurrent: (EntityColumns) -> Bool
  ) -> String {
    guard !entities.isEmpty else { return "" }
    let counts = entities.map { Self.counts($0, hasCurrent: hasCurrent($0)) }
    let path =
      Self.globEscaped(self.directory) + "/" + ColumnCatalog.freshnessName
    let columns = Self.lineColumns.map { "\($0.name): '\($0.type)'" }.joined(separator: ", ")
    return """

      CREATE OR REPLACE VIEW \(Self.identifier(Self.freshnessName)) AS
      WITH objects AS (
        \(counts.joined(separator: "\n  UNION ALL "))
      ),
      runs AS (
        SELECT * FROM read_json(\(Self.literal(path)),
          format = 'newline_delimited', hive_partitioning = false, ignore_errors = true,
          columns = {\(columns)})
      )
      SELECT * EXCLUDE (
        unnamed, snapshot_begun_at, selects_changes, polled_every, polled_at, refreshed_at), CASE
        WHEN snapshot_state <> 'complete' THEN 'copying'
        WHEN stale > 0 OR (waiting_for_repair > 0 AND selects_changes IS NOT TRUE)
          OR missing_ranges <> 0 OR dead_letters <> 0 OR len(columns_filling) > 0 THEN 'stale'
        WHEN missing_ranges = 0 AND dead_letters = 0 AND complete_through BETWEEN now()
          - coalesce(getvariable('late_after')::INTERVAL, INTERVAL 2 HOURS)
          - coalesce(polled_every, INTERVAL 0 SECONDS)
          AND now() + INTERVAL 5 MINUTES THEN 'fresh'
        ELSE 'late' END AS state, polled_every, polled_at, refreshed_at
      FROM (
        SELECT entity, pipeline, sink, complete_through, last_run, stale, partial, holes,
          last_change, topics, snapshot_at, missing_ranges + coalesce(len([
            time for time in unnamed if (time < snapshot_begun_at) IS NOT TRUE]), 0)
            AS missing_ranges,
          dead_letters, waiting_for_repair + coalesce(changed_records, 0) AS waiting_for_repair,
          snapshot_state, snapshot_rows, snapshot_total, columns_filling,
          columns_hidden, selects_changes, unnamed, snapshot_begun_at,
          to_seconds(polled_every_seconds) AS polled_every, polled_at, refreshed_at
        FROM objects LEFT JOIN runs USING (entity)
      );

      """
  }

  /// SQL: what the lines of an object say. The times of changes that name no record are `unnamed`.
  private static func counts(_ columns: EntityColumns, hasCurrent: Bool) -> String {
    let own = Set(columns.entries.map(\.name))
    let changes =
      own.isSuperset(of: ["_kind", "_commit_timestamp"])
      ? """
      (SELECT max(_commit_timestamp) FILTER (_kind <> 'snapshot') AS last_change,
          list(_commit_timestamp) FILTER (_kind IN ('overflow', 'wildcard')) AS unnamed
          FROM \(Self.identifier(columns.entity)))
      """ : "(SELECT NULL::TIMESTAMPTZ AS last_change, NULL::TIMESTAMPTZ[] AS unnamed)"
    let records =
      hasCurrent
      ? """
      (SELECT count(*) FILTER (_stale) AS stale, count(*) FILTER (_partial) AS partial,
          count(*) FILTER (_stale OR _partial AND _read_at IS NULL) AS waiting_for_repair
          FROM \(Self.identifier(Self.currentName(of: columns.entity))))
      """
      : """
      (SELECT NULL::BIGINT AS stale, NULL::BIGINT AS partial, NULL::BIGINT AS waiting_for_repair)
      """
    return """
      SELECT * FROM (SELECT \(Self.literal(columns.entity)) AS entity),
          \(records),
          \(changes)
      """
  }
}
