import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Views that read columns of an earlier type", .enabled(if: PostgresCluster.isAvailable))
struct OutdatedReaderTests {
  private static let feeder = TableFeeder(
    pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
  private static let text = SinkRun.layout(.string, schemaID: "schema-2")

  private func findings(
    _ database: TestDatabase, _ connection: PostgresConnection
  ) throws -> [TableFinding] {
    try TableCatalog(database.configuration(), feeder: Self.feeder).survey(over: connection)
  }

  /// The statements that a message says to run.
  private func statements(_ message: String) throws -> String {
    let start = try #require(message.firstRange(of: "run as the owner of the view")).upperBound
    let end = try #require(message.firstRange(of: "; a value that cannot be converted")).lowerBound
    return String(message[start..<end].drop { $0 != ":" }.dropFirst())
  }

  @Test("Views that lack new values are named at each run, with statements that work")
  func readers() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.write(["a"]) { _ in [SinkRun.amount: .double(1.5)] }
    try run.commit()
    let reader = "reader_\(database.name)"
    try run.eye.execute(
      """
      CREATE ROLE \(reader); CREATE SCHEMA "Reports 1"; CREATE SCHEMA reporting;
      CREATE VIEW reporting.plain WITH (security_barrier=true) AS
      SELECT id, amount, 'amount' AS label FROM salesforce.opportunity_live;
      GRANT SELECT ON reporting.plain, salesforce.opportunity_live TO \(reader);
      CREATE VIEW "Reports 1"."Total" AS WITH o AS (SELECT * FROM salesforce.opportunity_live)
      SELECT sum(o.amount) AS "Sum", count(*) FILTER (WHERE x.amount > 1) FROM o
      JOIN salesforce.opportunity_live AS x USING (id);
      CREATE VIEW reporting.nested AS SELECT "Sum" FROM "Reports 1"."Total";
      CREATE VIEW reporting.direct AS SELECT id, amount FROM salesforce.opportunity;
      CREATE VIEW reporting.changes AS SELECT _record_id, amount
      FROM salesforce.opportunity_history;
      CREATE MATERIALIZED VIEW reporting.stored AS SELECT id, amount
      FROM salesforce.opportunity_live;
      CREATE UNIQUE INDEX stored_id ON reporting.stored (id);
      GRANT SELECT ON reporting.stored TO \(reader);
      CREATE VIEW reporting.names AS SELECT name FROM salesforce.opportunity_live
      """)
    let columns = "SELECT id, amount FROM reporting.plain ORDER BY id"
    run.notices = []
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    run.sink.close()

    // The live view has the new values and keeps its grants.
    #expect(
      try run.eye.rows(
        "SELECT id, amount, amount__float8 FROM salesforce.opportunity_live WHERE id <> 'first' "
          + "ORDER BY id") == [["a", "-", "1.5"], ["b", "2.5", "-"]])
    #expect(
      try run.eye.column(
        "SELECT has_table_privilege('\(reader)', 'salesforce.opportunity_live', 'SELECT')")
        == ["t"])
    #expect(try run.eye.rows(columns) == [["a", "1.5"], ["b", "-"], ["first", "-"]])
    let views = [
      "reporting.plain", "\"Reports 1\".\"Total\"", "reporting.direct", "reporting.changes",
      "reporting.stored",
    ]
    #expect(run.notices.filter { $0.contains("lacks new values") }.count == views.count)
    let second = try SinkRun(database, ordinal: 3)
    try second.sink.open()
    for view in views {
      let named = "view \(view) lacks new values of field Amount"
      #expect(run.notices.count { $0.contains(named) } == 1, "\(run.notices)")
      #expect(second.notices.count { $0.contains(named) } == 1, "\(second.notices)")
    }
    second.sink.close()

    let found = try self.findings(database, run.eye)
    #expect(found.count == views.count)
    #expect(found.allSatisfy { $0.kind == .outdatedReader && $0.disposition == nil })
    #expect(
      try TableCatalog.plan([Self.text], database.configuration(), feeder: Self.feeder)
        .outdatedViews == found)
    for finding in found { try run.eye.execute(self.statements(finding.message)) }
    #expect(try self.findings(database, run.eye) == [])
    #expect(try run.eye.rows(columns) == [["a", "-"], ["b", "2.5"], ["first", "-"]])
    #expect(try run.eye.rows("SELECT * FROM \"Reports 1\".\"Total\"") == [["2.5", "1"]])
    #expect(try run.eye.rows("SELECT * FROM reporting.nested") == [["2.5"]])
    #expect(try run.eye.column("SELECT max(amount) FROM reporting.direct") == ["2.5"])
    #expect(try run.eye.column("SELECT max(amount) FROM reporting.changes") == ["2.5"])
    #expect(try run.eye.column("SELECT max(amount) FROM reporting.stored") == ["2.5"])
    #expect(
      try run.eye.rows(
        """
        SELECT has_table_privilege('\(reader)', 'reporting.stored', 'SELECT'), \
        has_table_privilege('\(reader)', 'reporting.plain', 'SELECT'), \
        to_regclass('reporting.stored_id') IS NOT NULL, \
        (SELECT reloptions FROM pg_class WHERE oid = 'reporting.plain'::regclass)
        """) == [["t", "t", "t", "{security_barrier=true}"]])
    let third = try SinkRun(database, ordinal: 3)
    try third.sink.open()
    #expect(third.notices == [])
  }

  @Test("The statements for a materialized view bring back what depends on it and belongs to it")
  func materialized() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    let (reader, owner) = ("reader_\(database.name)", "analyst_\(database.name)")
    try run.eye.execute(
      """
      CREATE ROLE \(reader); CREATE ROLE \(owner); GRANT CREATE ON SCHEMA public TO \(owner);
      GRANT SELECT ON salesforce.opportunity_live TO \(owner);
      CREATE MATERIALIZED VIEW public.stored WITH (fillfactor=70) AS SELECT id, amount
      FROM salesforce.opportunity_live;
      CREATE INDEX "Stored Id" ON public.stored (id);
      COMMENT ON MATERIALIZED VIEW public.stored IS E'two\\nlines, it''s \\\\ all';
      COMMENT ON COLUMN public.stored.amount IS 'a sum';
      GRANT SELECT ON public.stored TO \(reader) WITH GRANT OPTION;
      ALTER MATERIALIZED VIEW public.stored OWNER TO \(owner);
      CREATE VIEW public.top WITH (security_barrier=true) AS
      SELECT s.id, s.amount, l.amount AS live FROM stored AS s
      JOIN salesforce.opportunity_live AS l USING (id);
      COMMENT ON VIEW public.top IS 'the top'; GRANT SELECT (id) ON public.top TO \(reader);
      CREATE MATERIALIZED VIEW public.cube AS SELECT count(*) FROM top WITH NO DATA;
      CREATE UNIQUE INDEX cube_count ON public.cube (count);
      CREATE VIEW public.last AS SELECT * FROM cube
      """)
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    run.sink.close()
    let attributes = """
      SELECT c.relname, c.relkind, c.reloptions, c.relacl, c.relispopulated, r.rolname,
      obj_description(c.oid), (SELECT string_agg(concat(a.attname, a.attacl,
      col_description(c.oid, a.attnum), format_type(a.atttypid, a.atttypmod)), ' ' ORDER BY attnum)
      FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0)
      FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
      WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1
      """
    let before = try run.eye.rows(attributes)
    let found = try self.findings(database, run.eye)
    #expect(found.count == 2)
    // In either order.
    for finding in found + found.reversed() {
      try run.eye.execute(self.statements(finding.message))
      try #expect(run.eye.rows(attributes) == before)
    }
    #expect(try self.findings(database, run.eye) == [])
    #expect(try run.eye.rows("SELECT * FROM top WHERE id = 'b'") == [["b", "2.5", "2.5"]])
  }

  @Test("Where statements would fail, the message says what to do instead")
  func manual() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.eye.execute(
      """
      CREATE MATERIALIZED VIEW public.stored AS SELECT id, amount FROM salesforce.opportunity_live;
      CREATE VIEW public.top AS SELECT * FROM stored;
      CREATE FUNCTION public.rows_of_top() RETURNS SETOF public.top LANGUAGE sql
      AS 'SELECT * FROM top'
      """)
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    let message = try #require(self.findings(database, run.eye).first?.message)
    #expect(!message.contains("run as the owner"))
    #expect(
      message.contains(
        "create them again yourself, because other objects depend on them: function public.rows_of_top()"
      ),
      "\(message)")
    #expect(message.contains("replace \"amount__float8\" by ((\"amount\")::"), "\(message)")
  }

  @Test("Views made for the old column, or for both, are not named")
  func deliberate() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    try run.eye.execute(
      """
      CREATE VIEW public.old AS SELECT id, amount__float8 FROM salesforce.opportunity_live;
      CREATE VIEW public.both AS SELECT coalesce(amount, amount__float8::text) AS amount
      FROM salesforce.opportunity_live
      """)
    #expect(try self.findings(database, run.eye) == [])
  }

  @Test("The statements of a plan for a changed type work although a view depends on the column")
  func plan() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    run.sink.close()
    try run.eye.execute(
      "CREATE VIEW public.mine AS SELECT id, amount FROM salesforce.opportunity_live")
    let plan = try TableCatalog.plan([Self.text], database.configuration(), feeder: Self.feeder)
    #expect(!plan.sql.contains("DROP VIEW \"salesforce\".\"opportunity_live\""))
    #expect(plan.outdatedViews.count == 1)
    #expect(
      plan.outdatedViews[0].message.hasPrefix(
        "postgres: view public.mine will lack new values after the next run"))
    try run.eye.execute(plan.sql)
    let after = try TableCatalog.plan([Self.text], database.configuration(), feeder: Self.feeder)
    #expect(after.statements == [] && after.outdatedViews.count == 1)
    let second = try SinkRun(database, ordinal: 1)
    try second.sink.open()
    try second.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try second.commit()
    #expect(
      try run.eye.column("SELECT amount FROM salesforce.opportunity_live WHERE id = 'b'")
        == ["2.5"])
  }

  @Test("A type that changes back leaves the live view with the present values")
  func back() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database).begin()
    try run.eye.execute(
      "CREATE VIEW public.mine AS SELECT id, amount FROM salesforce.opportunity_live")
    try run.write(["b"], layout: Self.text) { _ in [SinkRun.amount: .text("2.5")] }
    try run.commit()
    try run.write(["c"], layout: SinkRun.layout(schemaID: "schema-3")) { _ in
      [SinkRun.amount: .double(3.5)]
    }
    try run.commit()
    #expect(
      try run.eye.rows(
        "SELECT id, amount, amount__text FROM salesforce.opportunity_live ORDER BY id")
        == [["b", "-", "2.5"], ["c", "3.5", "-"], ["first", "-", "-"]])
    // The view reads the first column again.
    #expect(try run.eye.rows("SELECT * FROM mine ORDER BY id").map { $0[1] } == ["-", "3.5", "-"])
    #expect(try self.findings(database, run.eye) == [])
  }

  @Test("A live view that other views keep from its columns is named, with statements that work")
  func conflict() async throws {
    let database = try await TestDatabase()
    try SinkRun(database).begin().sink.close()
    let eye = try database.connect()
    try eye.execute(
      """
      DROP VIEW salesforce.opportunity_live;
      CREATE VIEW salesforce.opportunity_live AS SELECT id, name || '!' AS name, 1 AS mine
      FROM salesforce.opportunity;
      CREATE VIEW public.first AS SELECT id, name FROM salesforce.opportunity_live;
      CREATE VIEW public.second AS SELECT name FROM first;
      GRANT SELECT ON first TO PUBLIC
      """)
    for ordinal in [Int64(1), 2] {
      let run = try SinkRun(database, ordinal: ordinal)
      try run.sink.open()
      try run.write(["r\(ordinal)"])
      try run.commit()
      run.sink.close()
      #expect(
        run.notices.count { $0.contains("depend on it: public.first, public.second") } == 1,
        "\(run.notices)")
    }
    let found = try self.findings(database, eye)
    #expect(found.map(\.kind) == [.outdatedReader])
    let message = try #require(found.first?.message)
    let start = try #require(message.firstRange(of: " Run ")).upperBound
    try eye.execute(String(message[start...]))
    #expect(try self.findings(database, eye) == [])
    #expect(
      try eye.column("SELECT name FROM second ORDER BY name") == ["first", "r1", "r2"])
    #expect(try eye.column("SELECT parent FROM salesforce.opportunity_live") == ["-", "-", "-"])
    #expect(try eye.column("SELECT has_table_privilege('public', 'first', 'SELECT')") == ["t"])
  }

  @Test(
    "Uses of a column are replaced in a view's definition, and nothing else is",
    arguments: [
      (" SELECT o.a,\n    o.b AS a\n   FROM o;", "SELECT <o.>, o.b AS a FROM o"),
      ("SELECT 'a' AS x, E'\\'a' || a FROM o", "SELECT 'a' AS x, E'\\'a' || <> FROM o"),
      ("SELECT \"a b\".\"a\" + 1.5 AS \"a\"", "SELECT <\"a b\".> + 1.5 AS \"a\""),
      ("SELECT s.o.a, a.b, a(1), aa, \"A\"", "SELECT <s.o.>, a.b, <>(1), aa, \"A\""),
      ("SELECT 'it''s a', \"x\"\"a\" FROM o", "SELECT 'it''s a', \"x\"\"a\" FROM o"),
    ])
  func text(definition: String, expected: String) {
    #expect(ViewText(definition).replacing("a") { "<\($0)>" }.text == expected)
  }
}
