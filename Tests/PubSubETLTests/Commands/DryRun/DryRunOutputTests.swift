import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Output of a dry run") struct DryRunOutputTests {
  private static let stages = """
    { "type": "filter", "where": "Stage != 'lost'" },
    { "type": "set", "columns": { "Source": { "constant": "crm" } } },
    { "type": "mask", "columns": ["Email"], "with": "redact" },
    { "type": "cast", "columns": { "Score": "text" } },
    { "type": "rename", "columns": { "Stage": "step" } },
    { "type": "route", "routes": [ { "where": "step == 'won'", "to": ["a"] } ], "default": ["b"] }
    """
  private static let sinks = """
    { "type": "files", "directory": "a", "name": "a", "stages": [
      { "type": "drop", "columns": ["Source"] } ] },
    { "type": "files", "directory": "b", "name": "b" }
    """

  /// Text that a dry run has printed.
  private final class Printed {
    var lines: [String] = []
  }

  private func show(
    _ traces: [EventTrace], _ form: DryRunOutput.Form, count: Int = 20
  ) throws -> (lines: [String], output: DryRunOutput) {
    let printed = Printed()
    let output = DryRunOutput(form, hiding: SecretMask()) { printed.lines.append($0.text) }
    let configuration = try SamplePipeline().load()
    try output.begin(configuration, [], stored: [:], count: count, allowance: nil)
    printed.lines.removeAll()
    try output.show(traces)
    return (printed.lines, output)
  }

  @Test("Text output shows what each stage did and what each sink gets")
  func text() throws {
    let traces = try TracedPipeline(
      stages: Self.stages, sinks: Self.sinks,
      (#""Email": "e@x.org", "Score": 1.5, "Stage": "won""#, 1), (#""Stage": "lost""#, 1)
    ).traces()
    let lines = try self.show(traces, .text(isColored: false)).lines
    func has(_ expected: String) -> Bool { lines.contains(expected + "\n") }
    #expect(
      lines[0]
        == "event 1: /data/OpportunityChangeEvent, replay ID 0000000000000001, event ID event-1\n")
    #expect(has("    Email: \"<hidden>\""))
    let steps = try #require(lines.firstIndex(of: "  filter (stages[0]): unchanged\n"))
    let end = try #require(lines.firstIndex { $0.hasPrefix("    {\"_topic\"") })
    let changes = lines[steps..<end].filter { !$0.contains("_changed_fields") }
    #expect(
      changes.joined() == """
          filter (stages[0]): unchanged
          set (stages[1]):
            + Source: "crm"
          mask (stages[2]):
            ~ Email: "<hidden>" → "***"
          cast (stages[3]):
            ~ Score: 1.5 → "1.5"
          rename (stages[4]):
            ~ Stage is now step
          route (stages[5]):
            1 row to 'a'
            nothing to 'b'
          sink 'a', drop (stages[0]):
            - Source: "crm"
          sink 'a': 1 line

        """)
    #expect(has("  sink 'b': nothing"))
    #expect(has("  filter (stages[0]): 1 of 1 row left out"))
    #expect(has("  set (stages[1]): no row"))
  }

  @Test("Changes are colored on a terminal")
  func colors() throws {
    let traces = try TracedPipeline(
      stages: #"{ "type": "set", "columns": { "Two": { "constant": 2 } } }"#,
      (#""Stage": "x""#, 1)
    ).traces()
    let lines = try self.show(traces, .text(isColored: true)).lines
    #expect(lines.contains("\u{1B}[32m    + Two: 2\u{1B}[0m\n"))
  }

  @Test("NDJSON output has an object for each event, with rows where a stage changed something")
  func json() throws {
    let traces = try TracedPipeline(
      stages: Self.stages, sinks: Self.sinks, (#""Score": 1.5, "Stage": "won""#, 1)
    ).traces()
    let lines = try self.show(traces, .json).lines
    #expect(lines.count == 1)
    let event = try JSONValue(parsing: lines[0])
    #expect(event["type"] == "event")
    #expect(event["number"] == 1)
    #expect(event["event_id"] == "event-1")
    #expect(event["replay_id"] == "0000000000000001")
    #expect(event["before"]?.array?[0]["Stage"] == "won")
    let stages = try #require(event["stages"]?.array)
    #expect(
      stages.map { $0["stage"]?.string } == ["filter", "set", "mask", "cast", "rename", "route"])
    #expect(stages.map { $0["place"]?.integer } == [0, 1, 2, 3, 4, 5])
    #expect(stages[0]["unchanged"] == true)
    #expect(stages[1]["rows"]?.array?[0]["Source"] == "crm")
    #expect(stages[5]["rows_to"] == ["a": 1, "b": 0])
    #expect(event["sinks"]?["a"]?["lines"]?.array?[0]["step"] == "won")
    #expect(event["sinks"]?["b"]?["lines"] == [])
  }

  @Test("Values of events reach a terminal only as plain text")
  func hostile() throws {
    let long = String(repeating: "x", count: 9000)
    let traces = try TracedPipeline(
      stages: #"{ "type": "rename", "columns": { "Stage": "step" } }"#,
      (#""Stage": "\u001b[2J\u202e\r\nevent 9: forged\u0007", "Email": "\#(long)""#, 1)
    ).traces()
    for line in try self.show(traces, .text(isColored: false)).lines {
      #expect(!line.dropLast().unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
      #expect(!line.hasPrefix("event 9"))
      #expect(line.count < 4200)
    }
    let json = try self.show(traces, .json).lines.joined()
    #expect(!json.dropLast().unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
  }

  @Test("Events beyond the limit are not shown, even if the service delivers them")
  func limit() throws {
    let traces = try TracedPipeline(
      stages: "", (#""Stage": "1""#, 1), (#""Stage": "2""#, 1), (#""Stage": "3""#, 1)
    ).traces()
    let (lines, output) = try self.show(traces, .json, count: 2)
    #expect(lines.count == 2)
    #expect(output.events == 2)
  }

  @Test("A closed reader ends the dry run")
  func closed() throws {
    let output = DryRunOutput(.json, hiding: SecretMask()) { _ throws(RunFailure) in
      throw RunFailure(.output, "standard output cannot be written")
    }
    #expect {
      try output.end(.caughtUp, RunStatistics(topics: ["/data/X"]), allowance: nil)
    } throws: { error in
      (error as? RunFailure)?.exitCode == .output
    }
  }

  @Test("The last lines show the cost of the dry run")
  func end() throws {
    let printed = Printed()
    func output(_ form: DryRunOutput.Form) -> DryRunOutput {
      DryRunOutput(form, hiding: SecretMask()) { printed.lines.append($0.text) }
    }
    var statistics = RunStatistics(topics: ["/data/X"])
    statistics.topics[0].delivered = 1020
    statistics.topics[0].repeated = 2
    let allowance = OrgAllowance(max: 50_000, remaining: 49_000)
    try output(.text(isColored: false)).end(.eventsReached, statistics, allowance: allowance)
    #expect(
      printed.lines == [
        "2 events more had been exported before and are not shown\n", "no event came\n",
        "1,020 delivered events of this dry run count against the org's daily allowance: 49,000 of "
          + "50,000 were left before\n",
      ])
    printed.lines = []
    try output(.json).end(.eventsReached, statistics, allowance: nil)
    #expect(
      printed.lines == [
        #"{"type":"summary","ended_by":"events_reached","events":0,"max_events":0,"delivered":1020,"#
          + #""already_exported":2,"dead_letters":0,"allowance":null}"# + "\n"
      ])
  }
}
