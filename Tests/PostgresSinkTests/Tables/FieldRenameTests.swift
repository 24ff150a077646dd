import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Custom fields that get another API name", .enabled(if: PostgresCluster.isAvailable))
struct FieldRenameTests {
  private typealias Field = FieldHistory.Field

  private static let one = "00N000000000001"
  private static let two = "00N000000000002"

  private static func layout(_ number: Int, _ fields: Field...) -> RecordLayout {
    FieldHistory.layout("schema-\(number)", fields)
  }

  @Test(
    "A rename that arrives while a read has noted another schema is followed, and late events are not"
  )
  func renamedDuringRead() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one))
    let new = Self.layout(2, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1")])
    try history.restart()
    history.run.sink.noteCurrent(old)
    for (layout, name, value) in [(new, "B__c", "2"), (old, "A__c", "3"), (new, "B__c", "4")] {
      history.run.sink.noteRecent(layout)
      try history.write("UPDATE", "r", layout, [name: .text(value)])
      #expect(try history.columns() == ["b__c text"])
    }
    #expect(try history.changes() == ["b__c|1|2", "b__c|2|3", "b__c|3|4"])
  }

  @Test("The column is renamed with its values, also in lists, views, earlier states and rebuilds")
  func renamed() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one))
    let new = Self.layout(2, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1")])
    try history.write("UPDATE", "r", old, ["A__c": .text("2")])
    let then = history.time
    try history.run.eye.execute(
      "CREATE VIEW public.mine AS SELECT id, a__c AS mine FROM salesforce.opportunity_live")
    history.run.notices = []
    try history.write("UPDATE", "r", new, ["B__c": .text("3")])
    try history.write("UPDATE", "r", new, ["B__c": .null])
    for table in ["opportunity", "opportunity_history"] {
      #expect(try history.columns(table) == ["b__c text"])
      let notice =
        "column \"a__c\" of \"salesforce\".\"\(table)\" renamed to \"b__c\", because field A__c "
        + "is named B__c now"
      #expect(history.run.notices.contains(notice), "\(history.run.notices)")
    }
    #expect(
      try history.changes() == ["b__c|1|2", "b__c|2|3", "b__c|3|-"])
    let at = "SELECT b__c FROM salesforce.opportunity_at(to_timestamp(\(then / 1000 + 1)))"
    #expect(try history.rows(at) == ["2"])
    #expect(
      try history.rows("SELECT b__c FROM salesforce.opportunity_versions ORDER BY _valid_from")
        == ["1", "2", "3", "-"])
    #expect(try history.rows("SELECT mine FROM public.mine") == ["-"])
    #expect(try history.rebuild() == 0)
    #expect(
      try history.rows(
        "SELECT \"column\", field, state FROM salesforce._columns WHERE field LIKE '%\\_\\_c'")
        == ["b__c|B__c|complete", "b__c|B__c|complete"])
    #expect(
      try history.rows(
        "SELECT detail, schema_id FROM salesforce._etl_journal WHERE action = 'rename_column'")
        == ["a__c to b__c|schema-2", "a__c to b__c|schema-2"])
    #expect(!history.run.notices.contains { $0.contains("lacks new values") })

    // An event of the earlier schema, read again, and the schema of the next run.
    try history.write("UPDATE", "r", old, ["A__c": .text("4")])
    try history.restart()
    history.run.sink.noteCurrent(new)
    try history.write("UPDATE", "r", old, ["A__c": .text("5")])
    try history.write("UPDATE", "r", new, ["B__c": .text("6")])
    #expect(try history.columns() == ["b__c text"])
    #expect(try history.changes().suffix(3) == ["b__c|-|4", "b__c|4|5", "b__c|5|6"])
    #expect(try history.rebuild() == 0)
    // The field gets its first name back, and so the object its first schema.
    try history.restart()
    history.run.sink.noteCurrent(old)
    try history.write("UPDATE", "r", old, ["A__c": .text("7")])
    #expect(try history.columns() == ["a__c text"])
    #expect(try history.changes().first == "a__c|1|2")
    #expect(try history.changes().last == "a__c|6|7")
    #expect(try history.rebuild() == 0)
  }

  @Test("Fields that swap their names keep their values, also those that are nulls")
  func swapped() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one), Field("B__c", Self.two))
    let new = Self.layout(2, Field("B__c", Self.one), Field("A__c", Self.two))
    try history.write("CREATE", "r", old, ["A__c": .text("one"), "B__c": .text("two")])
    try history.write("UPDATE", "r", old, ["A__c": .null])
    let then = history.time
    try history.run.eye.execute(
      "CREATE VIEW public.mine AS SELECT a__c AS one, b__c AS two FROM salesforce.opportunity_live")
    try history.write("UPDATE", "r", new, ["A__c": .null])
    try history.write("UPDATE", "r", new, ["B__c": .text("one")])
    #expect(try history.rows("SELECT one, two FROM public.mine") == ["one|-"])
    #expect(try history.rows("SELECT b__c, a__c FROM salesforce.opportunity_live") == ["one|-"])
    // Late events of the earlier schema.
    try history.write("UPDATE", "r", old, ["A__c": .null])
    try history.write("UPDATE", "r", old, ["B__c": .text("two")])
    #expect(try history.columns() == ["b__c text", "a__c text"])
    #expect(try history.rows("SELECT a__c, b__c FROM salesforce.opportunity") == ["two|-"])
    #expect(
      try history.changes() == [
        "b__c|one|-", "a__c|two|-", "b__c|-|one", "b__c|one|-", "a__c|-|two",
      ])
    let at = "SELECT a__c, b__c FROM salesforce.opportunity_at(to_timestamp(\(then / 1000 + 1)))"
    #expect(try history.rows(at) == ["two|-"])
    #expect(
      try history.rows(
        "SELECT a__c, b__c FROM salesforce.opportunity_versions ORDER BY _valid_from")
        == ["two|one", "two|-", "-|-", "-|one", "-|-", "two|-"])
    #expect(try history.rebuild() == 0)
    #expect(
      try history.rows(
        "SELECT \"column\", field FROM salesforce._columns WHERE table_name = 'opportunity' "
          + "AND field LIKE '%\\_\\_c' ORDER BY 1") == ["a__c|A__c", "b__c|B__c"])
  }

  @Test("Names that go round change places with one name in between")
  func round() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let three = "00N000000000003"
    let old = Self.layout(
      1, Field("A__c", Self.one), Field("B__c", Self.two), Field("C__c", three))
    let new = Self.layout(
      2, Field("B__c", Self.one), Field("C__c", Self.two), Field("A__c", three))
    try history.write(
      "CREATE", "r", old, ["A__c": .text("1"), "B__c": .text("2"), "C__c": .text("3")])
    try history.write("UPDATE", "r", old, ["C__c": .null])
    try history.write("UPDATE", "r", new, ["B__c": .text("4")])
    #expect(try history.columns() == ["b__c text", "c__c text", "a__c text"])
    #expect(try history.rows("SELECT a__c, b__c, c__c FROM salesforce.opportunity") == ["-|4|2"])
    #expect(try history.changes() == ["a__c|3|-", "b__c|1|4"])
    #expect(try history.rebuild() == 0)
    let renames = try history.rows(
      "SELECT detail FROM salesforce._etl_journal WHERE action = 'rename_column' "
        + "AND table_name = 'opportunity' ORDER BY id")
    #expect(renames.count == 4, "\(renames)")
  }

  @Test("A new field with the name of a deleted one gets a column of its own")
  func reused() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one), Field("B__c", nil))
    let new = Self.layout(2, Field("B__c", nil), Field("A__c", Self.two))
    try history.write("CREATE", "r", old, ["A__c": .text("old")])
    try history.write("UPDATE", "r", old, ["A__c": .null])
    try history.write("UPDATE", "r", old, ["A__c": .text("last")])
    let then = history.time
    try history.run.eye.execute(
      "CREATE VIEW public.mine AS SELECT id, a__c FROM salesforce.opportunity_live")
    history.run.notices = []
    try history.write("UPDATE", "r", new, ["A__c": .text("new")])
    try history.write("UPDATE", "r", new, ["A__c": .null])
    #expect(try history.columns() == ["a__c__text text", "b__c text", "a__c text"])
    #expect(try history.rows("SELECT a__c__text, a__c FROM salesforce.opportunity") == ["last|-"])
    #expect(
      try history.changes() == [
        "a__c__text|old|-", "a__c__text|-|last", "a__c|-|new", "a__c|new|-",
      ])
    let at =
      "SELECT a__c__text, a__c FROM salesforce.opportunity_at(to_timestamp(\(then / 1000 + 1)))"
    #expect(try history.rows(at) == ["last|-"])
    #expect(try history.rebuild() == 0)
    #expect(
      try history.rows(
        "SELECT \"column\", field, state FROM salesforce._columns "
          + "WHERE table_name = 'opportunity' AND field LIKE 'A\\_\\_c%' ORDER BY 1")
        == ["a__c|A__c|filling", "a__c__text|A__c (\(Self.one))|gone since"])
    let warning =
      "view public.mine reads column \"a__c__text\" of \"salesforce\".\"opportunity_live\", which has "
      + "the values of a deleted field; the field that is named A__c now has column \"a__c\""
    #expect(history.run.notices.count { $0.contains(warning) } == 1, "\(history.run.notices)")
    try history.restart()
    #expect(history.run.notices.count { $0.contains(warning) } == 1, "\(history.run.notices)")
    try history.run.eye.execute("DROP VIEW public.mine")
    // A late event of the deleted field.
    try history.write("UPDATE", "r", old, ["A__c": .text("late")])
    #expect(try history.rows("SELECT a__c__text, a__c FROM salesforce.opportunity") == ["late|-"])
    #expect(try history.changes().last == "a__c__text|last|late")
    #expect(try history.rebuild() == 0)
  }

  @Test("A field gets the name of one that was deleted, and another type")
  func renamedAndConverted() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one, .double), Field("B__c", Self.two))
    let less = Self.layout(2, Field("A__c", Self.one, .double))
    let new = Self.layout(3, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .double(1), "B__c": .text("deleted")])
    try history.write("UPDATE", "r", less, ["A__c": .double(2)])
    try history.write("UPDATE", "r", new, ["B__c": .text("3")])
    #expect(
      try history.columns()
        == ["b__c__float8 double precision", "b__c__text text", "b__c text"])
    #expect(
      try history.rows("SELECT b__c__float8, b__c__text, b__c FROM salesforce.opportunity")
        == ["2|deleted|3"])
    #expect(try history.changes() == ["b__c|1|2", "b__c|2|3"])
    try history.write("UPDATE", "r", less, ["A__c": .double(4)])
    #expect(try history.changes().last == "b__c|3|4")
    #expect(try history.rebuild() == 0)
    // The next name reaches the column of the earlier type as well.
    try history.write("UPDATE", "r", Self.layout(4, Field("C__c", Self.one)), ["C__c": .text("5")])
    #expect(try history.changes().last == "c__c|4|5")
    #expect(
      try history.rows(
        "SELECT \"column\", field FROM salesforce._columns WHERE table_name = 'opportunity' "
          + "AND field LIKE '%\\_\\_c%' ORDER BY 1") == [
          "b__c__float8|C__c", "b__c__text|B__c (\(Self.two))", "c__c|C__c",
        ])
    #expect(try history.rebuild() == 0)
  }

  @Test("Tables of an earlier version learn the IDs where names match, and guess nothing")
  func learned() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let unknown = Self.layout(1, Field("A__c", nil), Field("B__c", nil))
    try history.write("CREATE", "r", unknown, ["A__c": .text("1"), "B__c": .text("2")])
    try history.run.eye.execute("ALTER TABLE salesforce._etl_column DROP COLUMN field_id")
    try history.restart()
    let known = Self.layout(2, Field("A__c", Self.one), Field("C__c", Self.two))
    try history.write("UPDATE", "r", known, ["A__c": .text("3"), "C__c": .text("4")])
    #expect(try history.columns() == ["a__c text", "b__c text", "c__c text"])
    let ids =
      "SELECT column_name, field_id FROM salesforce._etl_column "
      + "WHERE table_name = 'opportunity' AND path LIKE '%\\_\\_c' ORDER BY ordinal"
    #expect(
      try history.rows(ids) == ["a__c|\(Self.one)", "b__c|-", "c__c|\(Self.two)"])
    let renamed = Self.layout(3, Field("D__c", Self.one), Field("C__c", Self.two))
    try history.write("UPDATE", "r", renamed, ["D__c": .text("5")])
    #expect(try history.columns() == ["d__c text", "b__c text", "c__c text"])
    #expect(try history.rebuild() == 0)
  }

  @Test("An ID that two fields of a schema have identifies neither")
  func ambiguous() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one), Field("B__c", Self.one))
    let new = Self.layout(2, Field("C__c", Self.one), Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1"), "B__c": .text("2")])
    try history.write("UPDATE", "r", new, ["B__c": .text("3"), "C__c": .text("4")])
    #expect(try history.columns() == ["a__c text", "b__c text", "c__c text"])
    #expect(try history.rows("SELECT a__c, b__c, c__c FROM salesforce.opportunity") == ["1|3|4"])
  }

  @Test(
    "Views on earlier states keep working under the old name, and are named by each run and status")
  func readersOfStates() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one))
    let new = Self.layout(2, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1")])
    try history.run.eye.execute(
      """
      CREATE SCHEMA reporting;
      CREATE VIEW reporting.states AS SELECT id, a__c FROM salesforce.opportunity_versions;
      CREATE VIEW reporting.now AS SELECT id, a__c FROM salesforce.opportunity_at('infinity')
      """)
    try history.write("UPDATE", "r", new, ["B__c": .text("2")])
    let message =
      "view \"salesforce\".\"opportunity_versions\" and the function \"opportunity_at\" cannot get "
      + "the columns of their table, because other views depend on them: reporting.now, "
      + "reporting.states. Drop these"
    #expect(history.run.notices.contains { $0.contains(message) }, "\(history.run.notices)")
    for view in ["states", "now"] {
      #expect(try history.rows("SELECT a__c FROM reporting.\(view)").last == "2")
    }
    try history.restart()
    #expect(history.run.notices.count { $0.contains(message) } == 1, "\(history.run.notices)")
    let feeder = TableFeeder(pipeline: "opps", sink: "warehouse", topics: [SinkRun.topic])
    let catalog = TableCatalog(history.database.configuration(), feeder: feeder)
    let findings = try catalog.survey(over: history.run.eye)
    #expect(findings.map(\.kind) == [.outdatedReader])
    #expect(findings.first?.message.contains(message) == true)
    try history.run.eye.execute("DROP VIEW reporting.states, reporting.now")
    try history.restart()
    #expect(history.run.notices == [])
    try history.write("UPDATE", "r", new, ["B__c": .text("3")])
    #expect(
      try history.rows("SELECT b__c FROM salesforce.opportunity_versions ORDER BY _valid_from")
        == ["1", "2", "3"])
    #expect(try catalog.survey(over: history.run.eye) == [])
  }

  @Test("A renamed compound remains one, whether or not it is flattened")
  func compounds() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    let first = MetadataSlot.count
    func layout(_ schemaID: String, _ name: String) -> RecordLayout {
      var record = Column(
        name: name, path: [name],
        content: .record(slot: first, scalar: nil, children: [Column("City", 1, .string)]))
      record.fieldID = Self.one
      var part = Column(
        name: "\(name)_Latitude", path: [name, "Latitude"], content: .slot(first + 2, .double))
      part.fieldID = "\(Self.two).Latitude"
      return .test([record, part], schemaID: schemaID, slotCount: first + 3)
    }
    _ = try catalog.tables(for: layout("schema-1", "Old__c"), over: connection)
    let tables = try catalog.tables(for: layout("schema-2", "New__c"), over: connection)
    #expect(tables.dataColumns.map(\.name) == ["new__c", "new__c_latitude"])
    #expect(tables.dataColumns.map(\.path) == ["New__c", "New__c.Latitude"])
    #expect(tables.dataColumns.map(\.isCompound) == [true, false])
    #expect(
      try TableCatalog(database.configuration()).storedTables(over: connection).first?.current
        == tables.current)
  }

  @Test("freeze ends the run with the statements to run, and discard keeps the old name")
  func contracts() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one))
    let new = Self.layout(2, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1")])
    try history.restart { $0.contract = .discard }
    try history.write("UPDATE", "r", new, ["B__c": .text("2")])
    #expect(try history.columns() == ["a__c text"])
    #expect(try history.changes() == ["a__c|1|2"])
    #expect(try history.rebuild() == 0)

    let third = Self.layout(3, Field("C__c", Self.one))
    try history.restart { $0.contract = .freeze }
    let error = postgresError { _ = try history.run.sink.makeReady(for: third) }
    #expect(error?.disposition == .contract)
    #expect(
      error?.message.contains(
        "column \"a__c\" renamed to \"c__c\", because field A__c is named C__c now") == true,
      "\(String(describing: error))")
    let plan = try TableCatalog.plan(
      [third], history.database.configuration { $0.contract = .freeze })
    #expect(plan.sql.contains("RENAME COLUMN \"a__c\" TO \"c__c\""))
    #expect(plan.outdatedViews == [])
    try history.run.eye.execute(plan.sql)
    try history.restart { $0.contract = .freeze }
    try history.write("UPDATE", "r", third, ["C__c": .text("3")])
    #expect(try history.changes() == ["c__c|1|2", "c__c|2|3"])
    #expect(
      try TableCatalog.plan([third], history.database.configuration { $0.contract = .freeze }).sql
        == "")
  }

  @Test("A column that somebody made keeps its name, and so does the field's; each run warns")
  func taken() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let old = Self.layout(1, Field("A__c", Self.one))
    let new = Self.layout(2, Field("B__c", Self.one))
    try history.write("CREATE", "r", old, ["A__c": .text("1")])
    try history.run.eye.execute("ALTER TABLE salesforce.opportunity ADD COLUMN b__c text")
    try history.restart()
    try history.write("UPDATE", "r", new, ["B__c": .text("2")])
    #expect(try history.rows("SELECT a__c, b__c FROM salesforce.opportunity") == ["2|-"])
    let warning = "keeps the name \"a__c\", because somebody made a column \"b__c\""
    #expect(history.run.notices.contains { $0.contains(warning) }, "\(history.run.notices)")
    try history.run.eye.execute("ALTER TABLE salesforce.opportunity DROP COLUMN b__c")
    try history.restart()
    history.run.sink.noteCurrent(new)
    try history.write("UPDATE", "r", new, ["B__c": .text("3")])
    #expect(try history.rows("SELECT b__c FROM salesforce.opportunity") == ["3"])
    #expect(try history.changes() == ["b__c|1|2", "b__c|2|3"])
    #expect(try history.rebuild() == 0)
  }

  @Test("The comment of a column says since when its field is gone")
  func gone() async throws {
    let history = try FieldHistory(try await TestDatabase())
    let all = Self.layout(1, Field("A__c", Self.one), Field("B__c", Self.two))
    try history.write("CREATE", "r", all, ["A__c": .text("1")])
    try history.run.eye.execute(
      "COMMENT ON COLUMN salesforce.opportunity.a__c IS 'Ours, not theirs'")
    let comments = """
      SELECT col_description('salesforce.opportunity'::regclass, attnum) FROM pg_attribute \
      WHERE attrelid = 'salesforce.opportunity'::regclass AND attname IN ('a__c', 'b__c') ORDER BY attname
      """
    try history.write("UPDATE", "r", Self.layout(2), [:])
    let today = try history.run.eye.column(
      "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')")[0]
    #expect(
      try history.rows(comments) == [
        "Ours, not theirs, gone since \(today)", "gone since \(today)",
      ])
    // A gone column of an earlier version.
    try history.run.eye.execute("COMMENT ON COLUMN salesforce.opportunity.b__c IS NULL")
    try history.restart()
    history.run.sink.noteCurrent(Self.layout(2))
    try history.write("UPDATE", "r", Self.layout(2), [:])
    #expect(try history.rows(comments).last == "gone since \(today)")
    try history.write("UPDATE", "r", all, ["A__c": .text("2")])
    #expect(try history.rows(comments) == ["Ours, not theirs", "-"])
  }
}
