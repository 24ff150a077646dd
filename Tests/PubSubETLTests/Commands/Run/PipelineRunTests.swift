import Checkpoint
import Clocks
import OrgTestSupport
import Pipeline
import PubSubSimulator
import Testing

@testable import PubSubETL

@Suite("Runs of a pipeline") struct PipelineRunTests {
  @Test("Each run exports the next events, commits them and reports them")
  func exports() async throws {
    let pipeline = try await SimulatedPipeline(events: 30)
    let configuration = try pipeline.load(sets: [#"run.until={"events":10}"#])
    for count in [10, 20] {
      let run = try pipeline.makeRun(configuration)
      await run.execute()
      #expect(run.hasLock && run.report.exitCode == .success, "\(run.report.message ?? "")")
      #expect(run.report.reason == "events_reached")
      #expect(run.report.topics.map(\.events) == [10] && run.report.topics.map(\.exported) == [10])
      #expect(run.report.sinks.contains { $0.files > 0 })
      let document = try FileCheckpointStore.peek(configuration.statePaths)
      #expect(document?.topics.values.map(\.nextOrdinal) == [Int64(count)])
      #expect(document?.org == pipeline.org.server.organizationID)
    }
    await pipeline.org.stop()
  }

  @Test(
    "A run without a start or with a wrong secret ends before it stores anything",
    arguments: [
      (nil, [:], "no_start", .configuration),
      ("latest", ["SF_CLIENT_SECRET": "wrong"], "login", .refused),
    ] as [(String?, [String: String], String, ExitCode)])
  func refused(
    start: String?, environment: [String: String], reason: String, code: ExitCode
  ) async throws {
    let pipeline = try await SimulatedPipeline(events: 1)
    let configuration = try pipeline.load(start: start, environment: environment)
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.exitCode == code && run.report.reason == reason)
    #expect(run.report.message?.isEmpty == false)
    #expect(try FileCheckpointStore.peek(configuration.statePaths) == nil)
    await pipeline.org.stop()
  }

  @Test(
    "A signal ends a run before it reads, or when it has subscribed; one that follows succeeds",
    arguments: [(false, []), (true, ["--follow"])] as [(Bool, [String])])
  func interrupted(hasSubscribed: Bool, arguments: [String]) async throws {
    let pipeline = try await SimulatedPipeline(events: 30)
    let configuration = try pipeline.load()
    let interruption = Interruption(deadline: nil, clock: ProcessClock())
    let run = try pipeline.makeRun(configuration, arguments, interruption: interruption) {
      if hasSubscribed, $0 == "subscribed" { interruption.ask() }
    }
    if !hasSubscribed { interruption.ask() }
    await run.execute()
    #expect(run.report.exitCode == (arguments.isEmpty ? .tryAgain : .success))
    #expect(run.report.reason == "signal")
    // Nothing is left that would disturb the next run.
    try await pipeline.org.server.publish(1)
    let next = try pipeline.makeRun(try pipeline.load(sets: [#"run.until={"events":1}"#]))
    await next.execute()
    #expect(next.report.reason == "events_reached", "\(next.report.message ?? "")")
    await pipeline.org.stop()
  }
}
