internal import PostgresClient

/// A setting of the role, the database or the session that makes every transaction read-only.
///
/// It stays until somebody changes it. A standby, and a server whose configuration is read-only (as
/// services set it during a fail-over or while a disk is full), accept writes again by themselves.
struct ReadOnlySetting {
  var remedy: String

  /// - Returns: nil if there is none.
  init?(over connection: PostgresConnection) throws(PostgresError) {
    let result = try connection.query(
      """
      SELECT source, current_user, current_database() FROM pg_catalog.pg_settings \
      WHERE name = 'default_transaction_read_only' AND setting = 'on' AND NOT pg_is_in_recovery()
      """)
    guard result.rowCount == 1 else { return nil }
    let role = SQLIdentifier.quoted(result[0, 1] ?? "")
    let database = SQLIdentifier.quoted(result[0, 2] ?? "")
    let setting = "RESET default_transaction_read_only"
    switch result[0, 0] {
    case "user": self.remedy = "run ALTER ROLE \(role) \(setting)"
    case "database": self.remedy = "run ALTER DATABASE \(database) \(setting)"
    case "database user": self.remedy = "run ALTER ROLE \(role) IN DATABASE \(database) \(setting)"
    case "global": self.remedy = "run ALTER ROLE ALL \(setting)"
    case "client", "environment variable":
      self.remedy = "remove it from options in url, or from PGOPTIONS"
    default: return nil
    }
  }

  var error: PostgresError {
    PostgresError(
      .configuration,
      "postgres: default_transaction_read_only is on, so nothing can be written; \(self.remedy)",
      sqlState: SQLState.readOnlySQLTransaction)
  }
}
