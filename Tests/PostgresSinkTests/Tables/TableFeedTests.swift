import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@Suite("Feeds of tables", .enabled(if: PostgresCluster.isAvailable))
struct TableFeedTests {
  private static let channel = "/data/ChangeEvents"

  private func layout(of topic: String) -> RecordLayout {
    let known = SinkRun.layout()
    return RecordLayout(
      topic: topic, schemaID: known.schemaID, entity: known.entity, family: known.family,
      slotCount: known.slotCount, fieldOrder: known.fieldOrder, columns: known.columns)
  }

  private func write(_ run: SinkRun, _ name: String, topic: String) throws {
    try run.write([name], layout: self.layout(of: topic))
    try run.commit()
  }

  @Test(
    "A second pipeline is refused before it creates anything, and by the plan",
    arguments: [
      (SinkRun.topic, SinkRun.topic), (Self.channel, Self.channel), (Self.channel, SinkRun.topic),
    ])
  func twoPipelines(topics: (first: String, second: String)) async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database, topics: [topics.first])
    try first.sink.open(creating: [:])
    try self.write(first, "a", topic: topics.first)
    let second = try SinkRun(
      database, place: "elsewhere", pipeline: "other", topics: [topics.second])
    let error = postgresError { try second.sink.open() }
    #expect(error?.disposition == .configuration)
    for text in ["'opps'", topics.first, "another schema", "\"tables\"", "--take-over"] {
      #expect(error?.message.contains(text) == true, "\(text): \(error?.message ?? "")")
    }
    let feeder = TableFeeder(pipeline: "other", sink: "warehouse", topics: [topics.second])
    #expect(
      postgresError {
        _ = try TableCatalog.plan([], database.configuration(), feeder: feeder)
      }?.message == error?.message)
    // Other tables, other schema: nobody minds.
    let named = try SinkRun(
      database, place: "elsewhere", pipeline: "other", topics: [topics.second]
    ) { $0.tables = .init(current: "{entity}_2", history: "{entity}_history_2") }
    try named.sink.open(creating: [:])
    try self.write(named, "a", topic: topics.second)
    #expect(try first.history() == ["a"])
  }

  @Test("A second feed that only events reveal is refused at the first event")
  func channelAfterTopic() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database)
    try first.sink.open(creating: [:])
    try self.write(first, "a", topic: SinkRun.topic)
    let second = try SinkRun(
      database, place: "elsewhere", pipeline: "other", topics: ["/data/Sales__chn"])
    try second.sink.open(creating: [:])
    let error = postgresError {
      try second.write(["a"], layout: self.layout(of: "/data/Sales__chn"))
    }
    #expect(error?.message.contains("is fed by sink 'warehouse' of pipeline 'opps'") == true)
    #expect(try first.history() == ["a"])
  }

  @Test("A table of an earlier version belongs to the pipeline with a position of its topic")
  func unnoted() async throws {
    let database = try await TestDatabase()
    let first = try SinkRun(database).begin()
    first.sink.close()
    try first.eye.execute("DELETE FROM salesforce._etl_journal WHERE action = 'feed'")
    let second = try SinkRun(database, place: "elsewhere", pipeline: "other")
    #expect(postgresError { try second.sink.open() }?.message.contains("'opps'") == true)
    // Its own run goes on and notes it.
    let again = try SinkRun(database, ordinal: 1)
    try again.sink.open()
    try again.write(["a"])
    try again.commit()
    #expect(
      try again.eye.column("SELECT count(*) FROM salesforce._etl_journal WHERE action = 'feed'")
        == ["2"])
  }

  @Test("A renamed pipeline keeps tables and position if its file says so")
  func renamed() async throws {
    let database = try await TestDatabase()
    let old = try SinkRun(database).begin()
    try old.write(["a"])
    try old.commit()
    old.sink.close()
    let new = try SinkRun(database, pipeline: "sales", takesOver: true, ordinal: 2)
    #expect(try new.sink.open()?[SinkRun.topic]?.nextOrdinal == 2)
    try new.write(["b"])
    try new.commit()
    new.sink.close()
    #expect(try new.history() == ["first", "a", "b"])
    #expect(
      try new.eye.column("SELECT pipeline FROM salesforce._etl_checkpoint") == ["sales"])
    #expect(
      try new.eye.column(
        "SELECT count(*) FROM salesforce._etl_journal WHERE action IN ('feed', 'take_over')")
        == ["5"])
    // From now on the old name is the other.
    let back = postgresError { try SinkRun(database, ordinal: 2).sink.open() }
    #expect(back?.message.contains("'sales'") == true)
    let next = try SinkRun(database, pipeline: "sales", ordinal: 3)
    #expect(try next.sink.open() != nil)
  }

  @Test("Another topic of the same pipeline feeds a table only if its file says so")
  func otherTopic() async throws {
    let database = try await TestDatabase()
    try SinkRun(database).begin().sink.close()
    let channel = try SinkRun(database, topics: [Self.channel], ordinal: 1)
    try channel.sink.open()
    let error = postgresError {
      try channel.write(["a"], layout: self.layout(of: Self.channel))
    }
    #expect(error?.message.contains("has received the events of topic \(SinkRun.topic)") == true)
    let taking = try SinkRun(database, topics: [Self.channel], takesOver: true, ordinal: 1)
    try taking.sink.open()
    try self.write(taking, "a", topic: Self.channel)
    #expect(try taking.history() == ["first", "a"])
  }
}
