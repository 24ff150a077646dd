import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// When files are begun, finished and named.
@Suite("Files sink")
struct FileSinkTests {
  private let fileSystem = ModelFileSystem()
  private let clock = TestClock()
  private let batches = TestBatches()

  private func sink(_ rotation: FileSinkConfiguration.Rotation = .init()) throws -> FileSink {
    let sink = FileSink(
      FileSinkConfiguration(directory: "/out", rotation: rotation, pipeline: "opps", org: "00D"),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    try sink.recover(from: nil)
    return sink
  }

  private func write(_ events: [TestEvent], to sink: FileSink, epoch: Int = 1) throws {
    for batch in self.batches.batches(events[...], epoch: epoch) { try sink.write(batch) }
  }

  private var finals: [String] {
    self.fileSystem.files.keys.filter(ModelFileSystem.isFinal).sorted()
  }

  private func eventCounts() throws -> [Int] {
    try self.finals.map { try Decompression.lines(of: self.fileSystem.files[$0] ?? []).count }
  }

  @Test("Without events there are no files, and nothing is due")
  func nothing() throws {
    let sink = try self.sink()
    self.clock.elapsed = .seconds(100_000)
    #expect(!sink.isDue)
    #expect(try sink.flush(finish: true) == ["directory": "/out", "files": []])
    #expect(try sink.committed() == false)
    // Nor does a layout without rows make a file.
    var event = TestEvent(number: 0)
    event.rowCount = 0
    try self.write([event], to: sink)
    #expect(try sink.flush(finish: true)["files"] == [])
    #expect(self.fileSystem.files.keys.allSatisfy { !$0.hasSuffix(".part") })
    // Nor for a view or a list of columns: a route may send all rows of the object elsewhere.
    #expect(
      self.fileSystem.files.keys.allSatisfy {
        !$0.hasSuffix("/_views.sql") && !$0.hasSuffix("/_columns.json")
      })
    try self.write([TestEvent(number: 1)], to: sink)
    #expect(self.fileSystem.files["/out/_views.sql"] != nil)
  }

