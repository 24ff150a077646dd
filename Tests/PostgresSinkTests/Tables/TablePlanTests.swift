import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Plans for tables", .enabled(if: PostgresCluster.isAvailable))
struct TablePlanTests {
  private let layout = RecordLayout.test([
    Column("StageName", 0, .string), Column("Amount", 1, .double),
  ])
  private let wider = RecordLayout.test(
    [Column("StageName", 0, .string), Column("New__c", 1, .boolean)], schemaID: "schema-2")

  @Test("An executed plan leaves nothing to do, views included")
  func complete() async throws {
    let database = try await TestDatabase()
    let configuration = database.configuration()
    let connection = try database.connect()
    for layouts in [[self.layout], [self.layout, self.wider]] {
      let plan = try TableCatalog.plan(layouts, configuration)
      #expect(plan.refusals == [] && plan.discarded == [:])
      #expect(plan.sql.contains("VIEW \"salesforce\".\"opportunity_live\""))
      #expect(try TableCatalog.plan(layouts, configuration) == plan)
      try connection.execute(plan.sql)
      #expect(try TableCatalog.plan(layouts, configuration).sql == "")
    }
    let tables = try TableCatalog(configuration).tables(for: self.wider, over: connection)
    #expect(tables.changes == [])
    let views = ReportingViews(schema: "salesforce")
    try connection.transaction { () throws(PostgresError) in
      #expect(try views.updateFreshness(over: connection) == .unchanged)
    }
  }

  @Test("The plan reports what freeze refuses and discard leaves out")
  func contracts() async throws {
    let database = try await TestDatabase()
    try database.connect().execute(
      TableCatalog.plan([self.layout], database.configuration()).sql)
    let frozen = try TableCatalog.plan(
      [self.wider], database.configuration { $0.contract = .freeze })
    #expect(frozen.refusals.count == 1)
    #expect(frozen.sql.contains("ADD COLUMN \"new__c\" boolean"))
    let discarding = try TableCatalog.plan(
      [self.wider], database.configuration { $0.contract = .discard })
    #expect(discarding.discarded == ["Opportunity": ["New__c"]])
    #expect(!discarding.sql.contains("new__c"))
  }

  @Test("Tables are read back as the run has them, and other tables are ignored")
  func stored() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    let catalog = TableCatalog(database.configuration())
    #expect(try catalog.storedTables(over: connection) == [])
    _ = try catalog.tables(for: self.layout, over: connection)
    let made = try catalog.tables(for: self.wider, over: connection)
    let stored = try catalog.storedTables(over: connection)
    #expect(stored.map(\.entity) == ["Opportunity"])
    #expect(stored.first?.history == made.history && stored.first?.current == made.current)
    let other = TableCatalog(database.configuration { $0.tables.current = "{entity}_now" })
    #expect(try other.storedTables(over: connection) == [])
  }
}
