import Testing

@testable import RESTSource
@testable import SalesforceREST

@Suite("Calls for records by ID") struct RepairAllowanceTests {
  private func allowance(_ maxCalls: Int? = nil, made: Int = 0) -> RepairAllowance {
    var options = SnapshotReader.Options()
    options.maxRepairCalls = maxCalls
    options.repairCallsMade = made
    return RepairAllowance(options, from: .now)
  }

  /// How many calls are allowed until one is refused.
  private func count(_ allowance: RepairAllowance, _ usage: RESTClient.Usage?) -> Int {
    for number in 0..<10_000 {
      do { try allowance.take(usage: usage, now: .now) } catch { return number }
    }
    return 10_000
  }

  @Test(
    "By default, a pipeline makes at most 5 % of the org's daily requests over all runs",
    arguments: [
      // A run begins without knowing the org's limit, however many calls others have made today.
      (nil, 11, 239), (15_000, 0, 750), (15_000, 700, 50), (15_000, 751, 0), (100, 0, 5),
    ])
  func share(limit: Int?, made: Int, left: Int) {
    let usage = limit.map { RESTClient.Usage(used: 1, limit: $0) }
    #expect(self.count(self.allowance(made: made), usage) == left)
  }

  @Test("A configured limit applies for a day")
  func maxCalls() throws {
    let allowance = self.allowance(3, made: 1)
    #expect(self.count(allowance, nil) == 2)
    #expect(allowance.takeUntold() == 2)
    #expect(allowance.takeUntold() == 0)
    try allowance.take(usage: nil, now: .now + .seconds(24 * 3600 + 1))
    #expect(allowance.takeUntold() == 1)
  }

  @Test("The reserve for others is never used")
  func reserve() {
    #expect(self.count(self.allowance(9), RESTClient.Usage(used: 799, limit: 1000)) == 9)
    #expect(self.count(self.allowance(9), RESTClient.Usage(used: 800, limit: 1000)) == 0)
  }
}
