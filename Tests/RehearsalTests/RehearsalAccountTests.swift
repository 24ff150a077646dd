import Testing

@testable import Rehearsal

@Suite("Rehearsal accounts")
struct RehearsalAccountTests {
  private func result(
    _ code: Int32, _ errors: String..., delivered: Int = 0, exported: Int = 0
  ) -> ExporterRun.Result {
    ExporterRun.Result(
      exitCode: code, errors: errors, reason: nil, delivered: delivered, exported: exported)
  }

  @Test(
    "Runs count for each incident that they met, and texts differing only in numbers count once")
  func counts() {
    var account = RehearsalAccount(pipeline: "opps", days: 30, every: "5m", seed: 1)
    account.incidents[.outage] = RehearsalAccount.Met(occurrences: 2)
    account.add(
      self.result(69, "2026-11-25T07:22:51.724Z error: service is away rpcId: 12ab"),
      met: [.outage, .silence])
    account.add(
      self.result(69, "2026-11-26T09:22:51.724Z error: service is away rpcId: 99ff"),
      met: [.outage])
    account.add(self.result(0, delivered: 1100, exported: 1000), met: [])
    #expect(account.runs == 3)
    #expect(account.incidents[.outage]?.exitCodes == [69: 2])
    #expect(account.incidents[.silence]?.runs == 1)
    #expect(account.incidents[.outage]?.said == ["error: service is away rpcId: 12ab"])
    #expect(account.text.contains("outage × 2: 2 runs; exit codes: 69 × 2\n"))
    #expect(account.text.contains("no incident: 1 run; exit codes: 0 × 1\n"))
    #expect(account.text.contains("delivered/exported = 1.100\n"))
    #expect(account.isGood)
  }

  @Test("An account is good only after a successful last run without missing or repeated events")
  func judges() {
    var account = RehearsalAccount(pipeline: "opps", days: 1, every: "5m", seed: 1)
    account.comparisons = [("files", OutputComparison(expected: ["a", "b"], found: ["b", "a"]))]
    #expect(account.isGood)
    for found in [["a"], ["a", "b", "b"], ["a", "b", "c"]] {
      account.comparisons = [("files", OutputComparison(expected: ["a", "b"], found: found))]
      #expect(!account.isGood, "\(found)")
    }
    account.comparisons = []
    account.lastExitCode = 75
    #expect(!account.isGood)
  }

  @Test("Rows that stages left out do not count as missing")
  func leftOut() {
    let comparison = OutputComparison(expected: ["a", "b"], found: ["a"], leftOut: 1)
    #expect(comparison.isEqual)
  }
}

@Suite("Comparison of a sink that gets part of the rows")
struct RoutedComparisonTests {
  @Test("Rows routed elsewhere do not count as missing; rows routed here do")
  func part() {
    let truth: Set = ["a", "b", "c"]
    #expect(OutputComparison(sent: 2, truth: truth, found: ["a", "c"]).isEqual)
    #expect(OutputComparison(sent: 2, truth: truth, found: ["a"]).missing == 1)
    #expect(OutputComparison(sent: 2, truth: truth, found: ["a", "a"]).repeated == 1)
    #expect(OutputComparison(sent: 1, truth: truth, found: ["x"]).unknown == 1)
  }
}
