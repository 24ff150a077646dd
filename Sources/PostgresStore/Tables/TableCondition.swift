/// What somebody may have put on a table, or taken from it, besides columns.
struct TableCondition: Sendable {
  /// Names of privileges that the role lacks, on the table as a whole and on its columns.
  var missingPrivileges: [String] = []
  var role = ""
  /// A history that only takes rows one by one: COPY is not for tables with policies.
  var hasRowSecurity = false
  /// `DO INSTEAD` rules of what loading does, by name.
  var insteadRules: [String] = []
}

extension TableCondition {
  init(_ table: TableState, over connection: PostgresConnection) throws(PostgresError) {
    let needed =
      switch table.kind {
      case .history: ["INSERT"]
      case .current: ["SELECT", "INSERT", "UPDATE"]
      }
    // Of SELECT is a view, and a row is deleted by nobody but 'delete: remove'.
    let rules = table.kind == .current ? ["2", "3"] : ["3"]
    let result = try connection.query(
      """
      SELECT current_user, row_security_active(c.oid),
        (SELECT string_agg(r.rulename::text, ', ' ORDER BY r.rulename) FROM pg_catalog.pg_rewrite r
          WHERE r.ev_class = c.oid AND r.is_instead AND r.ev_enabled <> 'D'
          AND r.ev_type::text = ANY ($4::text[])),
        (SELECT string_agg(p, ', ') FROM unnest($3::text[]) AS p
          WHERE NOT has_table_privilege(c.oid, p) AND NOT has_any_column_privilege(c.oid, p))
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
      """, [table.schema, table.name, SQLArray.literal(needed), SQLArray.literal(rules)])
    guard result.rowCount == 1 else { return }
    self.role = result[0, 0] ?? ""
    self.hasRowSecurity = table.kind == .history && result[0, 1] == "t"
    self.insteadRules = result[0, 2].map { [$0] } ?? []
    self.missingPrivileges = result[0, 3].map { [$0] } ?? []
  }

  /// Why rows cannot be written to the table as it is; what to do about it.
  func obstacle(_ table: TableState) -> PostgresError? {
    let name = table.qualifiedName
    if let privileges = self.missingPrivileges.first {
      let role = SQLIdentifier.quoted(self.role)
      return PostgresError(
        .refused,
        "postgres: role \(self.role) may not \(privileges) on table \(name): let its owner execute "
          + "GRANT \(privileges) ON \(name) TO \(role)")
    }
    if self.hasRowSecurity {
      return PostgresError(
        .configuration,
        "postgres: table \(name) has row-level security, with which COPY is refused to role "
          + "\(self.role): let a "
          + "superuser execute ALTER ROLE \(SQLIdentifier.quoted(self.role)) BYPASSRLS, or the owner "
          + "of the table ALTER TABLE \(name) DISABLE ROW LEVEL SECURITY")
    }
    if let rules = self.insteadRules.first {
      return PostgresError(
        .configuration,
        "postgres: a DO INSTEAD rule of table \(name) (\(rules)) sends rows elsewhere: drop it, or "
          + "use a trigger")
    }
    return nil
  }
}
