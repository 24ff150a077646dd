import PostgresClient
import PostgresSink
import Testing

@testable import PubSubETL

@Suite("Configuration of tables")
struct TableConfigurationTests {
  private static func pipeline(_ sinks: String, topics: String = #""/data/ChangeEvents""#) -> String
  {
    SamplePipeline.minimal.replacing(#"{ "type": "files", "directory": "out" }"#, with: sinks)
      .replacing(#""/data/OpportunityChangeEvent""#, with: topics)
  }

  @Test(
    "Two sinks that write to the same table are a mistake",
    arguments: [
      (#""mode": "history""#, true), (#""mode": "current", "delete": "remove""#, true),
      (#""contract": "freeze""#, true), (#""schema": "other""#, false),
      (#""tables": { "current": "c_{entity}" }"#, true),
      (#""tables": { "current": "c_{entity}" }, "mode": "current""#, false),
      (#""tables": { "current": "c_{entity}", "history": "h_{entity}" }"#, false),
    ])
  func sharedTables(second: String, isShared: Bool) throws {
    let mistakes = try SamplePipeline().mistakes(
      Self.pipeline(
        #"{ "type": "postgres", "name": "a" }, { "type": "postgres", "name": "b", \#(second) }"#))
    #expect(mistakes.count == (isShared ? 1 : 0), "\(mistakes)")
    if isShared { #expect(mistakes[0].contains("sink 'a' writes to the same tables")) }
  }

  @Test("The channel of all changes with an object's topic is a mistake only with a database")
  func channelAndTopic() throws {
    let topics = #"["/data/ChangeEvents", "/data/AccountChangeEvent"]"#
    let mistakes = try SamplePipeline().mistakes(
      Self.pipeline(#"{ "type": "postgres" }"#, topics: topics))
    #expect(mistakes.count == 1)
    #expect(
      mistakes.first?.contains("/source/topic: /data/ChangeEvents includes the events of") == true)
    #expect(
      try SamplePipeline().mistakes(
        Self.pipeline(#"{ "type": "files", "directory": "out" }"#, topics: topics)) == [])
  }

  @Test("Columns to be indexed are given as a list of names")
  func indexes() throws {
    let sample = try SamplePipeline()
    let good = try sample.load(
      Self.pipeline(#"{ "type": "postgres", "indexes": ["AccountId", "Case.OwnerId"] }"#))
    #expect(good.postgresSinks[0].sink.indexes == ["AccountId", "Case.OwnerId"])
    let mistakes = try sample.mistakes(
      Self.pipeline(#"{ "type": "postgres", "indexes": ["", 1, "a", "a"] }"#))
    #expect(mistakes.count == 3)
    #expect(mistakes.last?.contains("column 'a' is listed twice") == true)
  }
}
