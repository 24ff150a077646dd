/// What a database says when it is asked whether a sink could write to it.
package struct DatabaseProbe: Sendable, Equatable {
  /// `15.4`.
  package var serverVersion: String
  package var database: String
  package var role: String
  package var hasSchema: Bool
  /// The role may make tables in the schema, or the schema where there is none.
  package var mayCreate: Bool

  /// Connects and asks; changes nothing.
  package init(_ configuration: PostgresSinkConfiguration) throws(PostgresError) {
    let connection = try PostgresConnection(configuration.connection)
    let result = try connection.query(
      """
      SELECT current_setting('server_version'), current_database(), current_user, n.oid IS NOT NULL,
        CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
        ELSE has_schema_privilege(n.oid, 'CREATE') END
      FROM (VALUES (1)) AS one LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
      """, [configuration.schema])
    self.serverVersion = result[0, 0] ?? ""
    self.database = result[0, 1] ?? ""
    self.role = result[0, 2] ?? ""
    self.hasSchema = result[0, 3] == "t"
    self.mayCreate = result[0, 4] == "t"
  }
}
