/// Views for those who report: `<table>_live`, the rows of a current table that are not deleted, and
/// `_freshness`, how far and how whole every table is.
package struct ReportingViews {
  private let schema: String

  package init(schema: String) { self.schema = schema }

  package enum Outcome: Sendable, Equatable {
    case unchanged, created, replaced
    /// Dropped and made anew, since its columns are others; grants on it are gone.
    case remade
    /// Other views stand on it, and it is left as it was.
    case kept
  }

  /// Makes the live view of a current table fit the table, in the open transaction.
  package func updateLive(
    _ table: TableDefinition, over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    let columns =
      TableDefinition.fixedColumns(.current).filter { $0.name != "_deleted_at" }
      .map { ($0.name, $0.sqlType) } + table.dataColumns.map { ($0.name, $0.type.sqlName) }
    return try self.update(
      name: Self.liveName(table.name), columns: columns,
      query: """
        SELECT \(columns.map { SQLIdentifier.quoted($0.0) }.joined(separator: ", ")) \
        FROM \(table.qualifiedName) WHERE _deleted_at IS NULL
        """, over: connection)
  }

  /// SQL name, not quoted, of the live view of a table.
  package static func liveName(_ table: String) -> String {
    SQLIdentifier.shortened("\(table)_live")
  }

  /// Makes `_freshness` of all tables of the schema, in the open transaction: a row per table and
  /// pipeline that writes into the schema.
  package func updateFreshness(
    over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    let schema = SQLIdentifier.quoted(self.schema)
    let tables = try connection.query(
      """
      SELECT table_name FROM \(schema)._etl_table WHERE kind = 'current' \
      AND to_regclass(quote_ident($1) || '.' || quote_ident(table_name)) IS NOT NULL ORDER BY 1
      """, [self.schema])
    let counts = (0..<tables.rowCount).compactMap { tables[$0, 0] }.map { name in
      let table = "\(schema).\(SQLIdentifier.quoted(name))"
      return """
        SELECT \(SQLIdentifier.literal(name))::text, \
        (SELECT count(*) FROM \(table) WHERE _stale), \
        (SELECT count(*) FROM \(table) WHERE _partial)
        """
    }
    let none = "SELECT NULL::text, 0::bigint, 0::bigint WHERE false"
    return try self.update(
      name: "_freshness",
      columns: [
        ("table_name", "text"), ("entity", "text"), ("pipeline", "text"), ("sink", "text"),
        ("complete_through", "timestamp with time zone"),
        ("last_run", "timestamp with time zone"), ("stale", "bigint"), ("partial", "bigint"),
        ("holes", "numeric"),
      ],
      query: """
        SELECT t.table_name, t.entity, c.pipeline, c.sink, c.complete_through, \
        c.committed_at AS last_run, n.stale, n.partial, \
        (SELECT coalesce(sum((p.value ->> 'holes')::numeric), 0) \
        FROM jsonb_each(c.topics) AS p) AS holes \
        FROM \(schema)._etl_table AS t LEFT JOIN \(schema)._etl_checkpoint AS c ON true \
        LEFT JOIN (\((counts + [none]).joined(separator: " UNION ALL "))) \
        AS n (table_name, stale, partial) ON n.table_name = t.table_name
        """, over: connection)
  }

  private func update(
    name: String, columns: [(name: String, type: String)], query: String,
    over connection: PostgresConnection
  ) throws(PostgresError) -> Outcome {
    let qualified = "\(SQLIdentifier.quoted(self.schema)).\(SQLIdentifier.quoted(name))"
    let existing = try connection.query(
      """
      SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a \
      JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace \
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind = 'v' AND a.attnum > 0 \
      AND NOT a.attisdropped ORDER BY a.attnum
      """, [self.schema, name])
    let create = "CREATE OR REPLACE VIEW \(qualified) AS \(query)"
    guard existing.rowCount > 0 else {
      try connection.execute(create)
      return .created
    }
    // CREATE OR REPLACE may add columns at the end, nothing else.
    let isPrefix =
      existing.rowCount <= columns.count
      && (0..<existing.rowCount).allSatisfy {
        existing[$0, 0] == columns[$0].name && existing[$0, 1] == columns[$0].type
      }
    if isPrefix {
      try connection.execute(create)
      return existing.rowCount == columns.count ? .unchanged : .replaced
    }
    try connection.execute("SAVEPOINT _etl_view")
    do {
      try connection.execute("DROP VIEW \(qualified); \(create); RELEASE SAVEPOINT _etl_view")
      return .remade
    } catch {
      // dependent_objects_still_exist
      guard error.sqlState == "2BP01" else { throw error }
      try connection.execute("ROLLBACK TO SAVEPOINT _etl_view; RELEASE SAVEPOINT _etl_view")
      return .kept
    }
  }
}
