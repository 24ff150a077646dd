import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Other processes that change files while a run writes them: log rotation, clean-up jobs, editors.
@Suite("Interference with open files")
struct InterferenceTests {
  enum Kind: String, CaseIterable {
    case truncated = "truncated"
    case replaced = "replaced"
    case removed = "removed"
    case extended = "appended to"

    /// What the next run finds when the file in progress is like that; nil when it recovers all.
    var nextFailure: FileSinkError.Code? {
      switch self {
      case .truncated, .replaced: .inconsistent
      case .removed: .lostOutput
      case .extended: nil
      }
    }
  }

  private let fileSystem = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()
  private static let part =
    "/out/Opportunity/commit_date=2026-02-17/.opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst.part"
  private static let final =
    "/out/Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst"
  private static let manifest = "/out/_manifest.ndjson"

  private func sink(
    _ policy: FileSinkConfiguration.MissingPolicy = .fail, maxEventCount: Int = 1_000_000
  ) -> FileSink {
    FileSink(
      FileSinkConfiguration(
        directory: "/out", rotation: .init(maxEventCount: maxEventCount), pipeline: "opps",
        org: "00D", whenMissing: policy),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
  }

  private func write(_ numbers: ClosedRange<Int>, to sink: FileSink) throws {
    for batch in self.batches.batches(numbers.map { TestEvent(number: $0) }[...]) {
      try sink.write(batch)
    }
  }

  private func interfere(_ kind: Kind, with path: String) throws {
    let content = try #require(self.fileSystem.files[path])
    switch kind {
    case .truncated: self.fileSystem.put(path, [])
    case .extended: self.fileSystem.put(path, content + [1, 2, 3])
    case .removed: self.fileSystem.delete(path)
    case .replaced:
      self.fileSystem.delete(path)
      // The size alone does not show it.
      self.fileSystem.put(path, content.map { $0 ^ 1 })
    }
  }

  private func expectFailure(_ kind: Kind, of path: String, _ body: () throws -> Void) throws {
    let error = #expect(throws: FileSinkError.self, performing: body)
    #expect(error?.code == .io)
    let message = try #require(error?.message)
    #expect(message.contains(path) && message.contains(kind.rawValue), "\(message)")
  }

  @Test(
    "A file in progress that another process changes ends the run, and nothing is lost or finished",
    arguments: Kind.allCases)
  func openFile(kind: Kind) throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write(0...1, to: sink)
    let state = try sink.flush(finish: false)
    _ = try sink.committed()
    try self.interfere(kind, with: Self.part)
    try self.write(2...2, to: sink)
    try self.expectFailure(kind, of: Self.part) { _ = try sink.flush(finish: true) }
    #expect(throws: FileSinkError.self) { _ = try sink.committed() }
    #expect(self.fileSystem.files[Self.final] == nil)
    self.fileSystem.kill()

    let next = self.sink()
    guard let code = kind.nextFailure else {
      try next.recover(from: state)
      let content = try #require(self.fileSystem.files[Self.final])
      #expect(try Decompression.lines(of: content).count == 2)
      return
    }
    let error = #expect(throws: FileSinkError.self) { try next.recover(from: state) }
    #expect(error?.code == code)
    #expect(self.fileSystem.files[Self.final] == nil)
  }

