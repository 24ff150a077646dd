import Pipeline
import PostgresClient
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Erasing records from tables", .enabled(if: PostgresCluster.isAvailable))
struct ErasingTests {
  private static let (victim, other) = ("006Dp0000004C9hIAE", "006Dp0000004C9iIAE")
  private let owner = LeaseOwner(place: "host /state", identity: "host /state", processID: 8)

  private func table(_ database: TestDatabase, sink: String = "warehouse") throws -> CheckpointTable
  {
    try CheckpointTable(pipeline: "opps", sink: sink, database.configuration())
  }

  private func begin(
    _ database: TestDatabase, _ change: (inout PostgresSinkConfiguration) -> Void = { _ in }
  ) throws -> SinkRun {
    let run = try SinkRun(database, change)
    try run.sink.open(creating: [:])
    try run.write([Self.victim, Self.other])
    try run.write([Self.victim], type: "UPDATE") { _ in [SinkRun.parent: .text("a secret")] }
    try run.commit()
    return run
  }

  private func values(_ run: SinkRun) throws -> [String] {
    try run.eye.column(
      """
      SELECT id || coalesce(name, '-') || coalesce(parent, '-') || (_deleted_at IS NULL)::text \
      FROM salesforce.opportunity UNION ALL \
      SELECT _record_id || coalesce(name, '-') || coalesce(parent, '-') || _commit_user \
      FROM salesforce.opportunity_history ORDER BY 1
      """)
  }

