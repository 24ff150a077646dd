import Pipeline
import Testing

@testable import PubSubETL

@Suite("Table of runs") struct RunTableTests {
  @Test("A line per run, the newest last")
  func lines() {
    let beginning = RunBeginning(
      id: RunID(1), version: "1", command: .run, processID: 1, beganAt: 1_771_300_000_000)
    var record = RunRecord(
      beginning: beginning, endedAt: 1_771_300_012_000, exitCode: 75, reason: "max_duration")
    record.counts.events = 7512
    record.counts.recordsRead = 180_252
    record.counts.deadLetters = 3
    record.retries = [RunRecord.Retry(place: "topic", code: "unavailable", count: 12)]
    let verdict = VerifyRecord(
      version: "1", beganAt: 1_771_300_900_000, endedAt: 1_771_300_965_000, verdict: "not_compared",
      compares: "records")
    #expect(
      RunTable.lines([.run(record), .unreported(beginning), .verify(verdict), .running(beginning)])
        == """
        began (UTC)          took  result                 events     read  dead  retries
        2026-02-17 03:46     0:12  75 max_duration         7,512  180,252     3       12
        2026-02-17 03:46           no report
        2026-02-17 04:01     1:05  verify: not_compared
        2026-02-17 03:46           running

        """)
  }

  @Test("Every line fits 80 columns, whatever a run has counted and an error is called")
  func width() {
    var sample = LedgerSample(seed: 21)
    var widest = 0
    for _ in 0..<500 {
      let item: RunHistory.Item =
        switch sample.entry() {
        case .began(let beginning): .unreported(beginning)
        case .run(let record): .run(record)
        case .verify(let record): .verify(record)
        }
      let lines = RunTable.lines([item]).split(separator: "\n", omittingEmptySubsequences: false)
      #expect(lines.count == 3)
      for line in lines { widest = max(widest, line.unicodeScalars.count) }
    }
    #expect(widest == RunTable.columns)
  }

  @Test(
    "Long times are in hours and days",
    arguments: [
      (Int64(0), "0:00"), (3_599_999, "59:59"), (3_725_000, "1:02:05"), (93_600_000, "26 h"),
      (864_000_000, "10 d"),
    ])
  func times(milliseconds: Int64, text: String) {
    #expect(RunTable.time(milliseconds) == text)
  }

  @Test(
    "Large numbers are in thousands, millions and so on",
    arguments: [
      (Int64(999_999), 7, "999,999"), (1_000_000, 7, "1,000k"), (1_234_567_890, 7, "1,234M"),
      (999, 4, "999"), (9999, 4, "9k"), (1_500_000, 4, "1M"), (.max, 4, "9E"),
    ])
  func numbers(number: Int64, width: Int, text: String) {
    #expect(RunTable.number(number, width: width) == text)
  }
}