  @Test("The state names each file in progress, and only committed() finishes announced files")
  func state() throws {
    let sink = try self.sink()
    try self.write([TestEvent(number: 41)], to: sink)
    #expect(sink.pendingByteCount > 0)
    let open = try #require(try sink.flush(finish: false)["files"]?.array?.first)
    #expect(sink.pendingByteCount == 0)
    let path = "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000041"
    #expect(open["to"] == .string(path + ".ndjson.zst"))
    #expect(
      open["from"]
        == "Opportunity/commit_date=2026-02-17/.opps-OpportunityChangeEvent-e1-000000000041.ndjson.zst.part"
    )
    #expect(open["closing"] == false)
    #expect(open["manifest"]?["events"] == 1)
    #expect(try sink.committed() == false)
    let closing = try #require(try sink.flush(finish: true)["files"]?.array?.first)
    #expect(closing["closing"] == true)
    #expect(closing["length"] == open["length"] && closing["manifest"] == open["manifest"])
    #expect(self.finals == [])
    #expect(try sink.committed())
    #expect(self.finals == ["/out/\(path).ndjson.zst"])
    let content = try #require(self.fileSystem.files["/out/\(path).ndjson.zst"])
    #expect(closing["length"] == .integer(content.count))
    #expect(closing["manifest"]?["sha256"] == .string(SHA256Hex.of(content)))
    #expect(try sink.flush(finish: true)["files"] == [])
    #expect(try sink.committed() == false)
    #expect(sink.finishedFileCount == 1 && sink.finishedByteCount == content.count)
  }

  @Test("Files end after exactly the configured number of events, even within a batch")
  func maxEvents() throws {
    let sink = try self.sink(.init(maxEventCount: 4))
    try self.write((0..<10).map { TestEvent(number: $0) }, to: sink)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(try self.eventCounts() == [4, 4, 2])
    #expect(
      self.finals.map { $0.dropLast(11).suffix(2) } == ["00", "04", "08"])
  }

  @Test("Files end when their compressed bytes reach the limit")
  func maxBytes() throws {
    let sink = try self.sink(.init(maxByteCount: 2000))
    var random = SplitMix(seed: 1)
    for number in 0..<20 {
      var event = TestEvent(number: number)
      event.text = (0..<100).map { _ in String(random.next(), radix: 36) }.joined()
      try self.write([event], to: sink)
      _ = try sink.flush(finish: false)
      _ = try sink.committed()
    }
    #expect(self.finals.count >= 4)
    for path in self.finals {
      #expect((2000..<4000).contains(self.fileSystem.files[path]?.count ?? 0))
    }
  }

  @Test("Files end by age and by idleness, even without events")
  func ageAndIdleness() throws {
    let sink = try self.sink(.init(maxAge: .seconds(100), maxIdle: .seconds(30)))
    try self.write([TestEvent(number: 0)], to: sink)
    _ = try sink.flush(finish: false)
    #expect(!sink.isDue)
    self.clock.elapsed = .seconds(30)
    #expect(sink.isDue)
    _ = try sink.flush(finish: false)
    #expect(try sink.committed())
    #expect(!sink.isDue && self.finals.count == 1)
    // Busy all the time: the age ends it.
    for number in 1...12 {
      try self.write([TestEvent(number: number)], to: sink)
      _ = try sink.flush(finish: false)
      _ = try sink.committed()
      self.clock.elapsed += .seconds(10)
    }
    #expect(try self.eventCounts() == [1, 11])
    // A clock of the wall that jumps does not.
    self.clock.utcMilliseconds += 1_000_000_000
    #expect(!sink.isDue)
  }

  @Test("Files of two dates are open at midnight, and each event goes to its date's file")
  func midnight() throws {
    let sink = try self.sink()
    let midnight: Int64 = 1_771_372_800_000
    let offsets: [Int64] = [-2, -1, 0, -1, 1]
    try self.write(
      offsets.enumerated().map {
        TestEvent(number: $0.offset, commitTimestamp: midnight + $0.element)
      }, to: sink)
    #expect(sink.openFileCount == 2)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(try self.eventCounts() == [3, 2])
    #expect(self.finals.map { $0.contains("commit_date=2026-02-17") } == [true, false])
  }

  @Test("Above the limit of open files, the least recently used one is finished")
  func leastRecentlyUsed() throws {
    let sink = try self.sink(.init(maxOpenFileCount: 3))
    func event(_ number: Int, _ entity: String) -> TestEvent {
      TestEvent(number: number, entity: entity)
    }
    try self.write([event(0, "A"), event(1, "B"), event(2, "C"), event(3, "A")], to: sink)
    #expect(sink.openFileCount == 3)
    try self.write([event(4, "D")], to: sink)
    #expect(sink.openFileCount == 3)
    _ = try sink.flush(finish: false)
    #expect(try sink.committed())
    #expect(self.finals.count == 1 && self.finals[0].contains("/B/"))
    // It is begun anew when its entity comes again, in the same commit too.
    try self.write([event(5, "B"), event(6, "E"), event(7, "F"), event(8, "B")], to: sink)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(try self.eventCounts().reduce(0, +) == 9)
  }

  @Test("Up to the limit of open files, no file is finished because another one is started")
  func manyOpenFiles() throws {
    let sink = try self.sink()
    for round in 0..<3 {
      try self.write(
        (0..<200).map { TestEvent(number: round * 200 + $0, entity: "E\($0)") }, to: sink)
      _ = try sink.flush(finish: false)
      #expect(try !sink.committed())
    }
    #expect(sink.openFileCount == 200 && self.finals.isEmpty)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(try self.eventCounts() == Array(repeating: 3, count: 200))
  }

  @Test("A batch with hundreds of dates keeps at most the limit of files open")
  func hostileDates() throws {
    let sink = try self.sink(.init(maxOpenFileCount: 8))
    try self.write(
      (0..<200).map { TestEvent(number: $0, commitTimestamp: Int64($0) * 86_400_000 * 400) },
      to: sink)
    #expect(sink.openFileCount == 8)
    _ = try sink.flush(finish: true)
    #expect(try sink.committed())
    #expect(self.finals.count == 200)
  }

  @Test("A new epoch starts a new file")
  func epochs() throws {
    let sink = try self.sink()
    try self.write([TestEvent(number: 7)], to: sink)
    try self.write([TestEvent(number: 0)], to: sink, epoch: 2)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(
      self.finals.map { $0.dropLast(11).suffix(15) } == ["e1-000000000007", "e2-000000000000"])
  }

  @Test("An existing file is never overwritten, and the run stops before anything is stored")
  func nameTaken() throws {
    let sink = try self.sink()
    let path =
      "/out/Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst"
    self.fileSystem.put(path, [1])
    #expect(throws: FileSinkError.self) { try self.write([TestEvent(number: 0)], to: sink) }
    #expect(throws: FileSinkError.self) { _ = try sink.flush(finish: false) }
    #expect(self.fileSystem.files[path] == [1])
  }

  @Test("An event of many long lines is written in pieces and takes little memory")
  func fanOut() throws {
    let counting = FaultyFileSystem(self.fileSystem)
    let sink = FileSink(
      FileSinkConfiguration(directory: "/out", pipeline: "opps", org: "00D"),
      fileSystem: counting, clock: self.clock.sinkClock)
    try sink.recover(from: nil)
    var random = SplitMix(seed: 2)
    var event = TestEvent(number: 0)
    event.text = (0..<10_000).map { _ in String(random.next(), radix: 36) }.joined()
    event.rowCount = 50
    let before = counting.calls.count
    try self.write([event], to: sink)
    // 120 KB a line, which the first line makes small: most of it has left before the flush.
    #expect(counting.calls[before...].filter { $0.name == "write" }.count > 2)
    #expect(sink.pendingByteCount > 50 * event.text.utf8.count)
    #expect(sink.memoryByteCount < 2 << 20)
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    #expect(try self.eventCounts() == [50])
  }

  @Test(
    "Each open file takes little memory at any compression level", arguments: [1, 3, 9, 19, 22])
  func memory(level: Int) throws {
    let sink = FileSink(
      FileSinkConfiguration(
        directory: "/out", compressionLevel: level, pipeline: "opps", org: "00D"),
      fileSystem: self.fileSystem, clock: self.clock.sinkClock)
    try sink.recover(from: nil)
    let limit = FileSinkConfiguration.Rotation().maxOpenFileCount
    try self.write((0..<limit).map { TestEvent(number: $0, entity: "E\($0)") }, to: sink)
    #expect(sink.openFileCount == limit)
    #expect(sink.memoryByteCount < (level == 1 ? 60 << 20 : level < 16 ? 100 << 20 : 200 << 20))
    _ = try sink.flush(finish: true)
    #expect(sink.memoryByteCount == 0)
  }

  @Test("Descriptions of the columns are written next to the data")
  func catalogue() throws {
    let sink = try self.sink()
    try self.write([TestEvent(number: 0)], to: sink)
    #expect(self.fileSystem.files["/out/Opportunity/_columns.json"] != nil)
    #expect(self.fileSystem.files["/out/_views.sql"] != nil)
  }
}
