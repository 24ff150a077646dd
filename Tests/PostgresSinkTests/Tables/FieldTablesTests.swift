import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Tables of fields and choices", .enabled(if: PostgresCluster.isAvailable))
struct FieldTablesTests {
  private static let amount = FieldDescription(name: "Amount", label: "Amount", type: "currency")
  private static let stage = FieldDescription(
    name: "StageName", label: "Stage", type: "picklist", length: 255,
    helpText: "Where the \"deal\" is;\nask Ö'Brien \\ the team",
    choices: [
      FieldDescription.Choice(value: "New", label: "New deal", isActive: true, isDefault: true),
      FieldDescription.Choice(value: "Old, {x}", label: "Old", isActive: false, isDefault: false),
    ])
  private static let owner = FieldDescription(
    name: "OwnerId", label: "Owner", type: "reference", length: 18,
    references: ["User", "Group"], formula: nil)

  private static func fields(_ run: SinkRun, _ columns: String) throws -> [String] {
    try run.eye.column(
      "SELECT concat_ws('|', \(columns)) FROM salesforce._fields ORDER BY entity, field")
  }

  private static func choices(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT concat_ws('|', field, value, label, is_active, is_default, position) \
      FROM salesforce._picklist ORDER BY entity, field, position
      """)
  }

  private static func run(_ database: TestDatabase, url: String? = nil) throws -> SinkRun {
    let run = try SinkRun(database, url: url) {
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }
    try run.sink.open(creating: [:])
    return run
  }

  @Test("A row for each field and choice, which stays as it is until the org changes it")
  func contents() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    try run.sink.noteDescriptions([Self.stage, Self.amount, Self.owner], of: "Opportunity")
    try run.sink.noteDescriptions([Self.amount], of: "Asset")
    #expect(
      try Self.fields(run, "entity, field, label, type, length, reference_to, help_text") == [
        "Asset|Amount|Amount|currency", "Opportunity|Amount|Amount|currency",
        "Opportunity|OwnerId|Owner|reference|18|{User,Group}",
        "Opportunity|StageName|Stage|picklist|255|\(Self.stage.helpText ?? "")",
      ])
    #expect(
      try Self.choices(run) == ["StageName|New|New deal|t|t|1", "StageName|Old, {x}|Old|f|f|2"])

    let before = try Self.fields(run, "entity, field, changed_at")
    var stage = Self.stage
    stage.label = "Phase"
    stage.choices = [stage.choices[1], stage.choices[0]]
    // The org lists a value twice, which no honest one does.
    stage.choices.append(stage.choices[0])
    try run.sink.noteDescriptions([stage, Self.owner], of: "Opportunity")
    #expect(
      try Self.fields(run, "entity, field, label") == [
        "Asset|Amount|Amount", "Opportunity|OwnerId|Owner", "Opportunity|StageName|Phase",
      ])
    let after = try Self.fields(run, "entity, field, changed_at")
    #expect(after[0] == before[0] && after[1] == before[2] && after[2] != before[3])
    #expect(try Self.choices(run).contains("StageName|New|New deal|t|t|2"))
    #expect(run.notices.isEmpty)
  }

  /// The comments of the columns that have one, by relation.
  private static func comments(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT c.relname || '.' || a.attname || '|' || col_description(c.oid, a.attnum) \
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid \
      WHERE c.relnamespace = 'salesforce'::regnamespace AND c.relname LIKE 'opportunity%' \
      AND col_description(c.oid, a.attnum) IS NOT NULL ORDER BY 1
      """)
  }

  @Test("Comments of columns have labels and the tables of references, and change with them alone")
  func comments() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    let parent = FieldDescription(
      name: "Parent", label: "Mother's \"co\", gone since 2026-01-01", type: "reference",
      references: ["Group", "Opportunity", "Queue", "User", "Lead"])
    let name = FieldDescription(name: "Name", label: "Deal", type: "string")
    // The tables do not exist yet.
    try run.sink.noteDescriptions([name, parent, Self.stage], of: "Opportunity")
    try run.write(["1"])
    try run.commit()
    let parentComment =
      "Mother's \"co\", gone since 2026-01-01: refers to Opportunity (table opportunity), Group, "
      + "Queue and 2 other objects [Parent]"
    let relations = ["opportunity", "opportunity_history", "opportunity_live"]
    let expected = relations.flatMap {
      ["\($0).name|Deal [Name]", "\($0).parent|\(parentComment)"]
    }
    #expect(try Self.comments(run) == expected)

    // One of them is somebody's own, another says that the field is gone.
    try run.eye.execute(
      """
      COMMENT ON COLUMN salesforce.opportunity.name IS 'Ours, not theirs';
      COMMENT ON COLUMN salesforce.opportunity.parent IS 'Parent [Parent], gone since 2026-02-17'
      """)
    let ddl = try Self.countDDL(run)
    var renamed = parent
    (renamed.label, renamed.references) = ("Mother", ["Opportunity"])
    try run.sink.noteDescriptions([name, renamed], of: "Opportunity")
    let reference = "Mother: refers to Opportunity (table opportunity) [Parent]"
    #expect(
      try Self.comments(run) == [
        "opportunity.name|Ours, not theirs",
        "opportunity.parent|\(reference), gone since 2026-02-17",
        "opportunity_history.name|Deal [Name]", "opportunity_history.parent|\(reference)",
        "opportunity_live.name|Deal [Name]", "opportunity_live.parent|\(reference)",
      ])
    #expect(try ddl() == 3)
    try run.sink.noteDescriptions([name, renamed], of: "Opportunity")
    try run.write(["2"])
    try run.commit()
    #expect(try ddl() == 3)
    #expect(run.notices.allSatisfy { !$0.contains("comment") })
  }

  /// - Returns: a function that counts the comments set since.
  private static func countDDL(_ run: SinkRun) throws -> () throws -> Int {
    try run.eye.execute(
      """
      CREATE TABLE public.ddl (tag text);
      CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS \
      'BEGIN INSERT INTO public.ddl VALUES (tg_tag); END';
      CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('COMMENT') \
      EXECUTE FUNCTION public.note()
      """)
    return { Int(try run.eye.column("SELECT count(*) FROM public.ddl")[0]) ?? -1 }
  }

  @Test("With contract freeze, and where another role owns the tables, comments stay")
  func frozenComments() async throws {
    let database = try await TestDatabase()
    let first = try Self.run(database)
    try first.write(["1"])
    try first.commit()
    let before = try Self.comments(first)
    let frozen = try SinkRun(database, takesOver: true, ordinal: first.ordinal) {
      $0.contract = .freeze
      $0.reads = PostgresSinkConfiguration.Reads(visibilityWait: .seconds(60))
    }
    try frozen.sink.open(creating: [:])
    let name = FieldDescription(name: "Name", label: "Deal", type: "string")
    try frozen.sink.noteDescriptions([name], of: "Opportunity")
    #expect(try Self.comments(first) == before)

    let role = "writer_\(database.name)"
    try first.eye.execute(
      "CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA salesforce TO \(role);"
        + " GRANT SELECT ON ALL TABLES IN SCHEMA salesforce TO \(role)")
    let other = try PostgresConnection(
      PostgresConnectionConfiguration(
        url: "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"))
    let comments = FieldComments([name], Bookkeeping(schema: "salesforce"))
    try comments.update(["opportunity", "opportunity_history"], over: other)
    #expect(try Self.comments(first) == before)
    try comments.update(["opportunity"], over: first.eye)
    #expect(try Self.comments(first).contains("opportunity.name|Deal [Name]"))
  }

  @Test("Tables of these names that somebody else made stay, and end no run")
  func foreign() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    try run.eye.execute("CREATE TABLE salesforce._fields (mine text)")
    try run.sink.noteDescriptions([Self.stage], of: "Opportunity")
    #expect(run.notices.count == 1 && run.notices[0].contains("_fields and _picklist"))
    #expect(try run.eye.column("SELECT to_regclass('salesforce._picklist')") == ["-"])
    try run.write(["1"])
    try run.commit()
  }

  @Test("A table that somebody else has locked is updated by a later run")
  func locked() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    try run.sink.noteDescriptions([Self.stage], of: "Opportunity")
    try run.eye.execute("BEGIN; LOCK TABLE salesforce._fields")
    try run.sink.noteDescriptions([Self.amount], of: "Opportunity")
    try run.eye.execute("COMMIT")
    #expect(try Self.fields(run, "field") == ["StageName"])
    #expect(run.notices.count == 1)
    try run.sink.noteDescriptions([Self.amount], of: "Opportunity")
    #expect(try Self.fields(run, "field") == ["Amount"])
  }

  @Test("A role that may not create or change the tables does without them")
  func rights() async throws {
    let database = try await TestDatabase()
    let run = try Self.run(database)
    let role = "reader_\(database.name)"
    try run.eye.execute("CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA salesforce TO \(role)")
    let other = try PostgresConnection(
      PostgresConnectionConfiguration(
        url: "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"))
    let tables = FieldTables(Bookkeeping(schema: "salesforce"))
    try tables.store([Self.stage], of: "Opportunity", over: other)
    try tables.store([Self.stage], of: "Opportunity", over: run.eye)
    try tables.store([Self.amount], of: "Opportunity", over: other)
    #expect(try Self.fields(run, "field") == ["StageName"])
  }
}
