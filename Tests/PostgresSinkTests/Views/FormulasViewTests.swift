import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Views of formulas", .enabled(if: PostgresCluster.isAvailable)) struct FormulasViewTests {
  private static func formula(_ name: String, _ type: String, _ text: String) -> FieldDescription {
    FieldDescription(
      name: name, label: name, type: type, formula: text, treatsBlankAsZero: true, scale: 2)
  }

  private static let fields = [
    FieldDescription(name: "Name", label: "Name", type: "string"),
    FieldDescription(name: "Amount", label: "Amount", type: "currency"),
    FieldDescription(
      name: "AccountId", label: "Account", type: "reference", references: ["Account"]),
    FieldDescription(
      name: "OwnerId", label: "Owner", type: "reference", references: ["User", "Group"]),
  ]

  private static func run(_ database: TestDatabase) throws -> SinkRun {
    let run = try SinkRun(database) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }
    try run.sink.open(creating: [:])
    return run
  }

  private static func note(_ run: SinkRun, _ formulas: [FieldDescription]) throws {
    try run.sink.noteDescriptions(Self.fields + formulas, of: "Opportunity")
  }

  private static func states(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT concat_ws('|', field, formula_state) FROM salesforce._fields WHERE formula IS NOT NULL \
      ORDER BY entity, field
      """)
  }

  private static let account = Column("AccountId", 3, .string)
  private static let layout = SinkRun.layout(schemaID: "schema-2", [Self.account])

  @Test("A column for each translated formula; what is not translated is named")
  func contents() async throws {
    let run = try Self.run(try await TestDatabase())
    let formulas = [
      Self.formula("Double__c", "currency", "Amount * 2"),
      Self.formula("Share__c", "percent", "Amount / 0"),
      Self.formula("Kind__c", "string", "IF(Double__c > 100, Name & \" it's big\", NULL)"),
      Self.formula("Link__c", "string", "HYPERLINK(\"/\", Name)"),
      Self.formula("Owner__c", "string", "Owner.Name"),
      Self.formula("Industry__c", "string", "Account.Industry__c"),
    ]
    // Before there is a table.
    try Self.note(run, formulas)
    try run.write(["a", "b"], layout: Self.layout) {
      [SinkRun.amount: .double($0 == "a" ? 60.25 : 1), SinkRun.amount + 1: .text("acc")]
    }
    try run.commit()
    #expect(
      try run.eye.rows("SELECT * FROM salesforce.opportunity_formulas ORDER BY id") == [
        ["a", "120.50", "a it's big", "-"], ["b", "2", "-", "-"],
      ])
    #expect(
      try Self.states(run) == [
        "Double__c|translated", "Industry__c|not translated: Account is not copied",
        "Kind__c|translated", "Link__c|not translated: function HYPERLINK is not translated",
        "Owner__c|not translated: relationship Owner can lead to different objects",
        "Share__c|translated",
      ])
    let comment = try run.eye.column(
      "SELECT obj_description('salesforce.opportunity_formulas'::regclass)")
    #expect(comment[0].contains("Link__c: function HYPERLINK is not translated"))
    #expect(!run.notices.contains { $0.contains("formulas") })
  }

  @Test("Related records have values as soon as their object has a table")
  func related() async throws {
    let run = try Self.run(try await TestDatabase())
    try Self.note(
      run,
      [
        Self.formula("Parent_Name__c", "string", "account.NAME & '!'"),
        Self.formula("Parent_Half__c", "double", "Account.Half__c"),
      ])
    try run.write(["deal"], layout: Self.layout) { _ in [SinkRun.amount + 1: .text("acc")] }
    try run.commit()
    #expect(try Self.states(run).allSatisfy { $0.hasSuffix("Account is not copied") })
    try run.sink.noteDescriptions(
      [
        FieldDescription(name: "Name", label: "Name", type: "string"),
        FieldDescription(name: "Size__c", label: "Size", type: "double"),
        Self.formula("Half__c", "double", "Size__c / 2"),
      ], of: "Account")
    let accounts = RecordLayout.test(
      [Column("Name", 0, .string), Column("Size__c", 1, .double)], entity: "Account",
      schemaID: "schema-3")
    try run.write(["acc"], layout: accounts) { _ in
      [SinkRun.name: .text("Acme"), SinkRun.parent: .double(5)]
    }
    try run.commit()
    let query =
      "SELECT id, parent_name__c, parent_half__c::float FROM salesforce.opportunity_formulas"
    #expect(try run.eye.rows(query) == [["deal", "Acme!", "2.5"]])
    try run.eye.execute("UPDATE salesforce.account SET _deleted_at = now()")
    #expect(try run.eye.rows(query) == [["deal", "!", "0"]])
  }

  @Test("A changed formula changes its column; rights and other people's views stay")
  func changes() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    let first = Self.formula("First__c", "currency", "Amount + 1")
    try Self.note(run, [first])
    try run.write(["a"]) { _ in [SinkRun.amount: .double(1)] }
    try run.commit()
    let role = "reader_\(database.name)"
    try run.eye.execute(
      """
      CREATE ROLE \(role); GRANT SELECT ON salesforce.opportunity_formulas TO \(role);
      CREATE VIEW public.mine AS SELECT first__c FROM salesforce.opportunity_formulas
      """)
    try Self.note(
      run,
      [
        Self.formula("First__c", "currency", "Amount + 2"),
        Self.formula("Another__c", "boolean", "Amount > 0"),
      ])
    #expect(try run.eye.rows("SELECT * FROM salesforce.opportunity_formulas") == [["a", "3", "t"]])
    #expect(try run.eye.rows("SELECT * FROM public.mine") == [["3"]])
    #expect(
      try run.eye.column(
        "SELECT has_table_privilege('\(role)', 'salesforce.opportunity_formulas', 'SELECT')")
        == ["t"])
    let notes = "SELECT count(*) FROM salesforce._etl_journal WHERE table_name LIKE '%formulas'"
    let before = try run.eye.column(notes)
    try Self.note(
      run,
      [
        Self.formula("First__c", "currency", "Amount + 2"),
        Self.formula("Another__c", "boolean", "Amount > 0"),
      ])
    #expect(try run.eye.column(notes) == before)
    run.notices = []
    // A column whose formula is gone stays without values, so that rights and views do.
    try Self.note(run, [Self.formula("Another__c", "boolean", "Amount > 1")])
    let all = "SELECT * FROM salesforce.opportunity_formulas"
    #expect(try run.eye.rows(all) == [["a", "-", "f"]])
    #expect(try run.eye.rows("SELECT * FROM public.mine") == [["-"]])
    #expect(try Self.states(run) == ["Another__c|translated"])
    try Self.note(run, [Self.formula("Another__c", "boolean", "PRIORVALUE(Amount) > 1")])
    #expect(try run.eye.rows(all) == [["a", "-", "-"]])
    try Self.note(run, [])
    #expect(try run.eye.rows(all) == [["a", "-", "-"]])
    try Self.note(run, [first])
    #expect(try run.eye.rows(all) == [["a", "2", "-"]])
    #expect(
      try run.eye.column(
        "SELECT has_table_privilege('\(role)', 'salesforce.opportunity_formulas', 'SELECT')")
        == ["t"])
    #expect(run.notices == [])
    // Another type needs another view.
    try Self.note(run, [Self.formula("First__c", "string", "TEXT(Amount)")])
    #expect(run.notices.count == 1 && run.notices[0].contains("other views depend on it"))
    try run.eye.execute("DROP VIEW public.mine")
    try Self.note(run, [Self.formula("First__c", "string", "TEXT(Amount) & '!'")])
    #expect(try run.eye.rows("SELECT first__c FROM salesforce.opportunity_formulas") == [["1!"]])
    try run.eye.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test(
    "A view or table of that name that somebody else made stays",
    arguments: ["VIEW", "TABLE", "MATERIALIZED VIEW"])
  func foreign(_ kind: String) async throws {
    let run = try Self.run(try await TestDatabase())
    try run.write(["a"])
    try run.commit()
    try run.eye.execute("CREATE \(kind) salesforce.opportunity_formulas AS SELECT 1 AS mine")
    run.notices = []
    try Self.note(run, [Self.formula("First__c", "currency", "Amount + 1")])
    #expect(try run.eye.rows("SELECT * FROM salesforce.opportunity_formulas") == [["1"]])
    #expect(run.notices.count == 1 && run.notices[0].contains("opportunity_formulas"))
    #expect(
      try Self.states(run) == [
        "First__c|not translated: somebody made another opportunity_formulas"
      ])
  }

  @Test("A view that somebody dropped is made again, with a warning; plan and verify name it")
  func dropped() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    let formula = Self.formula("First__c", "currency", "Amount + 1")
    try Self.note(run, [formula])
    try run.write(["a"]) { _ in [SinkRun.amount: .double(1)] }
    try run.commit()
    let catalog = run.sink.catalog
    let current = try #require(try catalog.currentTable(of: "Opportunity", over: run.eye))
    let views = ReportingViews(schema: "salesforce")
    func leftOut(_ connection: PostgresConnection) throws -> [String]? {
      try FormulaComparison(of: "Opportunity", catalog, horizon: 0, over: connection)?
        .findings(idLimit: 1).leftOut.map(\.reason)
    }
    func statements() throws -> [String] {
      try run.eye.transaction { () throws(PostgresError) in
        try views.formulaStatements(of: current, over: run.eye)
      }
    }
    #expect(try statements() == [])
    #expect(try leftOut(run.eye) == [])
    let role = "auditor_\(database.name)"
    try run.eye.execute(
      """
      CREATE ROLE \(role); GRANT USAGE ON SCHEMA salesforce TO \(role); \
      GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO \(role); \
      REVOKE SELECT ON salesforce.opportunity_formulas FROM \(role); SET ROLE \(role)
      """)
    let reasons = try leftOut(run.eye)
    #expect(reasons?.count == 1 && reasons?[0].contains("GRANT SELECT ON") == true)
    try run.eye.execute(
      "RESET ROLE; DROP OWNED BY \(role); DROP ROLE \(role); DROP VIEW salesforce.opportunity_formulas"
    )
    #expect(try leftOut(run.eye)?.first?.contains("is missing") == true)
    #expect(try statements().first?.contains("opportunity_formulas") == true)
    run.notices = []
    try Self.note(run, [formula, Self.formula("Second__c", "currency", "Amount + 2")])
    #expect(
      run.notices == [
        "postgres: view opportunity_formulas was missing and has been created again; "
          + "grant privileges on it again"
      ])
    #expect(
      try run.eye.rows("SELECT * FROM salesforce.opportunity_formulas") == [["a", "2", "3"]])
  }

  @Test("_fields of an earlier version gets the columns that it lacks") func earlier() async throws
  {
    let run = try Self.run(try await TestDatabase())
    try run.write(["a"])
    try run.commit()
    try Self.note(run, [])
    try run.eye.execute(
      """
      ALTER TABLE salesforce._fields DROP COLUMN scale, DROP COLUMN blank_as_zero, \
      DROP COLUMN formula_state
      """)
    try Self.note(run, [Self.formula("First__c", "currency", "Amount + 1")])
    #expect(try Self.states(run) == ["First__c|translated"])
    #expect(
      try run.eye.column("SELECT blank_as_zero || ' ' || scale FROM salesforce._fields").contains(
        "true 2"))
  }

  @Test("A role that may not create the view says so in _fields, and warns of nothing")
  func rights() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    try run.write(["a"])
    try run.commit()
    try Self.note(run, [])
    let role = "writer_\(database.name)"
    try run.eye.execute(
      """
      CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA salesforce TO \(role); \
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA salesforce TO \(role)
      """)
    let other = try PostgresConnection(
      PostgresConnectionConfiguration(
        url: "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"))
    let formula = Self.formula("First__c", "currency", "Amount + 1")
    try FieldTables(Bookkeeping(schema: "salesforce")).store(
      Self.fields + [formula], of: "Opportunity", over: other)
    let current = try #require(
      try run.sink.catalog.currentTable(of: "Opportunity", over: run.eye))
    let views = ReportingViews(schema: "salesforce")
    let outcome = try other.transaction { () throws(PostgresError) in
      try views.updateFormulas(of: current, over: other)
    }
    #expect(outcome == .unchanged)
    #expect(
      try Self.states(run) == [
        "First__c|not translated: the role may not create view opportunity_formulas"
      ])
    try run.eye.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
  }
}
