import Checkpoint
import EventLoop
import Glibc
import JSON
import OrgTestSupport
import Pipeline
import PubSubSimulator
import Testing

@testable import PubSubETL

@Suite("Runs in the ledger") struct LedgerOfRunsTests {
  @Test("Every run leaves its figures, those that fail and that are killed included")
  func runs() async throws {
    let pipeline = try await SimulatedPipeline(events: 30)
    let sets = [#"run.until={"events":10}"#]
    var reports: [RunReport] = []
    let configuration = try pipeline.load(sets: sets)
    for environment in [[:], ["SF_CLIENT_SECRET": "wrong-secret"], [:]] {
      let run = try pipeline.makeRun(try pipeline.load(sets: sets, environment: environment))
      await run.execute()
      reports.append(run.report)
    }
    let killed = RunBeginning(
      id: RunID(7), version: "1", command: .run, processID: 1, beganAt: 1_771_300_000_000)
    try RunLedger(paths: configuration.statePaths).append(.began(killed), hiding: SecretMask())
    let snapshot = try pipeline.makeRun(configuration, purpose: .snapshot(where: nil))
    await snapshot.execute()
    let history = try RunHistory.read(configuration.statePaths)
    #expect(history.damagedCount == 0 && history.items.count == 5)
    #expect(history.items[3] == .unreported(killed))
    let records = history.items.compactMap { item -> RunRecord? in
      if case .run(let record) = item { record } else { nil }
    }
    #expect(records.map(\.beginning.id) == (reports + [snapshot.report]).map(\.runID))
    #expect(records.map(\.beginning.command) == [.run, .run, .run, .snapshot])
    #expect(records.prefix(3).map(\.exitCode) == [0, 77, 0])
    for (record, report) in zip(records, reports) {
      #expect(record.reason == report.reason)
      #expect(record.message == report.message)
      #expect(record.counts.events == report.topics.reduce(0) { $0 + $1.events })
      #expect(record.counts.bytes == report.sinks.reduce(0) { $0 + $1.bytes })
      #expect(record.counts.files == report.sinks.reduce(0) { $0 + Int64($1.files) })
      #expect(record.counts.commits == report.commits)
      #expect(record.endedAt == report.finishedAt)
    }
    #expect(records[0].counts.events == 10 && records[0].counts.commits > 0)
    // Two files if midnight is among the hours of these events.
    #expect(records[0].counts.bytes > 0 && [1, 2].contains(records[0].counts.files))
    #expect(records[1].topics.isEmpty)
    // One run continues where the one before has ended.
    let (first, second) = (try #require(records[0].topics.first), records[2].topics.first)
    #expect(first.begin?.ordinal == 0 && first.end?.ordinal == 10)
    #expect(second?.begin == first.end && second?.end?.ordinal == 20)
    #expect(first.lag != nil)
    await pipeline.org.stop()
  }

  @Test("A ledger that cannot be written is a warning, and the run succeeds")
  func unwritable() async throws {
    let pipeline = try await SimulatedPipeline(events: 3)
    let configuration = try pipeline.load()
    let paths = configuration.statePaths
    mkdir(paths.directory, 0o750)
    mkdir(paths.runs, 0o750)
    let messages = Lock<[String]>([])
    let run = try pipeline.makeRun(configuration) { message in
      messages.withLock { $0.append(message) }
    }
    await run.execute()
    #expect(run.report.exitCode == .success)
    #expect(
      messages.withLock { $0 }.filter { $0.contains("the ledger of runs") }.count == 2)
    let failure = #expect(throws: RunFailure.self) { try RunHistory.read(paths) }
    #expect(failure?.exitCode == .output)
    await pipeline.org.stop()
  }
}
