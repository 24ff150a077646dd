import JSON
import Testing

@testable import PubSubETL

@Suite("Traces of events in a dry run") struct EventTracesTests {
  private static let canary = "canary@example.com"

  private func text(_ traces: [EventTrace]) -> String {
    traces.map { $0.json(number: 1).text() + $0.lines(number: 1).map(\.text).joined() }.joined()
  }

  @Test(
    "A value that a stage masks or removes is hidden before that stage under any name",
    arguments: [
      #"{ "type": "mask", "columns": ["Email"], "with": "redact" }"#,
      #"{ "type": "mask", "columns": ["Email"], "with": "drop" }"#,
      #"{ "type": "mask", "columns": ["Em*"], "with": "truncate", "length": 2 }"#,
      #"{ "type": "drop", "columns": ["Email"] }"#, #"{ "type": "select", "columns": ["Score"] }"#,
      #"{ "type": "rename", "columns": {"Email": "Mail"} }, { "type": "drop", "columns": ["Mail"] }"#,
      #"{ "type": "filter", "where": "Email != ''" }, { "type": "drop", "columns": ["Email"] }"#,
      #"{ "type": "set", "columns": { "Email": { "constant": "none" } } }"#,
      #"{ "type": "set", "columns": { "Stage": "Email" } }, { "type": "drop", "columns": ["Stage", "Email"] }"#,
    ])
  func masked(stages: String) throws {
    let pipeline = try TracedPipeline(
      stages: stages, (#""Email": "\#(Self.canary)", "Score": 1.5"#, 1))
    let traces = try pipeline.traces()
    #expect(traces[0].before?.rows[0]["Email"] == "<hidden>")
    #expect(traces[0].before?.rows[0]["Score"] == JSONValue(.number("1.5")))
    #expect(!self.text(traces).contains(Self.canary))
    #expect(self.text(try pipeline.traces(showsMasked: true)).contains(Self.canary))
  }

  @Test("A record is hidden as a whole while it holds a hidden part")
  func record() throws {
    let pipeline = try TracedPipeline(
      stages: """
        { "type": "flatten" }, { "type": "mask", "columns": ["Address_Street"], "with": "redact" }
        """, (#""Address": { "City": "Paris", "Street": "\#(Self.canary)" }"#, 1))
    let trace = try pipeline.traces()[0]
    #expect(trace.before?.rows[0]["Address"] == "<hidden>")
    #expect(trace.before?.hidden == ["Address"])
    guard case .rows(let flat) = trace.steps[0].outcome else { throw Missing() }
    #expect(flat.rows[0]["Address_City"] == "Paris")
    #expect(flat.rows[0]["Address_Street"] == "<hidden>")
    #expect(!self.text([trace]).contains(Self.canary))
  }

  private struct Missing: Error {}

  @Test("Neither null nor a nonfinite number reveals anything about a hidden field")
  func nothing() throws {
    let pipeline = try TracedPipeline(
      stages: #"{ "type": "drop", "columns": ["Score", "Email"] }"#,
      (#""Email": null, "Score": "NaN", "Stage": "x""#, 1))
    let before = try #require(try pipeline.traces()[0].before?.rows[0])
    #expect(before["Email"] == "<hidden>")
    #expect(before["Score"] == "<hidden>")
    #expect(before["_nonfinite"] == nil)
    #expect(before["Stage"] == "x")
  }

  @Test("A value that one sink masks is hidden before the sinks, and shown by the sink that has it")
  func ownStages() throws {
    let pipeline = try TracedPipeline(
      stages: "",
      sinks: """
        { "type": "files", "directory": "a", "name": "a", "stages": [
          { "type": "mask", "columns": ["Email"], "with": "redact" } ] },
        { "type": "files", "directory": "b", "name": "b" }
        """, (#""Email": "\#(Self.canary)""#, 1))
    let trace = try pipeline.traces()[0]
    #expect(trace.before?.rows[0]["Email"] == "<hidden>")
    #expect(trace.sinks.map { $0.lines[0]["Email"] } == ["***", .string(Self.canary)])
  }

  @Test("A value that one sink does not select is shown if another sink has it in every row")
  func selected() throws {
    func email(_ stages: String, _ others: String) throws -> JSONValue? {
      try TracedPipeline(
        stages: stages,
        sinks: """
          { "type": "files", "directory": "a", "name": "a", "stages": [
            { "type": "select", "columns": ["Stage"] } ] },
          { "type": "files", "directory": "b", "name": "b", "stages": [\(others)] }
          """, (#""Email": "\#(Self.canary)", "Stage": "x""#, 1)
      ).traces()[0].before?.rows[0]["Email"]
    }
    #expect(try email("", "") == .string(Self.canary))
    let renamed = try email("", #"{ "type": "rename", "columns": {"Email": "e"} }"#)
    #expect(renamed == .string(Self.canary))
    #expect(try email("", #"{ "type": "drop", "columns": ["Email"] }"#) == "<hidden>")
    let masked = try email("", #"{ "type": "mask", "columns": ["Email"], "with": "drop" }"#)
    #expect(masked == "<hidden>")
    // The row may go to the other sink alone.
    #expect(try email("", #"{ "type": "filter", "where": "Stage == 'y'" }"#) == "<hidden>")
    let route = """
      { "type": "route", "routes": [ { "where": "Stage == 'x'", "to": ["a"] } ], "default": ["b"] }
      """
    #expect(try email(route, "") == "<hidden>")
  }

  @Test("A stage that changes a hidden value reports the change without the value")
  func hiddenChange() throws {
    let pipeline = try TracedPipeline(
      stages: """
        { "type": "set", "columns": { "Email": "Email + 'x'" } }, { "type": "drop", "columns": ["Email"] }
        """, (#""Email": "\#(Self.canary)""#, 1))
    let traces = try pipeline.traces()
    #expect(traces[0].steps[0].hiddenChanges == ["Email"])
    #expect(
      traces[0].lines(number: 1).map(\.text).contains("    ~ Email: changed, and hidden"))
    #expect(traces[0].json(number: 1)["stages"]?.array?[0]["hidden_changes"] == ["Email"])
    #expect(!self.text(traces).contains(Self.canary))
  }

  @Test("An event that a stage refuses reaches no sink")
  func refused() throws {
    let pipeline = try TracedPipeline(
      stages: #"{ "type": "set", "columns": { "Half": "1 / (size(Stage) - 1)" } }"#,
      (#""Stage": "x""#, 1), (#""Stage": "xx""#, 1))
    let traces = try pipeline.traces()
    #expect(traces.map(\.isDeadLetter) == [true, false])
    #expect(traces[0].refusal?.hasPrefix("stage set (stages[0]): column 'Half': ") == true)
    #expect(traces[0].sinks[0].lines.isEmpty)
    #expect(traces[1].sinks[0].lines.count == 1)
  }

  @Test("Some of many rows are shown, and the rest are counted")
  func manyRows() throws {
    let pipeline = try TracedPipeline(
      stages: #"{ "type": "set", "columns": { "Two": { "constant": 2 } } }"#,
      (#""Stage": "x""#, 150))
    let json = try pipeline.traces()[0].json(number: 1)
    #expect(json["before"]?.array?.count == 100)
    #expect(json["rows_not_shown"] == 50)
    #expect(json["stages"]?.array?[0]["rows"]?.array?.count == 100)
    #expect(json["sinks"]?["files"]?["lines"]?.array?.count == 100)
    #expect(json["sinks"]?["files"]?["lines_not_shown"] == 50)
  }
}
