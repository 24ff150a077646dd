internal import PostgresClient

/// A view that reads a view or table of the sink, with what it takes to create it again.
struct DependentView {
  /// `pg_class.oid`: `to_regclass` of a name needs privileges on its schema.
  private var oid: String
  /// For SQL text.
  var name: String
  var isMaterialized: Bool
  var definition: ViewText
  private var options: String
  /// Indexes, owner, grants and comments: statements.
  private var rest: [String]
  private var isPopulated: Bool
  /// What `creation` does not bring back, or what keeps the view from being dropped; nil if nothing
  /// does.
  private(set) var companions: String?

  var drop: String { "DROP \(self.kind) \(self.name)" }

  private var kind: String { self.isMaterialized ? "MATERIALIZED VIEW" : "VIEW" }

  private var with: String { self.options.isEmpty ? "" : " WITH (\(self.options))" }

  /// Creates the dropped view.
  var creation: [String] {
    [
      "CREATE \(self.kind) \(self.name)\(self.with) AS \(self.definition.text)"
        + (self.isPopulated ? "" : " WITH NO DATA")
    ] + self.rest
  }

  /// Gives the view its definition again where it still has another, with the same columns.
  ///
  /// - Parameter others: all views that need it, in an order in which they can be created.
  func replacement(_ others: [DependentView]) -> [String] {
    guard self.isMaterialized else {
      return ["CREATE OR REPLACE VIEW \(self.name)\(self.with) AS \(self.definition.text)"]
    }
    return ["BEGIN"] + others.reversed().map(\.drop) + [self.drop] + self.creation
      + others.flatMap(\.creation) + ["COMMIT"]
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
    \(Self.grants("v")), \(Self.columnGrants), \(Self.comment("v")), \(Self.columnComments), \
    v.relkind <> 'm' OR v.relispopulated, \(Self.companions), v.oid
    """

  private static let columnGrants = """
    (SELECT string_agg(format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, a.attname, \
    \(Self.name("v")), \(Self.grantee), \(Self.grantOption)), E'\\n') \
    FROM pg_catalog.pg_attribute AS a, aclexplode(a.attacl) AS g \
    WHERE a.attrelid = v.oid AND NOT a.attisdropped)
    """

  private static let columnComments = """
    (SELECT string_agg(format('COMMENT ON COLUMN %s.%I IS %s', \(Self.name("v")), a.attname, \
    \(Self.literal("d.description"))), E'\\n') FROM pg_catalog.pg_attribute AS a \
    JOIN pg_catalog.pg_description AS d ON d.objoid = a.attrelid AND d.objsubid = a.attnum \
    AND d.classoid = 'pg_catalog.pg_class'::regclass WHERE a.attrelid = v.oid AND a.attnum > 0)
    """

  /// Functions, triggers and rules: everything that depends on the view except views and indexes.
  private static let companions = """
    (SELECT string_agg(DISTINCT pg_describe_object(d.classid, d.objid, 0), ', ') \
    FROM pg_catalog.pg_depend AS d \
    LEFT JOIN pg_catalog.pg_rewrite AS w ON d.classid = 'pg_catalog.pg_rewrite'::regclass \
    AND w.oid = d.objid LEFT JOIN pg_catalog.pg_class AS i \
    ON d.classid = 'pg_catalog.pg_class'::regclass AND i.oid = d.objid WHERE d.deptype IN ('n', 'a') \
    AND (d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = v.oid \
    OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (v.reltype, \
    (SELECT y.typarray FROM pg_catalog.pg_type AS y WHERE y.oid = v.reltype))) \
    AND w.rulename IS DISTINCT FROM '_RETURN' AND i.relkind IS DISTINCT FROM 'i')
    """

  /// Puts text that may have several lines on one line.
  private static func literal(_ text: String) -> String {
    """
    CASE WHEN strpos(\(text), E'\\n') = 0 THEN quote_literal(\(text)) ELSE 'E''' || \
    replace(replace(replace(\(text), E'\\\\', E'\\\\\\\\'), '''', ''''''), E'\\n', E'\\\\n') || '''' END
    """
  }

  private static func comment(_ alias: String) -> String {
    """
    (SELECT 'COMMENT ON ' || CASE \(alias).relkind WHEN 'm' THEN 'MATERIALIZED VIEW ' \
    ELSE 'VIEW ' END || \(Self.name(alias)) || ' IS ' || \(Self.literal("c.text")) \
    FROM (SELECT obj_description(\(alias).oid, 'pg_class')) AS c (text) WHERE c.text IS NOT NULL)
    """
  }

  private static let grantee =
    "CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END"
  private static let grantOption =
    "CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END"

  private static func name(_ alias: String) -> String {
    """
    (SELECT format('%I.%I', n.nspname, \(alias).relname) FROM pg_catalog.pg_namespace AS n \
    WHERE n.oid = \(alias).relnamespace)
    """
  }

  private static func grants(_ alias: String) -> String {
    """
    (SELECT string_agg(format('GRANT %s ON %s TO %s%s', g.privilege_type, \(Self.name(alias)), \
    \(Self.grantee), \(Self.grantOption)), E'\\n') \
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
    self.rest = (4...9).flatMap(lines)
    self.isPopulated = text(10) == "t"
    self.companions = result[row, first + 11]
    self.oid = text(12)
  }

  /// All views that need a view, however indirectly, in an order in which they can be created.
  ///
  /// - Parameter name: for SQL text, in a schema that the role may use.
  static func all(
    on name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [DependentView] {
    try Self.all(on: "to_regclass($1)", name, over: connection)
  }

  /// The same for this view, whatever its schema is.
  func dependents(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [DependentView] {
    try Self.all(on: "$1::oid", self.oid, over: connection)
  }

  /// - Parameters:
  ///   - relation: SQL, the OID of a view.
  ///   - value: its parameter.
  private static func all(
    on relation: String, _ value: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [DependentView] {
    let next = """
      SELECT DISTINCT r.ev_class FROM pg_catalog.pg_depend AS p JOIN pg_catalog.pg_rewrite AS r \
      ON r.oid = p.objid WHERE p.classid = 'pg_catalog.pg_rewrite'::regclass \
      AND p.refclassid = 'pg_catalog.pg_class'::regclass AND r.ev_class <> p.refobjid AND p.refobjid
      """
    let found = try connection.query(
      """
      WITH RECURSIVE \(Self.path), d (id, depth) AS (SELECT f.ev_class, 1 FROM (\(next) = \
      \(relation)) AS f UNION SELECT f.ev_class, d.depth + 1 FROM d, \
      LATERAL (\(next) = d.id) AS f) \
      SELECT \(Self.columns) FROM path, (SELECT id, max(depth) AS depth FROM d GROUP BY id) AS o \
      JOIN pg_catalog.pg_class AS v ON v.oid = o.id ORDER BY o.depth, v.relname
      """, [value])
    return (0..<found.rowCount).map { DependentView(found, $0) }
  }

  /// What to do where statements would fail, or lose something; nil where they would not.
  static func manual(_ views: [DependentView]) -> String? {
    let companions = views.compactMap(\.companions)
    guard !companions.isEmpty else { return nil }
    return "Drop these views and create them again yourself, because other objects depend on them: "
      + companions.joined(separator: ", ")
  }

  /// The grants and the comment on a view of the sink, as statements.
  ///
  /// - Parameter name: for SQL text.
  static func attributes(
    on name: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let found = try connection.query(
      """
      SELECT concat_ws(E'\\n', \(Self.grants("v")), \(Self.comment("v"))) \
      FROM pg_catalog.pg_class AS v WHERE v.oid = to_regclass($1)
      """, [name])
    guard found.rowCount > 0, let attributes = found[0, 0] else { return [] }
    return attributes.split(separator: "\n").map(String.init)
  }
}
