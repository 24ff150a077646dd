import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Files that stay open from run to run (`rotate.min_bytes`).
@Suite("Continued files")
struct ContinuedFilesTests {
  private let fileSystem = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()

  private func configuration(
    _ rotation: FileSinkConfiguration.Rotation = .init(minByteCount: 1 << 20)
  ) -> FileSinkConfiguration {
    FileSinkConfiguration(directory: "/out", rotation: rotation, pipeline: "opps", org: "00D")
  }

  /// A run of these events that ends cleanly, and its last state.
  private func run(
    _ numbers: Range<Int>, after state: JSONValue?, _ configuration: FileSinkConfiguration? = nil,
    change: (inout TestEvent) -> Void = { _ in }
  ) throws -> JSONValue {
    let sink = FileSink(
      configuration ?? self.configuration(), fileSystem: self.fileSystem,
      clock: self.clock.sinkClock)
    try sink.recover(from: state)
    var events = numbers.map { TestEvent(number: $0) }
    for index in events.indices { change(&events[index]) }
    for batch in self.batches.batches(events[...]) { try sink.write(batch) }
    var state = try sink.flush(finish: true)
    while try sink.committed() { state = try sink.flush(finish: true) }
    return state
  }

  private var finals: [String] {
    self.fileSystem.files.keys.filter(ModelFileSystem.isFinal).sorted()
  }

  private var parts: [String] {
    self.fileSystem.files.keys.filter { $0.hasSuffix(".part") }.sorted()
  }

  private func pass(_ time: Duration) {
    self.clock.elapsed += time
    self.clock.utcMilliseconds += time.components.seconds * 1000
  }

  /// Event IDs of finished files, by file.
  private func events() throws -> [[String]] {
    try self.finals.map { path in
      try Decompression.lines(of: self.fileSystem.files[path] ?? []).map {
        try JSONValue(parsing: $0)["_event_id"]?.string ?? ""
      }
    }
  }

  @Test("One file takes the events of many runs, and the run after its maximum age finishes it")
  func age() throws {
    var state: JSONValue?
    for run in 0..<5 {
      state = try self.run(run * 2..<run * 2 + 2, after: state)
      #expect(self.finals == [])
      #expect(self.parts.count == 1)
      self.pass(.seconds(600))
    }
    // A run without events changes nothing.
    let part = self.parts[0]
    let content = self.fileSystem.files[part]
    #expect(try self.run(10..<10, after: state) == state)
    #expect(self.fileSystem.files[part] == content)
    self.pass(.seconds(600))
    state = try self.run(10..<10, after: state)
    #expect(try self.events() == [(0..<10).map { "e\($0)" }])
    #expect(self.parts == [])
    #expect(state?["files"] == [])
  }

  @Test("A file of one frame is finished as it is")
  func oneFrame() throws {
    var state = try self.run(0..<2, after: nil)
    let content = try #require(self.fileSystem.files[self.parts[0]])
    self.pass(.seconds(3600))
    state = try self.run(2..<2, after: state)
    #expect(self.fileSystem.files[self.finals[0]] == content + ZstdCompressor.endOfFrame)
  }