  @Test("What was never committed is read again", arguments: Kind.allCases)
  func uncommitted(kind: Kind) throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write(0...1, to: sink)
    // Its state never reaches a checkpoint.
    _ = try sink.flush(finish: false)
    try self.interfere(kind, with: Self.part)
    try self.write(2...2, to: sink)
    try self.expectFailure(kind, of: Self.part) { _ = try sink.flush(finish: true) }
    self.fileSystem.kill()
    try self.sink().recover(from: nil)
    #expect(self.fileSystem.files[Self.part] == nil)
    #expect(self.fileSystem.files[Self.final] == nil)
  }

  @Test("A file that is cut after its last commit does not get its name", arguments: Kind.allCases)
  func announcedFile(kind: Kind) throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write(0...1, to: sink)
    let state = try sink.flush(finish: true)
    // Nothing holds the file open any more, so that only its size and its name can be checked.
    guard kind != .replaced else { return }
    try self.interfere(kind, with: Self.part)
    if kind == .extended {
      _ = try sink.committed()
      let content = try #require(self.fileSystem.files[Self.final])
      #expect(try Decompression.lines(of: content).count == 2)
      return
    }
    try self.expectFailure(kind, of: Self.part) { _ = try sink.committed() }
    #expect(self.fileSystem.files[Self.final] == nil)
    self.fileSystem.kill()
    let error = #expect(throws: FileSinkError.self) { try self.sink().recover(from: state) }
    #expect(error?.code == kind.nextFailure)
  }

  @Test("A dead-letter file that another process truncates ends the run")
  func deadLetters() throws {
    let letters = DeadLetterFile(
      directory: "/dead", pipeline: "opps", org: "00D", fileSystem: self.fileSystem,
      clock: self.clock.sinkClock)
    try letters.recover(from: nil)
    try letters.append(ScriptedRun.letter(TestEvent(number: 1)))
    _ = try letters.flush(finish: false)
    let part = try #require(self.fileSystem.files.keys.first { $0.hasSuffix(".part") })
    try self.interfere(.truncated, with: part)
    try letters.append(ScriptedRun.letter(TestEvent(number: 2)))
    try self.expectFailure(.truncated, of: part) { _ = try letters.flush(finish: false) }
  }

  @Test(
    "A manifest that another process shortens or replaces ends the run",
    arguments: [Kind.truncated, .replaced, .removed])
  func manifest(kind: Kind) throws {
    let sink = self.sink(maxEventCount: 1)
    try sink.recover(from: nil)
    try self.write(0...0, to: sink)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    try self.interfere(kind, with: Self.manifest)
    try self.write(1...1, to: sink)
    _ = try sink.flush(finish: true)
    try self.expectFailure(kind, of: Self.manifest) { _ = try sink.committed() }
  }

  @Test("Where a loader may remove the manifest, the run makes a new one")
  func manifestOfLoader() throws {
    let sink = self.sink(.ignore, maxEventCount: 1)
    try sink.recover(from: ["directory": "/out", "files": []])
    for number in 0...1 {
      try self.write(number...number, to: sink)
      _ = try sink.flush(finish: true)
      _ = try sink.committed()
      try self.interfere(.removed, with: Self.manifest)
    }
    #expect(sink.finishedFileCount == 2)
  }

  @Test("Lines that another pipeline adds to the manifest are not interference")
  func sharedManifest() throws {
    let sink = self.sink(maxEventCount: 1)
    try sink.recover(from: nil)
    try self.write(0...0, to: sink)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    let content = try #require(self.fileSystem.files[Self.manifest])
    self.fileSystem.put(Self.manifest, content + Array("{\"name\":\"other\"}\n".utf8))
    try self.write(1...1, to: sink)
    _ = try sink.flush(finish: true)
    #expect(try sink.committed())
  }

  @Test("On a real file system, logrotate's copytruncate leaves no file with a hole")
  func copytruncate() throws {
    let root = try TemporaryDirectory()
    let sink = FileSink(
      FileSinkConfiguration(directory: root.path, pipeline: "opps", org: "00D"),
      fileSystem: SystemFileSystem(), clock: self.clock.sinkClock)
    try sink.recover(from: nil)
    try self.write(0...1, to: sink)
    _ = try sink.flush(finish: false)
    let part = try #require(
      try Decompression.files(below: root.path).first { $0.hasSuffix(".part") })
    try OpenFile(part, [.write], on: SystemFileSystem()).truncate(to: 0)
    try self.write(2...2, to: sink)
    try self.expectFailure(.truncated, of: part) { _ = try sink.flush(finish: true) }
  }
}
