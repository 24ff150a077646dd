import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Views of a restored database", .enabled(if: PostgresCluster.isAvailable))
struct RestoredViewsTests {
  private static let wider = SinkRun.layout(schemaID: "schema-2", [Column("Note__c", 3, .string)])

  private static func write(_ run: SinkRun) throws {
    try run.sink.open()
    try run.write(["later"], layout: Self.wider) { _ in [MetadataSlot.count + 3: .text("a note")] }
    try run.commit()
  }

  @Test("They get new columns; a view that somebody else made stays as it is")
  func restored() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    first.sink.close()
    let copy = try TestDatabase(restored: database)
    let run = try SinkRun(copy, ordinal: first.ordinal)
    try run.eye.execute(
      """
      DROP VIEW salesforce.opportunity_changes; \
      CREATE VIEW salesforce.opportunity_changes AS SELECT 'mine' AS owner
      """)
    try Self.write(run)
    #expect(
      try run.eye.rows("SELECT id, note__c FROM salesforce.opportunity_versions ORDER BY id") == [
        ["first", "-"], ["later", "a note"],
      ])
    #expect(
      try run.eye.column("SELECT note__c FROM salesforce.opportunity_at(now()) WHERE id = 'later'")
        == ["a note"])
    #expect(try run.eye.column("SELECT owner FROM salesforce.opportunity_changes") == ["mine"])
    let warned = run.notices.filter { $0.contains("somebody made a view") }
    #expect(warned.count == 1 && warned[0].contains("opportunity_changes"), "\(run.notices)")
  }

  @Test("A view that somebody changed without a restore stays as it is")
  func changed() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    first.sink.close()
    let run = try SinkRun(database, ordinal: first.ordinal)
    let definition = try run.eye.column(
      "SELECT pg_get_viewdef('salesforce.opportunity_versions'::regclass)")[0]
    try run.eye.execute(
      """
      CREATE OR REPLACE VIEW salesforce.opportunity_versions AS \
      SELECT * FROM (\(definition.replacing(";", with: ""))) AS v WHERE false
      """)
    try Self.write(run)
    #expect(try run.eye.rows("SELECT * FROM salesforce.opportunity_versions") == [])
    #expect(run.notices.contains { $0.contains("view opportunity_versions is not created") })
  }
}
