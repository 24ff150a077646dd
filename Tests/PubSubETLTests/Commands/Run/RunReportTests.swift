import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Run report")
struct RunReportTests {
  private var report: RunReport {
    var topic = RunReport.Topic(topic: "/data/A")
    topic.events = 2
    topic.rows = 3
    topic.delivered = 2
    topic.exported = 2
    topic.firstReplayID = ReplayID([0, 1])
    topic.lastReplayID = ReplayID([0, 2])
    topic.completeThrough = 1_771_300_990_000
    topic.caughtUpBy = .keepalive
    var report = RunReport(
      pipeline: "opps", file: "/etc/opps.json", startedAt: 1_771_300_000_000,
      finishedAt: 1_771_300_995_000, exitCode: .success, reason: "caught_up")
    report.runID = RunID(0xA1)
    report.commits = 4
    report.topics = [topic, RunReport.Topic(topic: "/data/B")]
    report.sinks = [
      RunReport.Sink(name: "files", type: "files", target: "/out", rows: 3, bytes: 99, files: 1)
    ]
    report.gaps = 1
    report.schemas.fetched = 2
    report.schemas.cached = 1
    report.attention = [
      RunReport.Attention(kind: .gaps, topic: "/data/A", message: "read the record again")
    ]
    return report
  }

  @Test("The report is JSON with all members in a fixed order")
  func json() {
    #expect(
      self.report.json.text() == """
        {"run_id":"00000000000000a1","pipeline":"opps","file":"/etc/opps.json","version":"\(Program.version)",\
        "started_at":"2026-02-17T03:46:40.000Z","finished_at":"2026-02-17T04:03:15.000Z",\
        "exit_code":0,"reason":"caught_up","message":null,"progress":false,"start_clock":"own","commits":4,\
        "topics":[{"topic":"/data/A","events":2,"rows":3,"rows_left_out":0,"delivered":2,"redelivered":0,"exported":2,"first_replay_id":"0001","last_replay_id":"0002",\
        "complete_through":"2026-02-17T04:03:10.000Z","caught_up_by":"keepalive","first_commit_at":null,"newest_commit_at":null,"refused":null},\
        {"topic":"/data/B","events":0,"rows":0,"rows_left_out":0,"delivered":0,"redelivered":0,"exported":0,"first_replay_id":null,\
        "last_replay_id":null,"complete_through":null,"caught_up_by":null,"first_commit_at":null,"newest_commit_at":null,"refused":null}],"sinks":[{"name":"files",\
        "type":"files","target":"/out","rows":3,"rows_read":0,"bytes":99,"files":1}],"dead_letters":{"count":0,\
        "directory":null},"gaps":1,"records":{"read":0,"repaired":0,"not_found":0,"unreadable":0,\
        "api_calls":0,"snapshots":[]},"schemas":{"fetched":2,"from_cache":1},\
        "allowance":null,"retries":{"count":0,"errors":[]},"attention":[{"kind":"gaps","topic":"/data/A","message":\
        "read the record again"}],"managed_subscription":null}
        """)
  }

  @Test("fail_on turns only a success into 65 and gives the reason")
  func failOn() {
    for kinds in [[], [.holes, .deadLetters]] as [Set<RunConfiguration.Attention>] {
      var report = self.report
      #expect(report.fail(on: kinds) == nil)
      #expect(report.exitCode == .success)
    }
    var report = self.report
    let message = report.fail(on: [.gaps])
    #expect(
      message == "everything that arrived is exported, but run.fail_on has \"gaps\": "
        + "/data/A: read the record again")
    #expect(report.exitCode == .data)
    #expect(report.message == message)
    report = self.report
    report.exitCode = .tryAgain
    #expect(report.fail(on: [.gaps]) == nil)
    #expect(report.exitCode == .tryAgain)
  }
}
