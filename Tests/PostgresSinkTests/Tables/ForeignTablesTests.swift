import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite(
  "Tables that somebody else has created or altered", .enabled(if: PostgresCluster.isAvailable))
struct ForeignTablesTests {
  private let sample = CatalogSample()

  @Test("Foreign tables and those of another entity are refused")
  func foreignTables() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    try connection.execute(
      "CREATE SCHEMA salesforce; CREATE TABLE salesforce.opportunity (id text, name text)")
    let catalog = TableCatalog(database.configuration())
    let foreign = postgresError {
      _ = try catalog.tables(for: self.sample.layout(), over: connection)
    }
    #expect(foreign?.disposition == .configuration)
    #expect(foreign?.message.contains("\"opportunity\" exists") ?? false)
    #expect(foreign?.message.contains("_epoch integer") ?? false)
    try connection.execute(
      "DROP TABLE salesforce.opportunity; CREATE VIEW salesforce.opportunity AS SELECT 1")
    let view = postgresError { _ = try catalog.tables(for: self.sample.layout(), over: connection) }
    #expect(view?.message.contains("must be a table but is a view") ?? false)
    let all = TableCatalog(
      database.configuration { $0.tables = .init(current: "all", history: "all_h") })
    _ = try all.tables(for: self.sample.layout(), over: connection)
    let other = postgresError {
      _ = try all.tables(for: .test([Column("A", 0, .string)], entity: "Account"), over: connection)
    }
    #expect(other?.disposition == .configuration)
    #expect(other?.message.contains("rows of Opportunity") ?? false)
    let same = TableCatalog(
      database.configuration { $0.tables = .init(current: "x", history: "x") })
    #expect(
      postgresError { _ = try same.tables(for: self.sample.layout(), over: connection) }?
        .disposition
        == .configuration)
  }

  @Test("Columns that a user has altered are used if they can hold the values")
  func alteredColumns() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    _ = try catalog.tables(for: self.sample.layout(), over: connection)
    for table in ["opportunity", "opportunity_history"] {
      try connection.execute(
        "ALTER TABLE salesforce.\(table) ALTER amount TYPE float8, ALTER stagename TYPE varchar(5), "
          + "ADD mine int")
    }
    let tables = try catalog.tables(for: self.sample.layout(), over: connection)
    #expect(tables.dataColumns.map(\.type) == [.text, .doublePrecision] && tables.changes.isEmpty)
    // A field that comes later finds the user's own column of its name.
    let later = self.sample.layout([Column("Mine", 2, .int32)], schemaID: "schema-2")
    #expect(
      try catalog.tables(for: later, over: connection).dataColumns.map(\.name) == [
        "stagename", "amount", "mine",
      ])
    try connection.execute("ALTER TABLE salesforce.opportunity ALTER amount TYPE numeric")
    let unequal = postgresError {
      _ = try catalog.tables(for: self.sample.layout(), over: connection)
    }
    #expect(
      unequal?.message.contains(
        "double precision in \"salesforce\".\"opportunity_history\" but numeric") ?? false)
    try connection.execute(
      "ALTER TABLE salesforce.opportunity_history ALTER amount TYPE money USING amount::numeric::money"
    )
    try connection.execute("ALTER TABLE salesforce.opportunity ALTER amount TYPE money")
    let unusable = postgresError {
      _ = try catalog.tables(for: self.sample.layout(), over: connection)
    }
    #expect(unusable?.message.contains("is money") ?? false)
    // One that was dropped comes back when its loss is accepted.
    try connection.execute(
      "ALTER TABLE salesforce.opportunity DROP amount; ALTER TABLE salesforce.opportunity_history DROP amount"
    )
    let lost = postgresError { _ = try catalog.tables(for: self.sample.layout(), over: connection) }
    #expect(lost?.disposition == .lostTable)
    catalog.acceptsMissing = true
    #expect(
      try catalog.tables(for: self.sample.layout(), over: connection).dataColumns.map(\.type) == [
        .text, .numeric, .integer,
      ])
  }

  @Test("Tables whose bookkeeping was lost are taken over")
  func adoption() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    _ = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    try connection.execute(
      "DROP TABLE salesforce._etl_table, salesforce._etl_column, salesforce._etl_journal")
    let tables = try TableCatalog(database.configuration()).tables(
      for: self.sample.layout(), over: connection)
    #expect(tables.dataColumns.map(\.name) == ["stagename", "amount"] && tables.changes.isEmpty)
    #expect(try connection.column("SELECT count(*) FROM salesforce._etl_column") == ["4"])
  }
}
