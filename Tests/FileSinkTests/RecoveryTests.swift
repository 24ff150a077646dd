import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// What recovery does with files that are not as they should be.
@Suite("Recovery")
struct RecoveryTests {
  private let fileSystem = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()
  private static let part =
    "/out/Opportunity/commit_date=2026-02-17/.opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst.part"
  private static let final =
    "/out/Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst"

  private func sink(
    pipeline: String = "opps", directory: String = "/out", acceptsReset: Bool = false
  ) -> FileSink {
    FileSink(
      FileSinkConfiguration(
        directory: directory, pipeline: pipeline, org: "00D", acceptsReset: acceptsReset),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
  }

  private func write(_ events: [TestEvent], to sink: FileSink, epoch: Int = 1) throws {
    for batch in self.batches.batches(events[...], epoch: epoch) { try sink.write(batch) }
  }

  /// A run that committed two events, wrote a third and was killed.
  private func killedRun() throws -> JSONValue {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write([TestEvent(number: 0), TestEvent(number: 1)], to: sink)
    let state = try sink.flush(finish: false)
    #expect(try sink.committed() == false)
    try self.write([TestEvent(number: 2)], to: sink)
    _ = try sink.flush(finish: false)
    self.fileSystem.kill()
    return state
  }

  private func failure(of body: () throws -> Void) -> FileSinkError? {
    do {
      try body()
      return nil
    } catch {
      return error as? FileSinkError
    }
  }

  @Test("The name of a new manifest is durable together with its first line")
  func manifestName() throws {
    let first = self.sink()
    try first.recover(from: nil)
    try self.write([TestEvent(number: 0)], to: first)
    let announced = try first.flush(finish: true)
    _ = try self.fileSystem.open("/out/_manifest.ndjson", [.write, .create])
    self.fileSystem.kill()

    let second = self.sink()
    try second.recover(from: announced)
    let done = try second.flush(finish: true)
    self.fileSystem.powerCut(.nothing)

    try self.sink().recover(from: done)
    #expect(self.fileSystem.files[Self.final] != nil)
    #expect(self.fileSystem.files["/out/_manifest.ndjson"]?.isEmpty == false)
  }

  @Test("A file in progress is truncated to the committed length and finished")
  func cut() throws {
    let state = try self.killedRun()
    let sink = self.sink()
    try sink.recover(from: state)
    let content = try #require(self.fileSystem.files[Self.final])
    #expect(content.suffix(3) == [1, 0, 0])
    #expect(try Decompression.lines(of: content).count == 2)
    #expect(self.fileSystem.files[Self.part] == nil)
    #expect(sink.finishedFileCount == 1)
    #expect(try sink.flush(finish: false)["files"] == [])
  }

  @Test("A file in progress that the checkpoint does not know is removed")
  func unknownPart() throws {
    _ = try self.killedRun()
    try self.sink().recover(from: nil)
    #expect(self.fileSystem.files[Self.part] == nil)
    #expect(self.fileSystem.files[Self.final] == nil)
  }

  @Test("Files of other pipelines stay, even if one name is a prefix of the other")
  func otherPipelines() throws {
    _ = try self.killedRun()
    let foreign = Self.final.replacing("opps-", with: "opps-2-")
    self.fileSystem.put(foreign, [1])
    try self.sink(pipeline: "opps-2-x").recover(from: nil)
    #expect(self.fileSystem.files[Self.part] != nil)
    self.fileSystem.kill()
    try self.sink().recover(from: nil)
    #expect(self.fileSystem.files[foreign] == [1])
  }

  @Test("A finished file unknown to checkpoint and manifest stops the run and stays")
  func unknownFinal() throws {
    _ = try self.killedRun()
    self.fileSystem.put(Self.final, [1, 2, 3])
    let error = self.failure { try self.sink().recover(from: nil) }
    #expect(error?.code == .unknownFile)
    #expect(error?.message.contains(Self.final) == true)
    #expect(self.fileSystem.files[Self.final] == [1, 2, 3])
  }

  @Test("A finished file next to the same file in progress stops the run")
  func conflict() throws {
    let state = try self.killedRun()
    self.fileSystem.put(Self.final, [1, 2, 3])
    #expect(self.failure { try self.sink().recover(from: state) }?.code == .unknownFile)
    #expect(self.fileSystem.files[Self.final] == [1, 2, 3])
    #expect(self.fileSystem.files[Self.part] != nil)
  }

  @Test("A file in progress whose committed bytes have changed stops the run")
  func changedPart() throws {
    let state = try self.killedRun()
    let content = try #require(self.fileSystem.files[Self.part])
    var changed = content
    changed[10] ^= 1
    self.fileSystem.put(Self.part, changed)
    let error = self.failure { try self.sink().recover(from: state) }
    #expect(error?.code == .inconsistent)
    #expect(error?.message.contains("sha256") == true)
    #expect(self.fileSystem.files[Self.part] == changed)

    self.fileSystem.kill()
    self.fileSystem.put(Self.part, Array(content.prefix(20)))
    #expect(self.failure { try self.sink().recover(from: state) }?.code == .inconsistent)
  }

  @Test("A missing file stops the run, and the message names both directories")
  func missing() throws {
    let state = try self.killedRun()
    let error = self.failure { try self.sink(directory: "/other").recover(from: state) }
    #expect(error?.code == .lostOutput)
    #expect(error?.message.contains("/out") == true && error?.message.contains("/other") == true)
  }

  @Test("A finished file may be removed once its manifest line is written")
  func takenAway() throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write([TestEvent(number: 0)], to: sink)
    let state = try sink.flush(finish: true)
    #expect(try sink.committed())
    self.fileSystem.kill()
    self.fileSystem.delete(Self.final)
    try self.sink().recover(from: state)
    #expect(self.fileSystem.files[Self.final] == nil)
  }

