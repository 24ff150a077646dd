import SalesforceREST
import Testing

@testable import RESTSource

@Suite("The wait for a Bulk job")
struct JobWaitTests {
  private static let start = ContinuousClock.now

  private static func job(_ count: Int, retries: Int64 = 0) -> BulkJob {
    BulkJob(id: "750", state: .underWay, recordCount: count, retries: retries)
  }

  /// What is to be done at each second with jobs of these numbers of records and retries.
  private static func answers(_ seen: [(Int, count: Int, retries: Int64)]) -> [JobWait.OnJob] {
    var options = SnapshotReader.Options()
    options.jobPatience = .seconds(100)
    options.waitReports = .seconds(40)
    var wait = JobWait(options, at: Self.start)
    return seen.map { second, count, retries in
      wait.saw(Self.job(count, retries: retries), at: Self.start + .seconds(second))
    }
  }

  @Test("A job without progress is reported from time to time, and abandoned in the end")
  func withoutProgress() {
    #expect(
      Self.answers([0, 30, 50, 80, 95, 100].map { ($0, 5, 0) }) == [
        .wait, .wait, .report(.seconds(50)), .wait, .report(.seconds(95)),
        .giveUp(.seconds(100)),
      ])
  }

  @Test("More records and another attempt of the org are progress")
  func progress() {
    #expect(
      Self.answers([(1, 0, 0), (90, 1, 0), (180, 1, 1), (279, 1, 1), (280, 1, 1)]) == [
        .wait, .report(.seconds(90)), .report(.seconds(180)), .report(.seconds(279)),
        .giveUp(.seconds(100)),
      ])
  }
}
