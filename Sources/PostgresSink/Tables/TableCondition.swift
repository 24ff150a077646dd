internal import PostgresClient

/// Manual changes of a table other than its columns: privileges, rules and policies.
struct TableCondition: Sendable {
  /// Names of privileges that the role lacks, on the table as a whole and on its columns.
  var missingPrivileges: [String] = []
  var role = ""
  /// A history that only accepts INSERT, because COPY does not work with row-level security.
  var hasRowSecurity = false
  /// Names of rules that prevent the statements that load a current table.
  var refusedRules: String?
  /// Names of all rules except those for SELECT.
  var rules: String?
}

extension TableCondition {
  init(_ table: TableState, over connection: PostgresConnection) throws(PostgresError) {
    let needed =
      switch table.kind {
      case .history: ["INSERT"]
      case .current: ["SELECT", "INSERT", "UPDATE"]
      }
    // Only rules for UPDATE and INSERT matter. COPY, which loads the history, ignores rules, and
    // only 'delete: remove' deletes rows.
    let events = table.kind == .current ? ["2", "3"] : []
    let result = try connection.query(
      """
      SELECT current_user, row_security_active(c.oid),
        (SELECT string_agg(p, ', ') FROM unnest($3::text[]) AS p
          WHERE NOT has_table_privilege(c.oid, p) AND NOT has_any_column_privilege(c.oid, p)),
        (SELECT string_agg(r.rulename::text, ', ' ORDER BY r.rulename) FROM pg_catalog.pg_rewrite r
          WHERE r.ev_class = c.oid AND r.ev_enabled IN ('O', 'A')
          AND r.ev_type::text = ANY ($4::text[])),
        (SELECT string_agg(r.rulename::text, ', ' ORDER BY r.rulename) FROM pg_catalog.pg_rewrite r
          WHERE r.ev_class = c.oid AND r.ev_enabled IN ('O', 'A') AND r.ev_type <> '1')
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
      """, [table.schema, table.name, SQLArray.literal(needed), SQLArray.literal(events)])
    guard result.rowCount == 1 else { return }
    self.role = result[0, 0] ?? ""
    self.hasRowSecurity = table.kind == .history && result[0, 1] == "t"
    self.missingPrivileges = result[0, 2].map { [$0] } ?? []
    self.refusedRules = result[0, 3]
    self.rules = result[0, 4]
  }

  /// The reason why rows cannot be written to the table, and the remedy.
  func obstacle(_ table: TableState) -> PostgresError? {
    let name = table.qualifiedName
    if let privileges = self.missingPrivileges.first {
      let role = SQLIdentifier.quoted(self.role)
      return PostgresError(
        .refused,
        "postgres: role \(self.role) lacks \(privileges) on table \(name); ask its owner to "
          + "run GRANT \(privileges) ON \(name) TO \(role)")
    }
    if self.hasRowSecurity {
      return PostgresError(
        .configuration,
        "postgres: table \(name) has row-level security, which stops role \(self.role) from "
          + "using COPY. Ask a superuser to run ALTER ROLE \(SQLIdentifier.quoted(self.role)) "
          + "BYPASSRLS, or the owner of the table to run ALTER TABLE \(name) DISABLE ROW LEVEL "
          + "SECURITY")
    }
    if let refusedRules { return Self.refusal(refusedRules, of: table) }
    return nil
  }

  /// Possible reasons why the server refused a statement as not supported.
  func unsupported(_ table: TableState) -> PostgresError? {
    self.rules.map { Self.refusal($0, of: table) }
  }

  private static func refusal(_ rules: String, of table: TableState) -> PostgresError {
    PostgresError(
      .configuration,
      "postgres: table \(table.qualifiedName) has rules (\(rules)), because of which the "
        + "server refuses to write rows or sends them elsewhere. Run DROP RULE … ON "
        + "\(table.qualifiedName), or use a trigger instead")
  }
}