  @Test("Values of the records go, what is known of the events stays, and twice is once")
  func erases() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database)
    let before = try self.values(run).filter { $0.hasPrefix(Self.other) }
    _ = run.sink.close()
    let records = [try RecordID(Self.victim)]
    let table = try self.table(database)
    let planned = try table.erasableRows(records, of: "Opportunity", removesDeleted: false)
    #expect(try table.erasedRecords().isEmpty)
    try table.noteErased(records, of: "Opportunity", owner: self.owner)
    let done = try table.erase(records, of: "Opportunity", removesDeleted: false, owner: self.owner)
    #expect(
      done == planned
        && done == [
          ErasedRows(table: "opportunity", rowCount: 1),
          ErasedRows(table: "opportunity_history", rowCount: 2),
        ])
    let after = try self.values(run)
    #expect(after.filter { $0.hasPrefix(Self.other) } == before)
    #expect(
      after.filter { $0.hasPrefix(Self.victim) }
        == ["\(Self.victim)--005USER", "\(Self.victim)--005USER", "\(Self.victim)--false"])
    #expect(try table.erasedRecords().contains(Self.victim, of: "Opportunity"))
    try table.noteErased(records, of: "Opportunity", owner: self.owner)
    let again = try table.erase(
      records, of: "Opportunity", removesDeleted: false, owner: self.owner)
    #expect(again.allSatisfy { $0.rowCount == 0 })
    #expect(try self.values(run) == after)
    #expect(try table.entities() == ["Opportunity"])
    #expect(try table.keyPrefix(of: "Opportunity") == "006")
  }

  @Test("A rebuild leaves erased records as they are, and a run knows them")
  func rebuild() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database)
    _ = run.sink.close()
    let records = [try RecordID(Self.victim)]
    try self.table(database).noteErased(records, of: "Opportunity", owner: self.owner)
    _ = try self.table(database).erase(
      records, of: "Opportunity", removesDeleted: false, owner: self.owner)
    let after = try self.values(run)
    let catalog = TableCatalog(database.configuration())
    let tables = try #require(try catalog.storedTables(over: run.eye).first)
    let counts = try Refold(history: tables.history, current: tables.current, delete: .mark)
      .refoldAll(over: run.eye)
    #expect(counts == Refold.Counts(checked: 1, changed: 0))
    #expect(try self.values(run) == after)
    let next = try SinkRun(database, ordinal: 3)
    try next.sink.open()
    #expect(try next.sink.erasedRecords().contains(Self.victim, of: "Opportunity"))
    _ = next.sink.close()
  }

  @Test("With \"delete\": \"remove\" the current row goes")
  func removes() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database) { $0.delete = .remove }
    _ = run.sink.close()
    let records = [try RecordID(Self.victim)]
    _ = try self.table(database).erase(
      records, of: "Opportunity", removesDeleted: true, owner: self.owner)
    #expect(try run.eye.column("SELECT id FROM salesforce.opportunity") == [Self.other])
  }

  @Test(
    "While another host runs the pipeline, or another pipeline feeds the tables, nothing is changed"
  )
  func leases() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database)
    let before = try self.values(run)
    let records = [try RecordID(Self.victim)]
    let other = LeaseOwner(place: "elsewhere /state", identity: "b", processID: 2)
    for (table, owner) in [
      (try self.table(database), other), (try self.table(database, sink: "second"), self.owner),
    ] {
      #expect(throws: LeaseError.self) {
        try table.noteErased(records, of: "Opportunity", owner: owner)
      }
      #expect(throws: LeaseError.self) {
        try table.erase(records, of: "Opportunity", removesDeleted: false, owner: owner)
      }
    }
    #expect(try self.values(run) == before)
    #expect(try self.table(database).erasedRecords().isEmpty)
    _ = run.sink.close()
  }

  @Test("Columns that others have added are cleared too, unless they must not be null")
  func addedColumns() async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database)
    _ = run.sink.close()
    try run.eye.execute(
      """
      ALTER TABLE salesforce.opportunity ADD COLUMN note text DEFAULT 'about her', \
      ADD COLUMN tenant integer NOT NULL DEFAULT 4, \
      ADD COLUMN upper text GENERATED ALWAYS AS (upper(name)) STORED
      """)
    let records = [try RecordID(Self.victim)]
    _ = try self.table(database).erase(
      records, of: "Opportunity", removesDeleted: false, owner: self.owner)
    #expect(
      try run.eye.column(
        "SELECT concat_ws(',', note, tenant, upper) FROM salesforce.opportunity ORDER BY id")
        == ["4", "about her,4,\(Self.other.uppercased())"])
  }

  @Test(
    "Values that cannot be cleared end with an error that names the table, and nothing is changed",
    arguments: [
      (
        "ALTER TABLE salesforce.opportunity_history ALTER name SET NOT NULL",
        "ALTER COLUMN name DROP"
      ),
      ("ALTER TABLE salesforce.opportunity ALTER name SET NOT NULL", "\"opportunity\" cannot be"),
      ("ALTER TABLE salesforce.opportunity_history RENAME TO old", "was dropped or renamed"),
      (
        """
        CREATE FUNCTION salesforce.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
        CREATE TRIGGER keep BEFORE UPDATE ON salesforce.opportunity FOR EACH ROW \
        EXECUTE FUNCTION salesforce.keep()
        """, "1 rows of table"
      ),
      (
        """
        ALTER TABLE salesforce.opportunity ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; \
        CREATE POLICY hiding ON salesforce.opportunity USING (false); \
        CREATE ROLE policed LOGIN; GRANT ALL ON SCHEMA salesforce TO policed; \
        GRANT ALL ON ALL TABLES IN SCHEMA salesforce TO policed
        """, "row-level security"
      ),
    ])
  func obstacles(change: String, expected: String) async throws {
    let database = try await TestDatabase()
    let run = try self.begin(database)
    _ = run.sink.close()
    let before = try self.values(run)
    let role = "\(database.name)_policed"
    try run.eye.execute(change.replacing("policed", with: role))
    let isPoliced = change.contains("policed")
    let table = try CheckpointTable(
      pipeline: "opps", sink: "warehouse",
      database.configuration {
        guard isPoliced else { return }
        $0.connection.url =
          "host=127.0.0.1 port=\(database.cluster.port) user=\(role) dbname=\(database.name)"
      })
    let records = [try RecordID(Self.victim)]
    let error = #expect(throws: PostgresError.self) {
      try table.erase(records, of: "Opportunity", removesDeleted: false, owner: self.owner)
    }
    #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
    try run.eye.execute("ALTER TABLE IF EXISTS salesforce.old RENAME TO opportunity_history")
    #expect(try self.values(run) == before)
  }

  @Test("Before the first run, the records are noted, and that is all")
  func nothing() async throws {
    let database = try await TestDatabase()
    let records = [try RecordID(Self.victim)]
    let table = try self.table(database)
    try table.noteErased(records, of: "Opportunity", owner: self.owner)
    #expect(
      try table.erase(records, of: "Opportunity", removesDeleted: false, owner: self.owner) == [])
    #expect(try table.entities() == [])
    #expect(try table.erasedRecords().contains(Self.victim, of: "Opportunity"))
    // The first run finds the schema, and begins as in an empty one.
    let run = try self.begin(database)
    #expect(try run.sink.erasedRecords().count == 1)
    _ = run.sink.close()
  }
}
