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
        "/source/snapshot/where/Opportunitty: unknown object"
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
