import Bytes
import Checkpoint
import Clocks
import EventLoop
import JSON
import Logging
import OrgTestSupport
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Incidents of runs") struct IncidentRunTests {
  private static let wrong = ["SF_CLIENT_SECRET": "wrong-secret"]
  private static let some = #"run.until={"events":5}"#

  /// Collects the levels and texts of a log.
  private final class Said: Sendable {
    private let lines = Lock<[String]>([])

    func add(_ line: String) { self.lines.withLock { $0.append(line) } }

    /// What was said since the last call that begins with a level.
    func take(_ level: String) -> [String] {
      self.lines.withLock { lines in
        defer { lines = [] }
        return lines.filter { $0.hasPrefix("\(level): ") }
      }
    }
  }

  private func makeRun(
    _ pipeline: SimulatedPipeline, _ configuration: PipelineConfiguration, _ said: Said
  ) throws -> PipelineRun {
    try pipeline.makeRun(configuration, onLine: said.add)
  }

  /// A pipeline whose notices go to the lines of a file.
  private static func sets(_ directory: String) -> [String] {
    [
      self.some,
      #"notify.command=["sh","-c","{ cat; echo; } >>$0","\#(directory)/notices"]"#,
    ]
  }

  private func notices(_ configuration: PipelineConfiguration) throws -> [JSONValue] {
    let path = "\(configuration.base)/notices"
    guard FilePath.exists(path) else { return [] }
    return try TextFile.read(path).split(separator: UInt8(ascii: "\n")).map {
      try JSONValue(parsing: Array($0))
    }
  }

  @Test("Without cron, each failure is printed; calls tell of the first one, and of the end")
  func failure() async throws {
    let pipeline = try await SimulatedPipeline(events: 20)
    let sets = Self.sets(pipeline.base)
    let said = Said()
    for _ in 0..<4 {
      let run = try self.makeRun(
        pipeline, try pipeline.load(sets: sets, environment: Self.wrong), said)
      await run.execute()
      #expect(run.report.exitCode == .refused)
      let errors = said.take("error")
      #expect(errors.count == 1, "\(errors)")
    }
    let configuration = try pipeline.load(sets: sets)
    let stored = try TextFile.read(configuration.statePaths.incidents)
    #expect(!String(decoding: stored, as: UTF8.self).contains("wrong-secret"))
    let status = try PipelineStatus.read(configuration, maxAge: nil)
    #expect(status.incidents.map(\.kind) == [.failing])
    #expect(status.incidents.first?.count == 4)
    #expect(status.text.contains("\nincident      failing since "))
    for number in 0..<2 {
      let run = try self.makeRun(pipeline, configuration, said)
      await run.execute()
      #expect(run.report.exitCode == .success)
      let notices = said.take("notice")
      #expect(notices.count == (number == 0 ? 1 : 0), "\(notices)")
      #expect(notices.allSatisfy { $0.hasPrefix("notice: the pipeline works again after ") })
    }
    let notices = try self.notices(configuration)
    #expect(notices.map { $0["event"] } == ["begin", "end"])
    #expect(notices.allSatisfy { $0["incident"] == "failing" && $0["exit_code"] == 77 })
    #expect(notices.last?["count"] == 4)
    #expect(!notices.contains { $0.text().contains("wrong-secret") })
    #expect(!FilePath.exists(configuration.statePaths.incidents))
    await pipeline.org.stop()
  }

  @Test("Two killed runs in a row are an incident, of which the next run tells when it begins")
  func killed() async throws {
    let pipeline = try await SimulatedPipeline(events: 40)
    let configuration = try pipeline.load(sets: Self.sets(pipeline.base))
    let said = Said()
    let ledger = RunLedger(paths: configuration.statePaths)
    var sample = LedgerSample(seed: 1)
    func run() async throws -> [String] {
      let run = try self.makeRun(pipeline, configuration, said)
      await run.execute()
      #expect(run.report.exitCode == .success)
      return said.take("info").filter { $0.contains("left no report") }
    }
    func kill(_ command: RunBeginning.Command = .run) throws {
      var beginning = sample.beginning()
      beginning.beganAt = UTCTime.now() + 5000
      beginning.command = command
      try ledger.append(.began(beginning), hiding: SecretMask())
    }
    #expect(try await run().isEmpty)
    try kill()
    #expect(ledger.unreported.count == 1)
    #expect(try await run().isEmpty)
    try kill()
    try kill()
    let killed = ledger.unreported
    #expect(killed.count == 2)
    let lines = try await run()
    #expect(lines.count == 1)
    #expect(lines.first?.contains("the last 2 runs left no report") == true, "\(lines)")
    let notices = try self.notices(configuration)
    #expect(notices.map { $0["event"] } == ["begin", "end"])
    #expect(notices.map { $0["reason"] } == ["killed", "killed"])
    #expect(notices.map { $0["count"] } == [2, 2])
    #expect(
      notices.allSatisfy {
        $0["since"]?.string == killed.last.map { UTCTime.timestamp(milliseconds: $0.beganAt) }
      })
    #expect(ledger.unreported.isEmpty)
    try kill(.snapshot)
    try kill(.snapshot)
    #expect(try await run().isEmpty)
    // A run that stored a position before it was killed got somewhere.
    for _ in 0..<2 {
      var beginning = sample.beginning()
      beginning.beganAt = 1
      beginning.command = .run
      try ledger.append(.began(beginning), hiding: SecretMask())
    }
    #expect(try await run().isEmpty)
    #expect(try await run().isEmpty)
    await pipeline.org.stop()
  }

  @Test(
    "A call that fails or hangs changes no exit code, is said once, and repeated by the next run")
  func failingCall() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let said = Said()
    for number in 1...3 {
      let configuration = try pipeline.load(
        sets: [Self.some, #"notify.command=["sh","-c","exit 1"]"#], environment: Self.wrong)
      let run = try self.makeRun(pipeline, configuration, said)
      await run.execute()
      #expect(run.report.exitCode == .refused)
      let warnings = said.take("warning").filter { $0.contains("the call of notify") }
      #expect(warnings.count == (number == 1 ? 1 : 0), "\(warnings)")
      #expect(
        IncidentFile(paths: configuration.statePaths, secrets: configuration.secrets).load()?[
          .failing]?.attempts == number)
    }
    let configuration = try pipeline.load(sets: Self.sets(pipeline.base))
    let run = try self.makeRun(pipeline, configuration, said)
    await run.execute()
    #expect(run.report.exitCode == .success)
    let notices = try self.notices(configuration)
    #expect(notices.map { $0["event"] } == ["begin", "end"])
    #expect(notices.first?["attempt"] == 4)
    await pipeline.org.stop()
  }

  @Test("A state that cannot be stored silences nobody")
  func unwritable() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let said = Said()
    let configuration = try pipeline.load(
      sets: Self.sets(pipeline.base), environment: Self.wrong)
    // In place of the file of incidents, which cannot be replaced by a rename then.
    try runProgram("mkdir", "-p", "\(configuration.statePaths.incidents)/full")
    for _ in 0..<2 {
      let run = try self.makeRun(pipeline, configuration, said)
      await run.execute()
      #expect(run.report.exitCode == .refused)
      #expect(said.take("error").count == 1)
    }
    #expect(try self.notices(configuration).map { $0["event"] } == ["begin", "begin"])
    await pipeline.org.stop()
  }

  @Test("A run that another one keeps from running, and one that is stopped, change nothing")
  func unknown() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let said = Said()
    let sets = Self.sets(pipeline.base)
    let wrong = try pipeline.load(sets: sets, environment: Self.wrong)
    await (try self.makeRun(pipeline, wrong, said)).execute()
    let before = try TextFile.read(wrong.statePaths.incidents)
    let lock = try FileCheckpointStore(
      directory: wrong.checkpoint.directory, pipeline: "opps", isRun: false)
    let configuration = try pipeline.load(sets: sets)
    await (try self.makeRun(pipeline, configuration, said)).execute()
    #expect(try TextFile.read(wrong.statePaths.incidents) == before)
    withExtendedLifetime(lock) {}
    await pipeline.org.stop()
  }

  @Test("Mistakes in a pipeline file are an incident of a pipeline that has run")
  func mistakes() async throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: 1_771_300_995_000)])
    let text = SamplePipeline.minimal.replacing(#""type": "files""#, with: #""type": "fils""#)
    try state.sample.write(text)
    let file = "\(state.sample.base)/pipeline.json"
    let error = try #require(throws: ConfigurationError.self) {
      try PipelineConfiguration.load(file: file, environment: Environment([:]))
    }
    let place = PipelineConfiguration.incidentPlace(
      file: file, root: nil, overrides: [], environment: Environment([:]))
    #expect(place?.name == "opps")
    #expect(place?.checkpoint.directory == state.paths.directory)
    func isShown(_ place: PipelineConfiguration?, isMailed: Bool) async -> Bool {
      var count = 0
      await IncidentWatch.misconfigured(place, error, isMailed: isMailed) { count += 1 }
      return count == 1
    }
    #expect(await isShown(place, isMailed: true))
    #expect(await !isShown(place, isMailed: true))
    #expect(await isShown(place, isMailed: false))
    let book = IncidentFile(paths: state.paths, secrets: SecretMask()).load()
    #expect(book?[.failing]?.finding.reason == "pipeline_file")
    #expect(book?[.failing]?.finding.exitCode == 78)
    #expect(book?[.failing]?.count == 3)
    // A mistake in these parts, or no state: nothing is kept, and everything shown.
    try state.sample.write("{")
    let none = PipelineConfiguration.incidentPlace(
      file: file, root: nil, overrides: [], environment: Environment([:]))
    #expect(none?.name == nil)
    #expect(await isShown(nil, isMailed: true))
  }

  @Test("Thresholds are told when they are crossed and when that is over")
  func thresholds() async throws {
    let pipeline = try await SimulatedPipeline(events: 5)
    let said = Said()
    let sets = Self.sets(pipeline.base) + ["notify.position_age=1h", "notify.lag=1h"]
    let configuration = try pipeline.load(sets: sets)
    await (try self.makeRun(pipeline, configuration, said)).execute()
    #expect(try self.notices(configuration).isEmpty)
    // As if the pipeline had not run for a while.
    let store = try FileCheckpointStore(
      directory: configuration.checkpoint.directory, pipeline: "opps")
    var document = try #require(try store.load())
    for topic in document.topics.keys {
      let confirmed = try #require(document.topics[topic]?.confirmedAt)
      document.topics[topic]?.confirmedAt = confirmed - 7_200_000
      document.topics[topic]?.completeThrough = confirmed - 7_200_000
    }
    func look() async {
      let watch = IncidentWatch(
        configuration, clock: ProcessClock(), logger: pipeline.logger(said.add), isMailed: true)
      watch.begin()
      watch.compared()
      await watch.deliver()
    }
    try store.save(document)
    for _ in 0..<3 { await look() }
    #expect(
      try self.notices(configuration).map { $0["incident"]?.string } == ["lag", "position_age"])
    for topic in document.topics.keys {
      document.topics[topic]?.confirmedAt = ProcessClock().wallTime
      document.topics[topic]?.completeThrough = ProcessClock().wallTime
    }
    try store.save(document)
    for _ in 0..<3 { await look() }
    #expect(
      try self.notices(configuration).map { $0["event"]?.string }
        == ["begin", "begin", "end", "end"])
    withExtendedLifetime(store) {}
    await pipeline.org.stop()
  }

  @Test(
    "A follower that retries for longer than other runs would has an incident until it is connected"
  )
  func follower() async throws {
    let state = try StateSample(sets: ["retry.give_up_after=10m"])
    try state.store([StateSample.topic: state.position(confirmedAt: 1_771_300_995_000)])
    let watch = IncidentWatch(
      state.configuration, clock: ProcessClock(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
      isMailed: false)
    let file = IncidentFile(paths: state.paths, secrets: SecretMask())
    let now = ProcessClock().wallTime
    func wait(since age: Int64, isRefusal: Bool = false) -> RetryLedger.Wait {
      RetryLedger.Wait(
        place: .login, code: nil, message: "no answer", isRefusal: isRefusal, since: now - age,
        attempts: 3, nextAttemptAt: now)
    }
    watch.begin()
    watch.look()
    watch.waits(for: [wait(since: 60_000)])
    watch.look()
    #expect(file.load() == IncidentBook())
    watch.waits(for: [wait(since: 660_000)])
    watch.look()
    watch.look()
    #expect(file.load()?[.failing]?.finding.exitCode == 69)
    #expect(file.load()?[.failing]?.count == 1)
    watch.waits(for: [])
    watch.look()
    // Not connected yet.
    #expect(file.load()?[.failing] != nil)
    watch.connected()
    watch.look()
    #expect(file.load() == IncidentBook())
    watch.waits(for: [wait(since: 0, isRefusal: true)])
    watch.look()
    #expect(file.load()?[.failing]?.finding.exitCode == 77)
  }
}