  @Test("The manifest line describes all runs of a file")
  func manifest() throws {
    var state = try self.run(0..<2, after: nil)
    state = try self.run(2..<5, after: state) { $0.commitTimestamp = 1_771_300_999_000 }
    self.pass(.seconds(3600))
    state = try self.run(5..<5, after: state)
    let content = try #require(self.fileSystem.files[self.finals[0]])
    let text = String(
      decoding: self.fileSystem.files["/out/_manifest.ndjson"] ?? [], as: UTF8.self)
    let line = try JSONValue(parsing: String(text.dropLast()))
    #expect(line["events"] == 5 && line["lines"] == 5)
    #expect(line["bytes"] == .integer(content.count))
    #expect(line["sha256"] == .string(SHA256Hex.of(content)))
    #expect(
      line["uncompressed_bytes"] == .integer(try Decompression.content(of: content).count))
    #expect(line["first_ordinal"] == 0 && line["last_ordinal"] == 4)
    #expect(line["first_replay_id"] == .string(ReplayID(Array("r0".utf8)).hex))
    #expect(line["last_replay_id"] == .string(ReplayID(Array("r4".utf8)).hex))
    #expect(line["first_commit_timestamp"] == "2026-02-17T04:03:15.000Z")
    #expect(line["last_commit_timestamp"] == "2026-02-17T04:03:19.000Z")
  }

  @Test("A file ends once it has the minimum size, and the next one begins")
  func size() throws {
    var random = SplitMix(seed: 1)
    var state: JSONValue?
    let configuration = self.configuration(.init(minByteCount: 3000))
    for run in 0..<12 {
      state = try self.run(run..<run + 1, after: state, configuration) { event in
        event.text = (0..<100).map { _ in String(random.next(), radix: 36) }.joined()
      }
    }
    #expect(self.finals.count >= 2)
    // Once they are joined, they may be a little smaller.
    for path in self.finals {
      #expect((2800..<6000).contains(self.fileSystem.files[path]?.count ?? 0))
    }
    let events = try self.events().flatMap { $0 }
    #expect(events == (0..<events.count).map { "e\($0)" })
  }

  @Test("Without min_bytes, the next run finishes files that were kept open")
  func turnedOff() throws {
    var state = try self.run(0..<2, after: nil)
    state = try self.run(2..<3, after: state) { event in
      event.topic = "/data/B"
      event.entity = "B"
    }
    state = try self.run(3..<5, after: state)
    state = try self.run(5..<5, after: state, self.configuration(.init()))
    #expect(self.parts == [])
    #expect(try self.events() == [["e2"], ["e0", "e1", "e3", "e4"]])
    #expect(state["places"] == nil)
  }

  @Test("A file with lines of another form is not continued")
  func otherForm() throws {
    var state = try self.run(0..<2, after: nil)
    var configuration = self.configuration()
    configuration.format = NDJSONFormat(int64AsStrings: true)
    state = try self.run(2..<4, after: state, configuration)
    #expect(try self.events() == [["e0", "e1"]])
    #expect(state["files"]?.array?.count == 1)
  }

  @Test("Another compression level continues the file")
  func otherLevel() throws {
    var state = try self.run(0..<2, after: nil)
    var configuration = self.configuration()
    configuration.compressionLevel = 9
    state = try self.run(2..<4, after: state, configuration)
    #expect(self.parts.count == 1)
    #expect(state["files"]?.array?.first?["open"]?["frames"] == 2)
  }

  @Test("After a lost event, lines of a continued file include their places, in later runs also")
  func holes() throws {
    var state = try self.run(0..<2, after: nil)
    // The run ended with a dead letter, number 2.
    state = try self.run(3..<4, after: state)
    state = try self.run(4..<5, after: state)
    self.pass(.seconds(3600))
    _ = try self.run(5..<5, after: state)
    let lines = try Decompression.lines(of: self.fileSystem.files[self.finals[0]] ?? [])
    #expect(
      try lines.map { try JSONValue(parsing: $0)["_ordinal"]?.integer } == [nil, nil, 3, 4])
  }

  @Test("A lost event before a file began does not add places to its lines")
  func holeBeforeFile() throws {
    var state = try self.run(0..<1, after: nil) { $0.entity = "Account" }
    state = try self.run(2..<4, after: state)
    state = try self.run(4..<6, after: state)
    self.pass(.seconds(3600))
    _ = try self.run(6..<6, after: state)
    let path = try #require(self.finals.first { $0.contains("Opportunity/") })
    let lines = try Decompression.lines(of: self.fileSystem.files[path] ?? [])
    #expect(lines.count == 4)
    #expect(try lines.allSatisfy { try JSONValue(parsing: $0)["_ordinal"] == nil })
  }

  @Test("Without a checkpoint, a run does not delete files that an earlier one left open")
  func lostState() throws {
    _ = try self.run(0..<2, after: nil)
    let error = self.failure { _ = try self.run(0..<2, after: nil) }
    #expect(error?.code == .lostState)
    #expect(error?.message.contains("still open") == true)
    #expect(self.parts.count == 1)
    self.fileSystem.kill()
    var configuration = self.configuration()
    configuration.acceptsReset = true
    _ = try self.run(0..<3, after: nil, configuration)
    #expect(self.parts.count == 1)
  }

  @Test("The state shows open files and since when")
  func list() throws {
    var state = try self.run(0..<2, after: nil)
    let since = self.clock.utcMilliseconds
    self.pass(.seconds(60))
    state = try self.run(2..<5, after: state)
    let files = try ContinuedFile.list(in: state, directory: "/out")
    #expect(files.map(\.openedAt) == [since])
    #expect(files.map(\.events) == [5])
  }

  @Test("When another file would be too many, the oldest kept one is finished")
  func tooMany() throws {
    let configuration = self.configuration(.init(minByteCount: 1 << 20, maxOpenFileCount: 2))
    var state: JSONValue?
    for number in 0..<3 {
      state = try self.run(number..<number + 1, after: state, configuration) { event in
        event.topic = "/data/T\(number)"
        event.entity = "T\(number)"
      }
      self.pass(.seconds(1))
    }
    #expect(try self.events() == [["e0"]])
    #expect(self.parts.count == 2)
  }

  @Test("A file of another epoch is not continued")
  func otherEpoch() throws {
    let state = try self.run(0..<2, after: nil)
    let sink = FileSink(
      self.configuration(), fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    try sink.recover(from: state)
    for batch in self.batches.batches([TestEvent(number: 0)][...], epoch: 2) {
      try sink.write(batch)
    }
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(self.parts.count == 2)
    self.pass(.seconds(3600))
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(self.finals.count == 2)
  }

  private func failure(of body: () throws -> Void) -> FileSinkError? {
    do {
      try body()
      return nil
    } catch {
      return error as? FileSinkError
    }
  }

  @Test("A kept file that somebody shortened or removed stops the run before it reads anything")
  func damaged() throws {
    let state = try self.run(0..<2, after: nil)
    let part = self.parts[0]
    let content = try #require(self.fileSystem.files[part])
    self.fileSystem.put(part, Array(content.dropLast()))
    let shortened = self.failure { _ = try self.run(2..<2, after: state) }
    #expect(shortened?.code == .inconsistent)
    #expect(shortened?.message.contains("committed") == true)
    self.fileSystem.kill()
    try self.fileSystem.remove(part)
    #expect(self.failure { _ = try self.run(2..<2, after: state) }?.code == .lostOutput)
  }

  @Test("A kept file with other content stops the run that would continue or finish it")
  func changed() throws {
    let state = try self.run(0..<2, after: nil)
    let part = self.parts[0]
    var content = try #require(self.fileSystem.files[part])
    content[content.count / 2] ^= 1
    self.fileSystem.put(part, content)
    #expect(self.failure { _ = try self.run(2..<3, after: state) }?.code == .inconsistent)
    self.fileSystem.kill()
    self.pass(.seconds(3600))
    #expect(self.failure { _ = try self.run(2..<2, after: state) }?.code == .inconsistent)
    #expect(self.finals == [])
  }

  @Test("A clock that was set back does not keep a file open")
  func clockSetBack() throws {
    let state = try self.run(0..<2, after: nil)
    self.clock.utcMilliseconds -= 86_400_000
    _ = try self.run(2..<2, after: state)
    #expect(try self.events() == [["e0", "e1"]])
  }

  @Test(
    "A state with a damaged entry is refused",
    arguments: [
      ("since_ms", "yesterday"), ("day", .integer(Int64.max)), ("frames", 0), ("form", nil),
    ] as [(String, JSONValue)])
  func hostile(member: String, value: JSONValue) throws {
    let state = try self.run(0..<2, after: nil)
    let file = try #require(state["files"]?.array?.first)
    let open = try #require(file["open"])
    let changed = state.replacing([
      "files": .array([file.replacing(["open": open.replacing([member: value])])])
    ])
    #expect(self.failure { _ = try self.run(2..<2, after: changed) }?.code == .inconsistent)
  }

  @Test("Nothing is due while kept files are young, and a file that is old enough is")
  func due() throws {
    let state = try self.run(0..<2, after: nil)
    let sink = FileSink(
      self.configuration(), fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    try sink.recover(from: state)
    #expect(sink.openFileCount == 1)
    #expect(!sink.isDue)
    self.clock.elapsed = .seconds(3600)
    #expect(sink.isDue)
  }
}
