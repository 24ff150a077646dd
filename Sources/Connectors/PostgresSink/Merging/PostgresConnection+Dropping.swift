internal import PostgresClient

extension PostgresConnection {
  /// Drops a table of the sink's own, in the open transaction. If a dump or a report reads it, the
  /// table is emptied, because loading does not wait for readers.
  ///
  /// - Parameter name: for SQL text.
  /// - Returns: false if the table is still there.
  func dropUnlessRead(_ name: String) throws(PostgresError) -> Bool {
    guard try self.query("SELECT to_regclass($1) IS NOT NULL", [name])[0, 0] == "t" else {
      return true
    }
    try self.execute("SAVEPOINT _etl_drop")
    do {
      try self.execute(
        """
        LOCK TABLE \(name) IN ACCESS EXCLUSIVE MODE NOWAIT; DROP TABLE \(name); \
        RELEASE SAVEPOINT _etl_drop
        """)
      return true
    } catch {
      guard error.sqlState == SQLState.lockNotAvailable else { throw error }
      try self.execute(
        "ROLLBACK TO SAVEPOINT _etl_drop; RELEASE SAVEPOINT _etl_drop; DELETE FROM \(name)")
      return false
    }
  }
}
