import OrgTestSupport
import Pipeline
import PubSubSimulator
import Testing

@testable import PubSubETL

@Suite("Runs of verify") struct VerifyRunTests {
  private static let count = 40

  /// A pipeline whose files are to have all records.
  private func pipeline() async throws -> (SimulatedPipeline, PipelineConfiguration) {
    let pipeline = try await SimulatedPipeline(existing: Self.count)
    return (pipeline, try pipeline.load(sets: ["source.snapshot.mode=initial"]))
  }

  private func verify(
    _ configuration: PipelineConfiguration, _ change: (inout VerifyRun.Request) -> Void = { _ in }
  ) async throws -> VerifyReport {
    var request = VerifyRun.Request()
    change(&request)
    return try await VerifyRun(
      configuration: configuration, request: request, remark: { Issue.record("\($0)") }
    ).run()
  }

  private func reason(
    _ configuration: PipelineConfiguration, _ change: (inout VerifyRun.Request) -> Void = { _ in }
  ) async -> (word: String, code: ExitCode)? {
    do {
      _ = try await self.verify(configuration, change)
      return nil
    } catch {
      let failure = RunFailure(error)
      return (failure.word, failure.exitCode)
    }
  }

  @Test("A complete copy is equal, and a cancelled comparison does not wait for the org")
  func equal() async throws {
    let (pipeline, configuration) = try await self.pipeline()
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.reason == "caught_up", "\(run.report.message ?? "")")
    let report = try await self.verify(configuration) { $0.depth = .full }
    #expect(report.verdict == .equal, "\(report.text)")
    #expect(report.entries.map(\.findings.equal) == [Self.count])
    #expect(report.obstacles.isEmpty && report.apiCalls > 0)
    try await pipeline.org.fault(#"{"method":"BulkCreate","action":"job_stuck"}"#)
    let task = Task {
      try await VerifyRun(configuration: configuration, request: .init(), remark: { _ in }).run()
    }
    task.cancel()
    await #expect {
      _ = try await task.value
    } throws: {
      RunFailure($0).reason != .noProgress
    }
    await pipeline.org.stop()
  }

  @Test("A command without a copy to compare is refused before the login")
  func refused() async throws {
    let (pipeline, configuration) = try await self.pipeline()
    // Nobody answers.
    await pipeline.org.stop()
    let changesOnly = try pipeline.load()
    #expect(await self.reason(changesOnly)?.word == "no_sink")
    #expect(await self.reason(changesOnly)?.code == .usage)
    let unknown = await self.reason(configuration) { $0.entities = ["Nothing"] }
    #expect(unknown?.word == "unknown_entity" && unknown?.code == .usage)
    #expect(await self.reason(configuration) { $0.repairs = true }?.word == "no_repair")
  }

  @Test("A copy that no run has begun is incomplete")
  func incomplete() async throws {
    let (pipeline, configuration) = try await self.pipeline()
    let reason = await self.reason(configuration)
    #expect(reason?.word == "incomplete" && reason?.code == .tryAgain)
    await pipeline.org.stop()
  }
}
