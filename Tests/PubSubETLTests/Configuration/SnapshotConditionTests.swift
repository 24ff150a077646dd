import PostgresSink
import SalesforceREST
import Testing

@testable import PubSubETL

@Suite("Conditions for records in pipeline files") struct SnapshotConditionTests {
  @Test("Each object has its own condition")
  func read() throws {
    let configuration = try SamplePipeline().load(
      sets: [#"source.snapshot.where={"//": "open ones", "Opportunity": "IsClosed = false"}"#])
    #expect(configuration.source.snapshot.conditions == ["Opportunity": "IsClosed = false"])
  }

  @Test(
    "A mistake is reported with its place",
    arguments: [
      (
        #"{"Opportunitty": "IsClosed = false"}"#,
        "/source/snapshot/where/Opportunitty: unknown object 'Opportunitty'; did you mean"
      ),
      (
        #"{"Opportunity": "Name = '\#(String(repeating: "ü", count: 700))'"}"#,
        "/source/snapshot/where/Opportunity: expected a condition in SOQL of at most 4,000 bytes in a URI"
      ),
      (#"{"Opportunity": 5}"#, "/source/snapshot/where/Opportunity: expected a string"),
      (
        #"{"Opportunity": " "}"#, "/source/snapshot/where/Opportunity: expected a condition in SOQL"
      ),
      (
        #"{"Opportunity": "Amount > 1) LIMIT 5"}"#,
        "/source/snapshot/where/Opportunity: expected a condition in SOQL, found ')' without '('"
      ),
    ])
  func mistakes(conditions: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: ["source.snapshot.where=\(conditions)"])
    #expect(mistakes.first?.contains(expected) == true, "\(mistakes)")
  }

  private static let postgres = SamplePipeline.minimal.replacing(
    #"{ "type": "files", "directory": "out" }"#,
    with: #"{ "type": "postgres", "url": "postgresql:///x" }"#)

  @Test("A subset limits what is read, and tables know it")
  func subset() throws {
    let configuration = try SamplePipeline().load(
      Self.postgres, sets: [#"source.subset={"Opportunity": "Amount > 1"}"#])
    let scope = try #require(configuration.source.scope(of: "Opportunity"))
    #expect(scope.condition == "Amount > 1" && scope.key == "source.subset")
    let sink = try #require(configuration.postgresSinks.first)
    #expect(sink.sink(of: configuration).subsets == ["Opportunity"])
  }

  @Test("Files have a subset if all records that belong to it are read into them")
  func subsetOfFiles() throws {
    let mistakes = try SamplePipeline().mistakes(sets: [
      #"source.subset={"Opportunity": "Amount > 1"}"#, #"source.snapshot={"mode": "initial"}"#,
    ])
    #expect(mistakes.isEmpty, "\(mistakes)")
  }

  @Test(
    "A subset needs tables, repairs and a snapshot, and no other condition",
    arguments: [
      (
        [#"sinks=[{"type": "files", "directory": "out"}]"#], "only postgres sinks with current rows"
      ),
      ([#"repair.mode="off""#], "changed records are read to see"),
      ([#"source.snapshot.mode="never""#], "changed records are read to see"),
      (
        [#"source.snapshot.where={"Opportunity": "Amount > 2"}"#],
        "/source/subset/Opportunity: Opportunity is also in source.snapshot.where"
      ),
    ])
  func needs(sets: [String], expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(
      Self.postgres, sets: [#"source.subset={"Opportunity": "Amount > 1"}"#] + sets)
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
  }

  @Test(
    "What is in quotes is no part of the condition's form",
    arguments: [
      (#"Name = 'a)'"#, true), (#"Name = 'it\'s (' AND (Amount > 1)"#, true),
      (#"Name = 'a\\' OR Name = 'b'"#, true), (#"Name = 'a\'"#, false), ("((Amount > 1)", false),
      ("Amount > 1) OR (Amount < 1", false),
    ])
  func form(condition: String, isWhole: Bool) {
    #expect((SOQL.mistake(inCondition: condition) == nil) == isWhole)
  }
}
