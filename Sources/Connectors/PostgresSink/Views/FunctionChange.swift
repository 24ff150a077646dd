internal import PostgresClient

/// What brings a function that returns a table up to date.
struct FunctionChange {
  /// SQL name, not quoted.
  var name: String
  var parameters: [(name: String, type: PostgresType)]
  var columns: [ReportingViews.Column]
  var body: String
  let bookkeeping: Bookkeeping

  private var qualifiedName: String {
    "\(self.bookkeeping.qualified(self.name))(\(self.parameterTypes))"
  }

  private var parameterTypes: String {
    self.parameters.map(\.type.sqlName).joined(separator: ", ")
  }

  /// The name in the journal.
  private var signature: String { "\(self.name)(\(self.parameterTypes))" }

  private var names: [String] { self.parameters.map(\.name) + self.columns.map(\.name) }
  private var types: [UInt32] { self.parameters.map(\.type.oid) + self.columns.map(\.typeOID) }

  private var create: String { self.create(self.columns.map(\.name)) }

  /// - Parameter names: of the columns, which are those of the body by their places.
  private func create(_ names: [String]) -> String {
    let parameters = self.parameters.map { "\(SQLIdentifier.quoted($0.name)) \($0.type.sqlName)" }
    let columns = zip(names, self.columns).map { name, column in
      let type = PostgresType(oid: column.typeOID) ?? .text
      return "\(SQLIdentifier.quoted(name)) \(type.sqlName)"
    }
    return """
      CREATE OR REPLACE FUNCTION \(self.bookkeeping.qualified(self.name))\
      (\(parameters.joined(separator: ", "))) \
      RETURNS TABLE (\(columns.joined(separator: ", "))) LANGUAGE sql STABLE PARALLEL SAFE \
      AS \(SQLIdentifier.literal(self.body))
      """
  }

  /// What updates the function. With other columns it is dropped first, and keeps its grants.
  struct Update {
    var statements: [String] = []
    var dropsFunction = false
    /// What keeps a function that cannot be dropped working after columns of its tables were renamed:
    /// the same columns under their earlier names.
    var keeping: [String] = []
    /// Somebody else made a function of that name and parameter.
    var isOfAnother = false
  }

  private static let action = "function"

  /// What the journal says of the function as it was made last.
  private func noted(over connection: PostgresConnection) throws(PostgresError) -> String? {
    let found = try connection.query(
      """
      SELECT detail FROM \(self.bookkeeping.qualified("_etl_journal")) \
      WHERE table_name = $1 AND action = $2 ORDER BY id DESC LIMIT 1
      """, [self.signature, Self.action])
    return found.rowCount > 0 ? found[0, 0] : nil
  }

  func update(over connection: PostgresConnection) throws(PostgresError) -> Update {
    let found = try connection.query(
      """
      SELECT p.proargnames = $4::text[] AND p.proallargtypes = $5::oid[], p.prosrc = $6, \
      'REVOKE ALL ON FUNCTION ' || $3 || ' FROM PUBLIC' || (SELECT coalesce(string_agg(\
      '; GRANT EXECUTE ON FUNCTION ' || $3 || ' TO ' || CASE a.grantee WHEN 0 THEN 'PUBLIC' \
      ELSE quote_ident(pg_get_userbyid(a.grantee)) END, ''), '') FROM aclexplode(p.proacl) AS a \
      WHERE a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner), p.proacl IS NOT NULL, \
      p.prosrc, to_regclass($7) IS NOT NULL, \
      CASE WHEN p.proallargtypes = $5::oid[] THEN array_to_string(p.proargnames, E'\\n') END \
      FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace \
      WHERE n.nspname = $1 AND p.proname = $2 AND p.proargtypes = $8::text::oidvector
      """,
      [
        self.bookkeeping.schema, self.name, self.qualifiedName, SQLArray.literal(self.names),
        SQLArray.literal(self.types.map { "\($0)" }), self.body,
        self.bookkeeping.qualified("_etl_journal"),
        self.parameters.map { "\($0.type.oid)" }.joined(separator: " "),
      ])
    let note = self.bookkeeping.note(
      Self.action, String(ViewState.digest(self.body)), on: self.signature, schemaID: nil)
    let make = [self.create, note]
    guard found.rowCount > 0 else { return Update(statements: make) }
    let noted = try found[0, 5] == "t" ? self.noted(over: connection) : nil
    guard noted == String(ViewState.digest(found[0, 4] ?? "")) else {
      return Update(isOfAnother: true)
    }
    guard found[0, 0] != "t" else {
      return found[0, 1] == "t" ? Update() : Update(statements: make)
    }
    let former = found[0, 6]?.split(separator: "\n").map(String.init)
      .dropFirst(self.parameters.count)
    let isKept = former?.count == self.columns.count && found[0, 1] != "t"
    let grants = found[0, 3] == "t" ? found[0, 2].map { [$0] } ?? [] : []
    return Update(
      statements: ["DROP FUNCTION \(self.qualifiedName)"] + make + grants, dropsFunction: true,
      keeping: isKept ? former.map { [self.create(Array($0)), note] } ?? [] : [])
  }
}