  @Test("A truncated last line of the manifest is repaired wherever it ends")
  func tornManifest() throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    var first = TestEvent(number: 0)
    first.entity = "Account"
    try self.write([first, TestEvent(number: 1)], to: sink)
    let state = try sink.flush(finish: true)
    #expect(try sink.committed())
    self.fileSystem.kill()
    let whole = try #require(self.fileSystem.files["/out/_manifest.ndjson"])
    let firstEnd = try #require(whole.firstIndex(of: UInt8(ascii: "\n"))) + 1
    for length in 0...whole.count {
      // The rest missing, and the rest as zeros, as a file system may leave it.
      for filled in [false, true] {
        let rest = filled ? [UInt8](repeating: 0, count: whole.count - length) : []
        if filled, length < firstEnd { continue }
        self.fileSystem.put("/out/_manifest.ndjson", whole[..<length] + rest)
        try self.sink().recover(from: state)
        self.fileSystem.kill()
        let lines = String(
          decoding: try #require(self.fileSystem.files["/out/_manifest.ndjson"]), as: UTF8.self
        ).split(separator: "\n")
        let expected = String(decoding: whole, as: UTF8.self).split(separator: "\n")
        #expect(lines.sorted() == expected.sorted(), "torn at \(length)")
      }
    }
  }

  @Test(
    "A damaged manifest line stops the run, the error names the line, and nothing is removed",
    arguments: [
      ("{\"name\":\"a\"}\nx\n{\"name\":\"b\"}\n", 2), ("{\"name\":\"a\"}\n{\"b\":1}\n", 2),
      ("[]\n{\"name\":\"b\"}\n", 1), ("\n{\"name\":\"b\"}\n", 1),
    ])
  func damagedManifest(text: String, line: Int) throws {
    let state = try self.killedRun()
    self.fileSystem.put("/out/_manifest.ndjson", Array(text.utf8))
    let error = self.failure { try self.sink().recover(from: state) }
    #expect(error?.code == .inconsistent)
    #expect(error?.message.contains("line \(line) ") == true)
    #expect(self.fileSystem.files["/out/_manifest.ndjson"] == Array(text.utf8))
  }

  @Test("Lines longer than one read, and lines of other programs, are understood")
  func longManifest() throws {
    let state = try self.killedRun()
    let filler = String(repeating: "x", count: 300_000)
    let lines = (0..<5).map { "{ \"filler\":\"\(filler)\", \"name\":\"n\($0)\" }\n" }.joined()
    self.fileSystem.put("/out/_manifest.ndjson", Array(lines.utf8))
    try self.sink().recover(from: state)
    let text = String(
      decoding: try #require(self.fileSystem.files["/out/_manifest.ndjson"]), as: UTF8.self)
    #expect(text.hasPrefix(lines))
    #expect(text.dropFirst(lines.count).contains("000000000000.ndjson.zst"))
  }

  @Test("A refused run leaves files in progress to the checkpoint that knows them")
  func refusedRunRemovesNothing() throws {
    let first = self.sink()
    try first.recover(from: nil)
    try self.write([TestEvent(number: 0)], to: first)
    let old = try first.flush(finish: true)
    _ = try first.committed()
    try self.write([TestEvent(number: 1)], to: first)
    let newest = try first.flush(finish: false)
    self.fileSystem.kill()
    let files = self.fileSystem.files.keys.sorted()
    #expect(files.contains { $0.hasSuffix(".part") })

    #expect(self.failure { try self.sink().recover(from: nil) }?.code == .lostState)
    self.fileSystem.kill()
    _ = try self.sink().survey(from: old)
    self.fileSystem.kill()
    #expect(self.fileSystem.files.keys.sorted() == files)

    let last = self.sink()
    try last.recover(from: newest)
    #expect(last.finishedFileCount == 1)
  }

  @Test("A manifest of this pipeline and org without a checkpoint stops the run, unless accepted")
  func lostState() throws {
    let sink = self.sink()
    try sink.recover(from: nil)
    try self.write([TestEvent(number: 0), TestEvent(number: 1)], to: sink, epoch: 2)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    self.fileSystem.kill()
    let error = self.failure { try self.sink().recover(from: nil) }
    #expect(error?.code == .lostState)
    #expect(error?.message.contains("7231") == true)
    self.fileSystem.kill()
    let accepting = self.sink(acceptsReset: true)
    try accepting.recover(from: nil)
    #expect(
      accepting.history.topics == [
        "/data/OpportunityChangeEvent": .init(
          epoch: 2, lastOrdinal: 1, lastReplayID: "7231")
      ])
    // The same events again make other files.
    try self.write([TestEvent(number: 0), TestEvent(number: 1)], to: accepting, epoch: 3)
    _ = try accepting.flush(finish: true)
    #expect(try accepting.committed())
    #expect(self.fileSystem.files.keys.filter(ModelFileSystem.isFinal).count == 2)
  }

  @Test("Two sinks of one pipeline cannot share a directory")
  func shared() throws {
    let first = self.sink()
    try first.recover(from: nil)
    #expect(self.failure { try self.sink().recover(from: nil) }?.code == .locked)
    withExtendedLifetime(first) {}
  }

  @Test("A damaged state is refused, as is one whose names lead out of the directory")
  func damagedState() throws {
    let state = try self.killedRun()
    let file = try #require(state["files"]?.array?.first)
    let members = try #require(file.members)
    for member in members {
      let less = JSONValue(.object(members.filter { $0.name != member.name }))
      #expect(
        self.failure { try self.sink().recover(from: ["files": [less]]) }?.code == .inconsistent)
      self.fileSystem.kill()
    }
    for name in [
      "../x.ndjson.zst", "/x.ndjson.zst", "a/../../x.ndjson.zst", "../\u{301}x.ndjson.zst",
    ] {
      let escaped: JSONValue = [
        "from": .string(SegmentName.partPath(forFinal: name)), "to": .string(name), "length": 99,
        "closing": false, "manifest": ["name": .string(name), "sha256": ""],
      ]
      #expect(
        self.failure { try self.sink().recover(from: ["files": [escaped]]) }?.code == .inconsistent)
      self.fileSystem.kill()
    }
    #expect(self.failure { try self.sink().recover(from: [:]) }?.code == .inconsistent)
  }
}
