import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Events that are written together, against the same events one by one.
@Suite("Batched events")
struct BatchedEventsTests {
  private struct Numbers {
    var state: UInt64

    mutating func below(_ bound: Int) -> Int {
      self.state = self.state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(self.state >> 33) % bound
    }
  }

  private func events(_ numbers: inout Numbers) -> [TestEvent] {
    var time: Int64 = 1_771_300_995_000
    var number = numbers.below(10)
    return (0..<120).map { _ in
      var event = TestEvent(number: number)
      // Gaps, midnights, events without a time, without rows, with many and with long ones.
      number += numbers.below(12) == 0 ? 2 : 1
      time += numbers.below(9) == 0 ? Int64(numbers.below(200_000_000)) - 50_000_000 : 1000
      event.commitTimestamp = numbers.below(15) == 0 ? nil : time
      event.rowCount = numbers.below(4) == 0 ? numbers.below(4) : 1
      event.text = String(repeating: "x", count: numbers.below(20) == 0 ? 40_000 : 20)
      event.replay = numbers.below(6) == 0 ? event.number - 1 : nil
      return event
    }
  }

  /// All files, after the events were written in batches of these sizes.
  private func files(
    of events: [TestEvent], sizes: [Int], rotation: FileSinkConfiguration.Rotation
  ) throws -> [String: [UInt8]] {
    let fileSystem = ModelFileSystem()
    let sink = FileSink(
      FileSinkConfiguration(directory: "/out", rotation: rotation, pipeline: "opps", org: "00D"),
      fileSystem: fileSystem, clock: TestClock().sinkClock)
    try sink.recover(from: nil)
    let batches = TestBatches()
    var (rest, number) = (events[...], 0)
    while !rest.isEmpty {
      let size = sizes[number % sizes.count]
      for batch in batches.batches(rest.prefix(size)) { try sink.write(batch) }
      rest = rest.dropFirst(size)
      number += 1
    }
    _ = try sink.flush(finish: true)
    _ = try sink.committed()
    return fileSystem.files
  }

  /// An event without rows belongs to a file only if events of the same batch are in it. Then the
  /// file's line in the manifest ends with that event.
  private static func areEqual(_ file: [UInt8], _ other: [UInt8]?, _ path: String) throws -> Bool {
    guard path.hasSuffix("_manifest.ndjson"), let other else { return file == other }
    func lines(_ file: [UInt8]) throws -> [[JSONMember]] {
      try file.split(separator: UInt8(ascii: "\n")).map { line in
        let members = try JSONValue(parsing: Array(line)).members ?? []
        return members.filter { !["last_replay_id", "resume"].contains($0.name) }
      }
    }
    return try lines(file) == lines(other)
  }

  @Test("The size of a batch has no influence on files, lines or the manifest")
  func sizes() throws {
    for seed in 0..<40 as Range<UInt64> {
      var numbers = Numbers(state: seed)
      let events = self.events(&numbers)
      let rotation = FileSinkConfiguration.Rotation(
        maxEventCount: [3, 7, 50, 1000][Int(seed % 4)], maxOpenFileCount: seed % 3 == 0 ? 2 : 64)
      let expected = try self.files(of: events, sizes: [1], rotation: rotation)
      #expect(expected.keys.filter(ModelFileSystem.isFinal).count > 1)
      let random = (0..<20).map { _ in 1 + numbers.below(40) }
      for sizes in [[100], [2], random] {
        let files = try self.files(of: events, sizes: sizes, rotation: rotation)
        #expect(files.keys.sorted() == expected.keys.sorted())
        let different = try files.filter { try !Self.areEqual($0.value, expected[$0.key], $0.key) }
        #expect(different.keys.sorted() == [], "seed \(seed), batches of \(sizes)")
      }
    }
  }

  @Test("A file exceeds its size by the event that is being written, whatever follows in the batch")
  func fullFile() throws {
    var numbers = Numbers(state: 1)
    // Cannot be compressed much, and longer than what is compressed at once.
    let events = (0..<40).map { number in
      var event = TestEvent(number: number)
      event.rowCount = 1 + number % 3
      event.text = String(
        (0..<50_000).map { _ in Character(UnicodeScalar(UInt8(32 + numbers.below(90)))) })
      return event
    }
    let files = try self.files(
      of: events, sizes: [40], rotation: .init(maxByteCount: 100_000)
    ).filter { ModelFileSystem.isFinal($0.key) && $0.key.hasSuffix(".ndjson.zst") }
    #expect(files.count > 5)
    let lines = try files.sorted { $0.key < $1.key }.map { try Decompression.lines(of: $0.value) }
    // Whole events, in order.
    #expect(lines.flatMap { $0 }.count == events.reduce(0) { $0 + $1.rowCount })
    for (file, next) in zip(lines, lines.dropFirst()) {
      #expect(file.last?.prefix(30) != next.first?.prefix(30))
    }
    #expect(files.values.allSatisfy { $0.count < 100_000 + 3 * 50_000 + (1 << 17) })
  }
}
