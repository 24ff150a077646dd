package import JSON
internal import PostgresClient

extension CheckpointTable {
  /// Reads the newest changes in the history tables of the schema, to show them, table by
  /// table, oldest first: of each at least the last `count` if there are as many, and earlier rows of
  /// the same records.
  ///
  /// - Returns: rows as JSON objects by column name; nil if there are no history tables.
  /// - Throws: `PostgresError`.
  package func recentRows(_ count: Int) throws -> [JSONValue]? {
    try self.reading(isQuick: false) {
      guard try self.exists("_etl_table") else { return nil }
      try self.connection.execute("SET LOCAL TimeZone = 'UTC'")
      let tables = try self.connection.query(
        """
        SELECT table_name FROM \(self.bookkeeping.qualified("_etl_table")) \
        WHERE kind = 'history' AND to_regclass($1 || '.' || quote_ident(table_name)) IS NOT NULL \
        ORDER BY table_name COLLATE "C"
        """, [SQLIdentifier.quoted(self.bookkeeping.schema)])
      guard tables.rowCount > 0 else { return nil }
      return try (0..<tables.rowCount).compactMap { tables[$0, 0] }.flatMap { table in
        let rows = try self.connection.query(
          Self.recentRows(of: self.bookkeeping.qualified(table)), [String(count)])
        return (0..<rows.rowCount).compactMap { row in
          rows[row, 0].flatMap { try? JSONValue(parsing: $0) }
        }
      }
    }
  }

  private static let newestFirst = "_epoch DESC, _ordinal DESC, _record_id COLLATE \"C\" DESC"

  /// - Parameter name: for SQL text, with the schema.
  private static func recentRows(of name: String) -> String {
    // The index on the commit time finds the newest, and that on the record the others. Platform
    // events have neither, and come in the order of their stream.
    """
    SELECT to_json(h.*)::text FROM (\
    (SELECT * FROM \(name) WHERE _record_id IN (\
    SELECT _record_id FROM \(name) WHERE _commit_timestamp IS NOT NULL \
    ORDER BY _commit_timestamp DESC, \(Self.newestFirst) LIMIT $1::bigint) \
    ORDER BY coalesce(_commit_timestamp, _loaded_at) DESC, \(Self.newestFirst) \
    LIMIT $1::bigint * 50) UNION ALL \
    (SELECT * FROM \(name) WHERE _record_id IS NULL \
    ORDER BY \(Self.newestFirst) LIMIT $1::bigint)) AS h \
    ORDER BY coalesce(h._commit_timestamp, h._loaded_at), h._epoch, h._ordinal, \
    h._record_id COLLATE "C"
    """
  }
}
