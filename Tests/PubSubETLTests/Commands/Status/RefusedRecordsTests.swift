import Bytes
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Refused records in status") struct RefusedRecordsTests {
  private static func status(_ refused: Int, sets: [String] = []) throws -> PipelineStatus {
    let state = try StateSample(sets: sets)
    let directory = try #require(state.configuration.fileSinks.first?.directory)
    let now = UTCTime.now()
    let pass: JSONValue = [
      "entity": "Opportunity", "number": 1, "state": "complete", "job": "750A", "locator": nil,
      "row": 40, "rows": 40, "total": 40, "refused": .integer(refused), "request": 1, "epoch": 1,
      "next_ordinal": 0, "begun_at_ms": .integer(now), "requested_at_ms": .integer(now),
      "finished_at_ms": .integer(now),
    ]
    try state.store(
      [StateSample.topic: state.position(confirmedAt: now)],
      sinks: ["files": ["directory": .string(directory), "files": [], "passes": [pass]]])
    return try PipelineStatus.read(state.configuration, maxAge: nil, now: now)
  }

  @Test("Records that were read and are not in the files are a problem above dead_letter.max")
  func problem() throws {
    let status = try Self.status(40)
    let problem = try #require(status.problems.first { $0.kind == "refused_records" })
    #expect(problem.exitCode == 65)
    #expect(problem.message.contains("40 of Opportunity") && !problem.message.contains("_etl_"))
    #expect(status.text.contains("all 40 records read"))
    #expect(status.text.contains(", 40 of them not exported"))
    let kinds = try [(0, []), (40, ["dead_letter={\"max\":40}"])].flatMap {
      try Self.status($0.0, sets: $0.1).problems.map(\.kind)
    }
    #expect(!kinds.contains("refused_records"))
  }
}
