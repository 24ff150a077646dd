import Clocks
import EventLoop
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
      configuration: configuration, request: request, progress: .saying { Issue.record("\($0)") }
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
      try await VerifyRun(
        configuration: configuration, request: .init(), progress: .saying { _ in }
      ).run()
    }
    task.cancel()
    await #expect {
      _ = try await task.value
    } throws: {
      RunFailure($0).reason != .noProgress
    }
    await pipeline.org.stop()
  }

  @Test("What differs is read again after one wait, which a remark explains")
  func differing() async throws {
    let (pipeline, configuration) = try await self.pipeline()
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.reason == "caught_up", "\(run.report.message ?? "")")
    // A filter that was added later makes every record differ.
    let filtered = try pipeline.load(sets: [
      "source.snapshot.mode=initial", "source.snapshot.visibility_wait=1s",
      #"stages=[{"type":"filter","where":"Name == 'nobody has this name'"}]"#,
    ])
    let remarks = Lock<[String]>([])
    let report = try await VerifyRun(
      configuration: filtered, request: .init(),
      progress: .saying { remark in remarks.withLock { $0.append(remark) } }
    ).run()
    #expect(report.verdict == .drift, "\(report.text)")
    #expect(report.entries.map(\.findings.outside) == [Self.count])
    let said = remarks.withLock { $0 }
    #expect(said.count == 1)
    #expect(
      said.first?.hasPrefix("\(Self.count) records of Opportunity differ; reading them again in ")
        == true, "\(said)")
    #expect(
      said.first?.hasSuffix(
        "because changes of the last 1 s may not be visible to every reader yet\n") == true)
    await pipeline.org.stop()
  }

  /// Lets steps go on in twos.
  private actor Pairs {
    private var waiting: CheckedContinuation<Void, Never>?
    private(set) var active = 0
    private(set) var maxActive = 0

    func begin() async {
      self.active += 1
      self.maxActive = max(self.maxActive, self.active)
      if let other = self.waiting {
        self.waiting = nil
        return other.resume()
      }
      await withCheckedContinuation { self.waiting = $0 }
    }

    func end() { self.active -= 1 }
  }

  @Test("On a terminal, a line tells what is read, and how long a wait will take")
  func progress() async throws {
    var work = VerifyProgress.Work(
      partCount: 3, comparedCount: 1, reading: ["Account", "Opportunity"], recordCount: 192_252)
    #expect(
      work.line == "0/s  192,252 records read  1 of 3 compared  reading Account, Opportunity")
    work.reading = []
    #expect(work.line == "0/s  192,252 records read  1 of 3 compared")
    let clock = ProcessClock()
    let shown = Lock<[String]>([])
    let progress = VerifyProgress(
      console: ErrorConsole { text, _ in
        shown.withLock { $0.append(text.text) }
        return true
      }, secrets: SecretMask(), clock: clock, isShown: true)
    progress.begin(partCount: 1)
    progress.reads("Account")
    try await progress.wait(until: clock.now + .milliseconds(1100))
    let lines = shown.withLock { $0 }
    #expect(lines.first?.contains("0 of 1 compared") == true, "\(lines)")
    #expect(lines.contains { $0.contains("reading again in 1 s") }, "\(lines)")
  }

  @Test("Steps run side by side up to the limit, and their results have the order of the inputs")
  func sideBySide() async throws {
    let pairs = Pairs()
    let sideBySide = SideBySide(
      limit: 2, visibilityWait: .zero, clock: ProcessClock(), progress: .saying { _ in })
    let outputs = try await sideBySide.each(Array(0..<6)) { input in
      await pairs.begin()
      await pairs.end()
      return input * 2
    }
    #expect(outputs == [0, 2, 4, 6, 8, 10])
    #expect(await pairs.maxActive == 2)
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

extension VerifyProgress {
  /// Not on a terminal.
  static func saying(_ body: @escaping @Sendable (String) -> Void) -> VerifyProgress {
    VerifyProgress(
      console: ErrorConsole { text, _ in
        body(text.text)
        return true
      }, secrets: SecretMask(), clock: ProcessClock(), isShown: false)
  }
}
