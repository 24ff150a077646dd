import Bytes
import Glibc
import JSON
import Testing

@testable import PubSubETL

@Suite("Status of a pipeline that catches up") struct CatchingUpTests {
  private let minute: Int64 = 60_000
  private let now: Int64 = 1_771_300_800_000

  /// A run of 9 minutes that a limit ended a minute ago.
  ///
  /// - Parameters:
  ///   - exported: minutes of commit times.
  ///   - behind: minutes from the newest of them to the present.
  private func report(
    exported: Int64?, behind: Int64, events: Int64 = 100,
    caughtUpBy: RunReport.Topic.CaughtUpRule? = nil
  ) -> RunReport {
    var report = RunReport(
      pipeline: "opps", file: "/opps.json", startedAt: self.now - 10 * self.minute,
      finishedAt: self.now - self.minute, exitCode: .tryAgain,
      reason: EndReason.maxDuration.rawValue)
    report.message = "the time limit was reached"
    var topic = RunReport.Topic(topic: StateSample.topic)
    topic.events = events
    topic.caughtUpBy = caughtUpBy
    if let exported {
      topic.newestCommit = self.now - behind * self.minute
      topic.firstCommit = self.now - (behind + exported) * self.minute
    }
    report.topics = [topic]
    return report
  }

  /// - Parameters:
  ///   - confirmedAt: of the position; nil for the present.
  ///   - age: time since the present of the run, in milliseconds.
  private func status(
    _ report: RunReport, confirmedAt: Int64? = nil, age: Int64 = 0
  ) throws -> PipelineStatus {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: confirmedAt ?? self.now)])
    // The lock was taken before the record was made, by this process.
    try LastRun.store(report, processID: getpid(), in: state.paths, hiding: SecretMask())
    return try PipelineStatus.read(state.configuration, maxAge: nil, now: self.now + age)
  }

  @Test("An old position is no problem while it is replaced, but it is if no run continues")
  func oldPosition() throws {
    let old = self.now - 50 * 60 * self.minute
    let report = self.report(exported: 90, behind: 50 * 60)
    #expect(try self.status(report, confirmedAt: old).problems == [])
    let later = try self.status(report, confirmedAt: old, age: 2 * 60 * self.minute)
    #expect(later.problems.map(\.kind) == ["ageing_out"])
    // Another topic was read, and this one was not.
    var other = report
    other.topics[0].topic = "/data/AccountChangeEvent"
    #expect(
      try self.status(other, confirmedAt: old).problems.map(\.kind) == ["ageing_out"])
    let forgotten = self.now - 73 * 60 * self.minute
    #expect(
      try self.status(report, confirmedAt: forgotten).problems.map(\.kind) == ["aged_out"])
  }

  @Test("The time left follows from the speed of the last run, while new changes are made")
  func left() throws {
    // 90 minutes of changes in 9: ten times as fast as they are made. 126 / (10 - 1) = 14.
    let status = try self.status(self.report(exported: 90, behind: 126))
    #expect(status.catchingUp?.left == 14 * self.minute)
    #expect(status.problems == [])
    #expect(status.exitCode == 0)
    #expect(
      status.text.hasPrefix(
        "health        catching up, about 14 min of runs left: 2 h 06 min behind, and the last run "
          + "exported 1 h 30 min of changes in 9 min 00 s\n"))
    #expect(status.json["catching_up"]?["left_ms"]?.integer == 14 * self.minute)
    #expect(status.json["healthy"] == true)
  }

  @Test("A run that is slower than changes are made does not catch up, which is a problem")
  func slower() throws {
    for exported in [1, 9] as [Int64] {
      let status = try self.status(self.report(exported: exported, behind: 100))
      #expect(status.catchingUp?.left == nil)
      #expect(status.problems.map(\.kind) == ["last_run_failed"])
      #expect(status.exitCode == 75)
      #expect(
        status.text.contains("1 h 40 min behind and not getting closer: the last run exported "))
    }
  }

  @Test("Without commit times nothing is estimated, and progress is no problem all the same")
  func unknown() throws {
    let status = try self.status(self.report(exported: nil, behind: 0))
    #expect(status.catchingUp == nil)
    #expect(status.problems == [])
    #expect(status.text.hasPrefix("health        catching up\n"))
  }

  @Test("A run that read nothing makes no progress, and one that was caught up is good")
  func others() throws {
    let stuck = try self.status(self.report(exported: nil, behind: 0, events: 0))
    #expect(stuck.problems.map(\.kind) == ["last_run_failed"])
    #expect(stuck.catchingUp == nil)
    var report = self.report(exported: 90, behind: 1, caughtUpBy: .quiet)
    (report.exitCode, report.reason) = (.success, EndReason.caughtUp.rawValue)
    let good = try self.status(report)
    #expect(good.catchingUp == nil)
    #expect(good.text.hasPrefix("health        good\n"))
  }
}
