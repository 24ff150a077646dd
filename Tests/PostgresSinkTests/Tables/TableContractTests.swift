import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Contracts of tables", .enabled(if: PostgresCluster.isAvailable))
struct TableContractTests {
  private let sample = CatalogSample()

  @Test("evolve adds columns at the end, in both tables, and keeps those that a schema lacks")
  func evolves() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    _ = try catalog.tables(for: self.sample.layout(), over: connection)
    let wider = RecordLayout.test(
      [
        Column("New__c", 0, .date(.milliseconds), salesforceType: "Data:DateOnly"),
        self.sample.amount,
      ],
      schemaID: "schema-2")
    let tables = try catalog.tables(for: wider, over: connection)
    #expect(tables.dataColumns.map(\.name) == ["stagename", "amount", "new__c"])
    #expect(tables.columnIndices == [2, 1] && tables.changes.count == 2)
    #expect(
      try self.sample.columns("salesforce.opportunity", connection).suffix(3)
        == ["stagename text", "amount numeric", "new__c date"])
    #expect(
      try connection.rows(
        "SELECT table_name, action, schema_id FROM salesforce._etl_journal WHERE action = 'add_column' ORDER BY id"
      )
        == [
          ["opportunity_history", "add_column", "schema-2"],
          ["opportunity", "add_column", "schema-2"],
        ])
    let again = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    #expect(again.dataColumns.map(\.name) == ["stagename", "amount", "new__c"])
    #expect(again.columnIndices == [0, 1])
  }

  @Test("freeze reports missing columns and changes nothing")
  func freezes() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let frozen = TableCatalog(database.configuration { $0.contract = .freeze })
    let missing = postgresError {
      _ = try frozen.tables(for: self.sample.layout(), over: connection)
    }
    #expect(missing?.disposition == .contract)
    #expect(missing?.message.contains("table \"salesforce\".\"opportunity\"") ?? false)
    _ = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    #expect(try frozen.tables(for: self.sample.layout(), over: connection).columnIndices == [0, 1])
    let wider = self.sample.layout([Column("New__c", 2, .boolean)], schemaID: "schema-2")
    let error = postgresError { _ = try frozen.tables(for: wider, over: connection) }
    #expect(error?.disposition == .contract)
    #expect(
      error?.message.contains("\"new__c\" boolean in \"salesforce\".\"opportunity_history\"")
        ?? false)
    let other = RecordLayout.test([Column("StageName", 0, .double)], schemaID: "schema-3")
    let changed = postgresError { _ = try frozen.tables(for: other, over: connection) }
    #expect(changed?.message.contains("\"stagename\" as double precision") ?? false)
    #expect(try self.sample.columns("salesforce.opportunity", connection).count == 3)
    // What the plan prints is what is missing.
    try connection.execute(frozen.plan([wider], over: connection).sql)
    #expect(try frozen.tables(for: wider, over: connection).columnIndices == [0, 1, 2])
  }

  @Test("discard leaves out columns that the tables lack and reports them once")
  func discards() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration { $0.contract = .discard })
    #expect(
      try catalog.tables(for: self.sample.layout(), over: connection).columnIndices == [0, 1])
    let other = RecordLayout.test(
      [Column("New__c", 0, .boolean), self.sample.amount, Column("StageName", 2, .double)],
      schemaID: "schema-2")
    let tables = try catalog.tables(for: other, over: connection)
    #expect(tables.columnIndices == [nil, 1, nil] && tables.discarded == ["New__c", "StageName"])
    #expect(try catalog.tables(for: other, over: connection).discarded.isEmpty)
    let batch = RecordBatch(layout: other)
    batch.addChange(
      "CREATE", "006A", ordinal: 0,
      metadata: [MetadataSlot.changedFields: .slots([16, 17, 18])],
      [16: .integer(1), 17: .double(2.5), 18: .double(1)])
    var buffer = RowBuffer(columnCount: tables.dataColumns.count)
    try CopyEncoder(layout: other, tables: tables).append(event: 0, of: batch, to: &buffer)
    try buffer.copy(to: #require(tables.history), over: connection)
    #expect(
      try connection.rows(
        "SELECT _changed_fields, stagename, amount FROM salesforce.opportunity_history")
        == [["{amount}", "-", "2.5"]])
  }
}
