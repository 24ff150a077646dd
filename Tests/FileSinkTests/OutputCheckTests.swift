import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// What a run finds of the files that earlier runs finished.
@Suite("Lost output")
struct OutputCheckTests {
  private let fileSystem = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()

  private func sink(
    directory: String = "/out", _ policy: FileSinkConfiguration.MissingPolicy = .fail,
    accepts: Bool = false
  ) -> FileSink {
    FileSink(
      FileSinkConfiguration(
        directory: directory, rotation: .init(maxEventCount: 1), pipeline: "opps", org: "00D",
        whenMissing: policy, acceptsMissing: accepts),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
  }

  private static func path(_ number: Int, _ entity: String = "Opportunity") -> String {
    "/out/\(entity)/commit_date=2026-02-17/opps-ChangeEvents-e1-00000000000\(number).ndjson.zst"
  }

  private static let manifest = "/out/_manifest.ndjson"

  /// A run that finishes a file for each event: 0, 2 and 4 of Opportunity, 1 and 3 of Account.
  private func firstRun() throws -> JSONValue {
    let events = (0..<5).map {
      TestEvent(
        number: $0, topic: "/data/ChangeEvents", entity: $0 % 2 == 0 ? "Opportunity" : "Account")
    }
    return try self.run(events, from: nil)
  }

  private func run(
    _ events: [TestEvent], from state: JSONValue?, accepts: Bool = false
  ) throws -> JSONValue {
    let sink = self.sink(accepts: accepts)
    let survey = try sink.survey(from: state)
    #expect(survey.acceptedFaults.isEmpty || accepts)
    try sink.recover(survey)
    for batch in self.batches.batches(events[...]) { try sink.write(batch) }
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    let state = try sink.flush(finish: true)
    self.fileSystem.kill()
    return state
  }

  enum Loss: CaseIterable {
    case nothing, oldest, allOfAnEntity, all, newest, middle, cut, grown, manifest, everything
    case olderManifest

    var isNoticed: Bool {
      switch self {
      // A loader that deletes what it has read begins with the oldest.
      case .nothing, .oldest, .allOfAnEntity, .all: false
      default: true
      }
    }

    var isNoticedWhenIgnored: Bool { self == .cut || self == .grown }

    /// What the message has to name.
    var place: String {
      switch self {
      case .newest: path(4)
      case .middle: path(2)
      case .cut, .grown: path(0)
      default: OutputCheckTests.manifest
      }
    }

    private func path(_ number: Int) -> String { OutputCheckTests.path(number) }
  }

  private func lose(_ loss: Loss) throws {
    func delete(_ files: [String]) { for file in files { self.fileSystem.delete(file) } }
    let opportunities = [0, 2, 4].map { Self.path($0) }
    let accounts = [1, 3].map { Self.path($0, "Account") }
    switch loss {
    case .nothing: break
    case .oldest: delete([opportunities[0], opportunities[1], accounts[0]])
    case .allOfAnEntity: delete(accounts)
    case .all: delete(opportunities + accounts)
    case .newest: delete([opportunities[2]])
    case .middle: delete([opportunities[1]])
    case .cut, .grown:
      let content = try #require(self.fileSystem.files[opportunities[0]])
      self.fileSystem.put(opportunities[0], loss == .cut ? content.dropLast() : content + [0])
    case .manifest: delete([Self.manifest])
    case .everything: delete(Array(self.fileSystem.files.keys))
    case .olderManifest:
      let lines = try #require(self.fileSystem.files[Self.manifest])
        .split(separator: UInt8(ascii: "\n"))
      self.fileSystem.put(
        Self.manifest, Array(lines.dropLast().joined(separator: [10])) + [10])
    }
  }

  private func failure(_ sink: FileSink, from state: JSONValue) -> FileSinkError? {
    do {
      _ = try sink.survey(from: state)
      return nil
    } catch {
      return error as? FileSinkError
    }
  }

  @Test(
    "Lost output is noticed at the start, unless a loader may have taken it",
    arguments: Loss.allCases)
  func noticed(loss: Loss) throws {
    let state = try self.firstRun()
    try self.lose(loss)
    let before = self.fileSystem.files
    let failure = self.failure(self.sink(), from: state)
    if loss == .olderManifest {
      // Known before, as a file that nobody knows.
      #expect(failure?.code == .lostOutput || failure?.code == .unknownFile)
    } else {
      #expect(failure?.code == (loss.isNoticed ? .lostOutput : nil))
    }
    if loss.isNoticed {
      let message = try #require(failure?.message)
      #expect(message.contains(loss.place), "\(message)")
      if failure?.code == .lostOutput { #expect(message.contains("run --accept-missing")) }
    }
    if [.manifest, .everything].contains(loss) {
      #expect(self.fileSystem.files == before, "nothing is made where a disk may be missing")
    }
  }

  @Test(
    "Missing files count as loaded if the configuration ignores them; changed files do not",
    arguments: Loss.allCases)
  func ignored(loss: Loss) throws {
    let state = try self.firstRun()
    try self.lose(loss)
    let failure = self.failure(self.sink(.ignore), from: state)
    if loss == .olderManifest || loss == .manifest {
      // The files themselves are there, and nobody knows them.
      #expect(failure?.code == .unknownFile)
    } else {
      #expect((failure?.code == .lostOutput) == loss.isNoticedWhenIgnored)
    }
  }

  @Test(
    "Accepted lost output is not reported again by later runs",
    arguments: [Loss.newest, .middle, .cut, .grown, .everything])
  func accepted(loss: Loss) throws {
    let state = try self.firstRun()
    try self.lose(loss)
    let sink = self.sink(accepts: true)
    let survey = try sink.survey(from: state)
    #expect(survey.acceptedFaults.count == 1)
    self.fileSystem.kill()
    func event(_ number: Int) -> TestEvent {
      TestEvent(number: number, topic: "/data/ChangeEvents")
    }
    var next = try self.run([event(5)], from: state, accepts: true)
    next = try self.run([event(6)], from: next)
    next = try self.run([], from: next)
    #expect(self.failure(self.sink(), from: next) == nil)
    self.fileSystem.kill()
    // What is lost afterwards is noticed.
    self.fileSystem.delete(Self.path(6))
    #expect(self.failure(self.sink(), from: next)?.code == .lostOutput)
  }

  @Test(
    "A directory without the files of the last run is refused, and made only once that is accepted",
    arguments: [FileSinkConfiguration.MissingPolicy.fail, .ignore])
  func otherDirectory(policy: FileSinkConfiguration.MissingPolicy) throws {
    let state = try self.firstRun()
    let failure = self.failure(self.sink(directory: "/elsewhere", policy), from: state)
    #expect(failure?.code == .otherDirectory)
    let message = try #require(failure?.message)
    for part in ["/out", "/elsewhere", "_manifest.ndjson", "--accept-missing", "\"name\""] {
      #expect(message.contains(part), "\(message)")
    }
    #expect(!self.fileSystem.files.keys.contains { $0.hasPrefix("/elsewhere/") })

    let accepting = self.sink(directory: "/elsewhere", policy, accepts: true)
    #expect(try accepting.survey(from: state).acceptedFaults.count == 1)
    let next = try accepting.flush(finish: true)
    self.fileSystem.kill()
    #expect(self.failure(self.sink(directory: "/elsewhere", policy), from: next) == nil)
  }

  @Test("After a change of the directory was accepted, the old one is refused in turn")
  func backAgain() throws {
    let state = try self.firstRun()
    let accepting = self.sink(directory: "/elsewhere", .ignore, accepts: true)
    try accepting.recover(accepting.survey(from: state))
    for batch in TestBatches().batches([TestEvent(number: 9)]) { try accepting.write(batch) }
    _ = try accepting.flush(finish: true)
    _ = try accepting.committed()
    let next = try accepting.flush(finish: true)
    self.fileSystem.kill()
    #expect(self.failure(self.sink(.ignore), from: next)?.code == .otherDirectory)
  }

  @Test("A directory that was moved with its manifest continues, with the records that were read")
  func movedDirectory() throws {
    let state = try self.firstRun()
    for (path, content) in self.fileSystem.files where path.hasPrefix("/out/") {
      self.fileSystem.put("/elsewhere" + path.dropFirst(4), content)
      self.fileSystem.delete(path)
    }
    let moved = self.sink(directory: "/elsewhere")
    #expect(try moved.survey(from: state).acceptedFaults == [])
    #expect(try moved.flush(finish: true)["last_finished"] == state["last_finished"])
  }

  @Test("Another directory is accepted as long as nothing was finished in the first one")
  func nothingFinished() {
    let state: JSONValue = ["directory": "/out", "files": []]
    #expect(self.failure(self.sink(directory: "/elsewhere"), from: state) == nil)
  }

  @Test("Dead letters are not forgotten in the directory of the last run")
  func deadLetters() throws {
    func letters(_ directory: String) -> DeadLetterFile {
      DeadLetterFile(
        directory: directory, pipeline: "opps", org: "00D", fileSystem: self.fileSystem,
        clock: self.clock.sinkClock)
    }
    let first = letters("/dead")
    try first.recover(from: nil)
    try first.append(ScriptedRun.letter(TestEvent(number: 1)))
    _ = try first.flush(finish: true)
    _ = try first.committed()
    var state = try first.flush(finish: true)
    for _ in 0..<2 {
      self.fileSystem.kill()
      let error = #expect(throws: FileSinkError.self) {
        try letters("/elsewhere").recover(from: state)
      }
      #expect(error?.code == .otherDirectory)
      self.fileSystem.kill()
      // A run without letters does not forget them either.
      let next = letters("/dead")
      try next.recover(from: state)
      state = try next.flush(finish: true)
    }
  }

  @Test("Output is not checked against an earlier version's checkpoint, but the next run checks it")
  func earlierVersion() throws {
    let state = try self.firstRun()
    let old: JSONValue = ["directory": state["directory"] ?? nil, "files": []]
    let next = try self.run([], from: old)
    #expect(next["last_finished"]?.string == String(Self.path(4).dropFirst(5)))
  }

  @Test("The loss of a file in progress together with its directory can be accepted")
  func inProgress() throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    let plain = FileSink(
      FileSinkConfiguration(
        directory: "/plain", pipeline: "opps", org: "00D", whenMissing: .fail),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    try plain.recover(from: nil)
    for batch in self.batches.batches([TestEvent(number: 0)]) { try plain.write(batch) }
    let state = try plain.flush(finish: false)
    self.fileSystem.kill()
    for path in self.fileSystem.files.keys where path.hasPrefix("/plain") {
      self.fileSystem.delete(path)
    }
    func survey(accepts: Bool) throws -> FileSurvey {
      defer { self.fileSystem.kill() }
      return try FileSink(
        FileSinkConfiguration(
          directory: "/plain", pipeline: "opps", org: "00D", whenMissing: .fail,
          acceptsMissing: accepts),
        fileSystem: self.fileSystem, clock: self.clock.sinkClock
      ).survey(from: state)
    }
    #expect(throws: FileSinkError.self) { try survey(accepts: false) }
    #expect(try survey(accepts: true).acceptedFaults.count == 1)
  }

  @Test("Files that other pipelines exported are recognized, each with its topics")
  func otherPipelines() throws {
    _ = try self.firstRun()
    let other = FileSink(
      FileSinkConfiguration(directory: "/out", pipeline: "renamed", org: "00D"),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    _ = try other.survey(from: nil)
    #expect(other.history.isEmpty)
    #expect(other.history.others == [.init(pipeline: "opps", topic: "/data/ChangeEvents")])
    let foreign = FileSink(
      FileSinkConfiguration(directory: "/out", pipeline: "third", org: "00E"),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    _ = try foreign.survey(from: nil)
    #expect(foreign.history.others.isEmpty)
  }
}
