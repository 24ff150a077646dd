internal import PostgresClient

/// Manual changes of a table other than its columns: privileges, rules and policies.
struct TableCondition: Sendable {
  /// Names of privileges that the role lacks, on the table as a whole and on its columns.
  var missingPrivileges: [String] = []
  var role = ""
  /// A history with row-level security accepts only INSERT, not COPY.
  var refusesCopy = false
  /// Row-level security may hide rows of a current table or refuse them.
  var mayHideRows = false
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
      SELECT current_user, row_security_active(c.oid), \(Self.mayHideRows("c.oid")),
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
    self.refusesCopy = table.kind == .history && result[0, 1] == "t"
    self.mayHideRows = table.kind == .current && result[0, 2] == "t"
    self.missingPrivileges = result[0, 3].map { [$0] } ?? []
    self.refusedRules = result[0, 4]
    self.rules = result[0, 5]
  }

  /// An SQL condition: row-level security of a table may hide rows from the role or refuse them.
  /// Policies that let the role do everything with every row hide nothing.
  ///
  /// - Parameter table: an SQL expression for the table's OID.
  static func mayHideRows(_ table: String) -> String {
    let applies =
      "(0 = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS r (id) "
      + "WHERE pg_has_role(r.id, 'USAGE')))"
    func isTrue(_ expression: String) -> String { "\(expression) = 'true'" }
    let using = "pg_get_expr(p.polqual, p.polrelid)"
    let check = "coalesce(pg_get_expr(p.polwithcheck, p.polrelid), \(using))"
    return """
      (row_security_active(\(table)) AND (EXISTS (SELECT FROM pg_catalog.pg_policy AS p \
      WHERE p.polrelid = \(table) AND NOT p.polpermissive AND \(applies)) \
      OR EXISTS (SELECT FROM unnest(ARRAY['r', 'a', 'w', 'd']) AS o (command) WHERE NOT EXISTS (\
      SELECT FROM pg_catalog.pg_policy AS p WHERE p.polrelid = \(table) AND p.polpermissive \
      AND \(applies) AND p.polcmd::text IN ('*', o.command) \
      AND (o.command = 'a' OR \(isTrue(using))) AND (o.command IN ('r', 'd') OR \(isTrue(check)))))))
      """
  }

  /// The error for a table whose row-level security may hide rows.
  static func hidden(_ name: String, from role: String, _ consequence: String) -> PostgresError {
    PostgresError(
      .configuration,
      "postgres: table \(name) has row-level security, which \(consequence) \(role). Ask a "
        + "superuser to run ALTER ROLE \(SQLIdentifier.quoted(role)) BYPASSRLS, or the owner of "
        + "the table to run ALTER TABLE \(name) DISABLE ROW LEVEL SECURITY")
  }

  /// The reason why rows cannot be written to the table, and the remedy.
  func obstacle(_ table: TableState) -> PostgresError? {
    let name = table.qualifiedName
    if let privileges = self.missingPrivileges.first {
      return PostgresError(
        .refused, "postgres: role \(self.role) lacks \(privileges) on table \(name)",
        sqlState: SQLState.insufficientPrivilege)
    }
    if self.refusesCopy {
      return Self.hidden(name, from: self.role, "does not allow COPY for role")
    }
    if self.mayHideRows {
      return Self.hidden(name, from: self.role, "may hide rows from role")
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
