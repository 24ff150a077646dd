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
