import Testing

@testable import PubSubETL

@Suite("What the end of a run says about its pipeline") struct StandingTests {
  private func report(
    _ code: ExitCode, _ reason: EndReason, events: Int64 = 0, read: Int64 = 0
  ) -> RunReport {
    var report = RunReport(
      pipeline: "opps", file: "/opps.json", startedAt: 0, finishedAt: 0, exitCode: code,
      reason: reason.rawValue)
    report.message = "why"
    var topic = RunReport.Topic(topic: "/data/X")
    topic.events = events
    report.topics = [topic]
    report.records.read = read
    return report
  }

  @Test(
    "Success, and the time limit after something was read, is work",
    arguments: [
      (.success, .caughtUp, 0, 0), (.success, .eventsReached, 0, 0),
      (.tryAgain, .maxDuration, 1, 0), (.tryAgain, .maxDuration, 0, 1),
    ] as [(ExitCode, EndReason, Int64, Int64)])
  func works(code: ExitCode, reason: EndReason, events: Int64, read: Int64) {
    #expect(self.report(code, reason, events: events, read: read).standing == .works)
  }

  @Test(
    "Everything that needs somebody, or does not come closer to the end of the stream, is a failure",
    arguments: [
      (.usage, .noStart, 0), (.data, .deadLetterLimit, 5), (.unavailable, .unavailable, 5),
      (.output, .sinkIO, 0), (.tryAgain, .maxDuration, 0), (.tryAgain, .quota, 5),
      (.tryAgain, .noPosition, 0), (.tryAgain, .alreadyRunning, 0), (.tryAgain, .allowance, 7),
      (.refused, .login, 0), (.configuration, .stages, 0), (.internal, .internal, 0),
    ] as [(ExitCode, EndReason, Int64)])
  func fails(code: ExitCode, reason: EndReason, events: Int64) {
    #expect(
      self.report(code, reason, events: events).standing
        == .fails(
          Incident.Finding(message: "why", reason: reason.rawValue, exitCode: code.rawValue)))
  }

  @Test(
    "A signal, or a run that lets another one have the pipeline, says nothing",
    arguments: [
      (.success, .signal), (.tryAgain, .signal), (.success, .alreadyRunning),
    ] as [(ExitCode, EndReason)])
  func unknown(code: ExitCode, reason: EndReason) {
    #expect(self.report(code, reason, events: 5).standing == .unknown)
  }
}
