internal import PostgresClient

/// Names the session that holds a lock for which a change has waited too long.
enum LockHolder {
  /// The end of a message; empty if nobody holds a lock any more.
  ///
  /// What a role may not see of other roles' sessions is left out. Statements are never shown,
  /// because they may hold values.
  ///
  /// - Parameters:
  ///   - relations: SQL names, not quoted.
  ///   - isExclusive: only locks that exclude writers.
  static func suffix(
    _ relations: [String], _ schema: String, isExclusive: Bool = false,
    over connection: PostgresConnection
  ) throws(PostgresError) -> String {
    let modes =
      isExclusive
      ? "AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') "
      : ""
    // The longest transaction comes first. Prepared transactions have no process.
    let found = try connection.query(
      """
      SELECT c.relname, l.pid, a.application_name, a.usename, a.backend_type, a.state, \
      to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), \
      count(*) OVER () - 1 \
      FROM (SELECT pid, min(relation) AS relation FROM pg_catalog.pg_locks \
      WHERE locktype = 'relation' AND granted AND pid IS DISTINCT FROM pg_backend_pid() \(modes)\
      AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
      AND relation IN (SELECT r.oid FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_namespace AS n \
      ON n.oid = r.relnamespace WHERE n.nspname = $1 AND r.relname = ANY ($2::text[])) \
      GROUP BY pid) AS l JOIN pg_catalog.pg_class AS c ON c.oid = l.relation \
      LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid \
      ORDER BY a.xact_start NULLS LAST, l.pid LIMIT 1
      """, [schema, SQLArray.literal(relations)])
    guard found.rowCount > 0 else { return "" }
    func text(_ column: Int) -> String? {
      found[0, column].flatMap { $0.isEmpty ? nil : $0 }
    }
    let session = text(1).map { "process \($0)" } ?? "a prepared transaction"
    let details = [
      text(2).map { "application \($0)" }, text(3).map { "user \($0)" } ?? text(4), text(5),
      text(6).map { "in its transaction since \($0)" },
    ].compactMap { $0 }
    let others = text(7).flatMap { Int($0) } ?? 0
    let table = Bookkeeping(schema: schema).qualified(text(0) ?? "")
    return "; \(table) is locked by \(session)"
      + (details.isEmpty ? "" : " (\(details.joined(separator: ", ")))")
      + (others > 0 ? " and \(others) more" : "")
  }
}
