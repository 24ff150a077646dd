import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Positions in a database", .enabled(if: PostgresCluster.isAvailable))
struct CheckpointTableTests {
  private static let topic = "/data/OpportunityChangeEvent"
  private static let begun = TopicPosition(beginningEpoch: 4, start: .earliest)
  private let here = LeaseOwner(place: "here /state", identity: "a", processID: 1)

  private func checkpoint(_ database: TestDatabase, owner: LeaseOwner) -> PostgresCheckpoint {
    PostgresCheckpoint(
      pipeline: "opps", sink: "warehouse", org: "00D", owner: owner,
      bookkeeping: Bookkeeping(schema: database.configuration().schema))
  }

  private func positions(_ database: TestDatabase) throws -> CheckpointTable {
    try CheckpointTable(pipeline: "opps", sink: "warehouse", database.configuration())
  }

  @Test("A database without tables or without the sink has no positions")
  func nothing() async throws {
    let database = try await TestDatabase()
    #expect(try self.positions(database).read() == nil)
    #expect(try self.positions(database).freshness().isEmpty)
    try TableCatalog(database.configuration()).prepare(over: database.connect())
    #expect(try self.positions(database).read() == nil)
  }

  @Test("Setting a position ends the run in progress, and nothing changes before the commit")
  func fences() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    try TableCatalog(database.configuration()).prepare(over: connection)
    var run = self.checkpoint(database, owner: self.here)
    _ = try run.acquire(over: connection, takesOver: false, creating: [Self.topic: Self.begun])
    let stored = try self.positions(database)
    let state = try #require(try stored.read())
    #expect(state.isLeased && state.owner == "here /state pid 1 id a")
    let other = LeaseOwner(place: "there /state", identity: "b", processID: 2)
    #expect(throws: LeaseError.self) {
      try stored.set([Self.topic: Self.begun], expecting: state, owner: other, command: "c")
    }
    let new = TopicPosition(beginningEpoch: 5, start: .latest)
    try stored.set([Self.topic: new], expecting: state, owner: self.here, command: "c")
    #expect(try self.positions(database).read() == state)
    try stored.commit()
    let changed = try #require(try stored.read())
    #expect(changed.positions == [Self.topic: new])
    #expect(changed.fence == state.fence + 1 && !changed.isLeased)
    try connection.begin()
    #expect(throws: LeaseError.self) {
      try run.store(topics: "{}", completeThrough: nil, over: connection)
    }
    try connection.execute("ROLLBACK")
    // Whoever has looked before sets nothing.
    #expect(throws: LeaseError.self) {
      try stored.set([Self.topic: Self.begun], expecting: state, owner: self.here, command: "c")
    }
    #expect(try stored.read() == changed)
  }

  @Test("An impossible fence is damage, and infinite times are read as the last time")
  func absurdNumbers() async throws {
    let database = try await TestDatabase()
    let connection = try database.connect()
    try TableCatalog(database.configuration()).prepare(over: connection)
    var run = self.checkpoint(database, owner: self.here)
    _ = try run.acquire(over: connection, takesOver: false, creating: [Self.topic: Self.begun])
    let table = "\(database.configuration().schema)._etl_checkpoint"
    try connection.execute(
      "UPDATE \(table) SET committed_at = 'infinity', complete_through = '-infinity'")
    let state = try #require(try self.positions(database).read())
    #expect(state.committedAt == 253_402_214_400_000)
    #expect(state.completeThrough == -62_135_596_800_000)
    try connection.execute("UPDATE \(table) SET fence = 9223372036854775807")
    var next = self.checkpoint(database, owner: self.here)
    let error = #expect(throws: PostgresError.self) {
      try next.acquire(over: connection, takesOver: false, creating: [:])
    }
    #expect(error?.message.contains("damaged") == true)
  }

  @Test("The newest changes are complete rows, whatever columns are called")
  func recentRows() async throws {
    let database = try await TestDatabase()
    let run = try SinkRun(database)
    try run.sink.open(creating: [:])
    let layout = SinkRun.layout(.double, [Column("h", 3, .string)])
    try run.write(["1"], layout: layout) { _ in [MetadataSlot.count + 3: .text("x")] }
    try run.commit()
    let row = try #require(try self.positions(database).recentRows(1)?.first)
    #expect(row["_record_id"]?.string == "1" && row["h"]?.string == "x")
  }
}
