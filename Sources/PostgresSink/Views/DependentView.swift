internal import PostgresClient

/// A view that reads a view or table of the sink, with what it takes to create it again.
struct DependentView {
  /// For SQL text.
  var name: String
  var isMaterialized: Bool
  var definition: ViewText
  private var options: String
  /// Indexes, owner and grants: statements.
  private var rest: [String]

  var drop: String { "DROP \(self.kind) \(self.name)" }

  private var kind: String { self.isMaterialized ? "MATERIALIZED VIEW" : "VIEW" }

  private var with: String { self.options.isEmpty ? "" : " WITH (\(self.options))" }

  /// Creates the dropped view.
  var creation: [String] {
    ["CREATE \(self.kind) \(self.name)\(self.with) AS \(self.definition.text)"] + self.rest
  }

  /// Gives the view another definition with the same columns.
  func replacement(_ definition: ViewText) -> [String] {
    var view = self
    view.definition = definition
    guard !self.isMaterialized else { return ["BEGIN", self.drop] + view.creation + ["COMMIT"] }
    return ["CREATE OR REPLACE VIEW \(self.name)\(self.with) AS \(definition.text)"]
  }

  /// The place of `pg_get_viewdef` and the others in a query whose `v.oid` is a view; see `init`.
  ///
  /// Names have their schemas: the statements will be executed under another `search_path`.
  static let path = "path AS MATERIALIZED (SELECT set_config('search_path', '', true))"
  static let columns = """
    \(Self.name("v")), v.relkind = 'm', pg_get_viewdef(v.oid), array_to_string(v.reloptions, ', '), \
    (SELECT string_agg(pg_get_indexdef(i.indexrelid), E'\\n' ORDER BY i.indexrelid) \
    FROM pg_catalog.pg_index AS i WHERE i.indrelid = v.oid), \
    'ALTER ' || CASE v.relkind WHEN 'm' THEN 'MATERIALIZED VIEW ' ELSE 'VIEW ' END || \
    \(Self.name("v")) || ' OWNER TO ' || quote_ident(pg_get_userbyid(v.relowner)), \
    \(Self.grants("v"))
    """

  private static func name(_ alias: String) -> String {
    """
    (SELECT format('%I.%I', n.nspname, \(alias).relname) FROM pg_catalog.pg_namespace AS n \
    WHERE n.oid = \(alias).relnamespace)
    """
  }

  private static func grants(_ alias: String) -> String {
    """
    (SELECT string_agg(format('GRANT %s ON %s TO %s%s', g.privilege_type, \(Self.name(alias)), \
    CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END, \
    CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), E'\\n') \
    FROM aclexplode(\(alias).relacl) AS g WHERE g.grantee <> \(alias).relowner)
    """
  }

  /// - Parameter first: the place of the first of `columns`.
  init(_ result: TextResult, _ row: Int, from first: Int = 0) {
    func text(_ place: Int) -> String { result[row, first + place] ?? "" }
    func lines(_ place: Int) -> [String] {
      text(place).split(separator: "\n").map(String.init)
    }
    self.name = text(0)
    self.isMaterialized = text(1) == "t"
    self.definition = ViewText(text(2))
    self.options = text(3)
    self.rest = lines(4) + lines(5) + lines(6)
  }

  /// All views that need a view, however indirectly, in an order in which they can be created.
  ///
  /// - Parameter name: for SQL text.
  static func all(
    on name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [DependentView] {
    let next = """
      SELECT DISTINCT r.ev_class FROM pg_catalog.pg_depend AS p JOIN pg_catalog.pg_rewrite AS r \
      ON r.oid = p.objid WHERE p.classid = 'pg_catalog.pg_rewrite'::regclass \
      AND p.refclassid = 'pg_catalog.pg_class'::regclass AND r.ev_class <> p.refobjid AND p.refobjid
      """
    let found = try connection.query(
      """
      WITH RECURSIVE \(Self.path), d (id, depth) AS (SELECT f.ev_class, 1 FROM (\(next) = \
      to_regclass($1)) AS f UNION SELECT f.ev_class, d.depth + 1 FROM d, \
      LATERAL (\(next) = d.id) AS f) \
      SELECT \(Self.columns) FROM path, (SELECT id, max(depth) AS depth FROM d GROUP BY id) AS o \
      JOIN pg_catalog.pg_class AS v ON v.oid = o.id ORDER BY o.depth, v.relname
      """, [name])
    return (0..<found.rowCount).map { DependentView(found, $0) }
  }

  /// The grants on a view of the sink, as statements.
  ///
  /// - Parameter name: for SQL text.
  static func grants(
    on name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let found = try connection.query(
      "SELECT \(Self.grants("v")) FROM pg_catalog.pg_class AS v WHERE v.oid = to_regclass($1)",
      [name])
    guard found.rowCount > 0, let grants = found[0, 0] else { return [] }
    return grants.split(separator: "\n").map(String.init)
  }
}
