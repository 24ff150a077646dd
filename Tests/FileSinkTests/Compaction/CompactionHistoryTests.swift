import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Random histories of runs, snapshots, dead letters and compactions: what readers see keeps the order
/// of the stream.
@Suite("Order of compacted files")
struct CompactionHistoryTests {
  /// A pipeline in a directory, run after run.
  private final class History {
    static let (directory, deadDirectory) = ("/out", "/dead")
    let fileSystem = ModelFileSystem()
    private let batches = TestBatches()
    private let clock = TestClock()
    private var state: JSONValue?
    private var deadState: JSONValue?
    /// Whether the pass over records has begun.
    var hasPass = false
    private let reads = ScriptedReads(recordCount: 3)

    /// Runs to the end. Events of each commit; undecodable ones become dead letters.
    func run(
      _ commits: [[TestEvent]], epoch: Int, rotation: FileSinkConfiguration.Rotation,
      redriving redriven: [TestEvent] = []
    ) throws {
      let sink = FileSink(
        FileSinkConfiguration(
          directory: Self.directory, rotation: rotation, pipeline: "opps", org: "00D"),
        fileSystem: self.fileSystem, clock: self.clock.sinkClock)
      let dead = DeadLetterFile(
        directory: Self.deadDirectory, pipeline: "opps", org: "00D", fileSystem: self.fileSystem,
        clock: self.clock.sinkClock)
      try sink.recover(from: self.state)
      try dead.recover(from: self.deadState)
      func commit(finish: Bool) throws {
        self.state = try sink.flush(finish: finish)
        self.deadState = try dead.flush(finish: finish)
        _ = try sink.committed()
        _ = try dead.committed()
      }
      for events in commits {
        for batch in self.batches.batches(events.filter { !$0.isUndecodable }[...], epoch: epoch) {
          try sink.write(batch)
        }
        for event in events where event.isUndecodable {
          var letter = ScriptedRun.letter(event)
          letter.epoch = epoch
          try dead.append(letter)
        }
        try commit(finish: false)
        if self.hasPass, let last = events.last {
          try self.reads.step(sink, self.batches, nextOrdinal: Int64(last.number + 1))
        }
      }
      for event in redriven {
        for batch in self.batches.batches([event][...], epoch: epoch) {
          batch.isRedriven = true
          try sink.write(batch)
        }
      }
      try commit(finish: true)
      try commit(finish: true)
    }

    func compact(_ rotation: FileSinkConfiguration.Rotation) throws -> [CompactedObject] {
      try FileCompaction(
        FileSinkConfiguration(
          directory: Self.directory, rotation: rotation, pipeline: "opps", org: "00D"),
        state: self.state, letters: .init(directory: Self.deadDirectory, state: self.deadState),
        fileSystem: self.fileSystem
      ).run { false }
    }

    struct Line: Equatable {
      var epoch: Int64
      var place: Int64
      var number: Int
      var text: String
    }

    struct Snapshot {
      var object: String
      var epoch: Int64
      var place: Int64
    }

    /// The lines of each object in the order of the view, and the places of snapshots.
    func read() throws -> (lines: [String: [Line]], snapshots: [Snapshot]) {
      let matcher = SegmentName.Matcher(kind: .records, pipeline: "opps")
      var lines: [String: [Line]] = [:]
      var snapshots: [Snapshot] = []
      let finals = self.fileSystem.files.filter {
        $0.key.hasPrefix("\(Self.directory)/") && ModelFileSystem.isFinal($0.key)
      }
      for (path, content) in finals.sorted(by: { $0.key < $1.key }) {
        let parts = path.split(separator: "/").map(String.init)
        var base = parts[3]
        let name = try #require(base.withUTF8 { matcher.parse($0) })
        guard name.pass == nil else {
          snapshots.append(
            Snapshot(object: parts[1], epoch: name.epoch, place: name.firstOrdinal))
          continue
        }
        for text in try Decompression.lines(of: content) {
          let json = try JSONValue(parsing: text)
          let id = try #require(json["_event_id"]?.string)
          lines[parts[1], default: []].append(
            Line(
              epoch: json["_epoch"]?.integer ?? name.epoch,
              place: json["_ordinal"]?.integer ?? name.firstOrdinal,
              number: try #require(Int(id.dropFirst())), text: text))
        }
      }
      for (object, unsorted) in lines {
        lines[object] = unsorted.enumerated().sorted {
          ($0.element.epoch, $0.element.place, $0.offset)
            < ($1.element.epoch, $1.element.place, $1.offset)
        }.map { $0.element }
      }
      return (lines, snapshots)
    }

    /// Files of a topic and epoch, sorted by name: their first events.
    func placesByName() throws -> [Int64] {
      let matcher = SegmentName.Matcher(kind: .records, pipeline: "opps")
      let names = self.fileSystem.files.keys
        .filter { $0.hasPrefix("\(Self.directory)/") && ModelFileSystem.isFinal($0) }
        .compactMap { $0.split(separator: "/").last.map(String.init) }
      return try names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }.map {
        var name = $0
        let parsed = try #require(name.withUTF8 { matcher.parse($0) })
        return parsed.epoch << 40 + parsed.firstOrdinal
      }
    }
  }

  /// A run, and perhaps a compaction after it.
  private struct Step {
    var commits: [[TestEvent]] = []
    var epoch = 1
    var rotation = FileSinkConfiguration.Rotation()
    var redriven: [TestEvent] = []
    var hasPass = false
    var compaction: FileSinkConfiguration.Rotation?
  }

  private static func steps(seed: Int) -> [Step] {
    var random = SplitMix(seed: UInt64(seed))
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    var (number, epoch) = (0, 1)
    var letters: [TestEvent] = []
    return (0..<12).map { run in
      var step = Step()
      if chance(5) { (epoch, letters) = (epoch + 1, []) }
      step.epoch = epoch
      step.hasPass = run >= 5 && seed % 2 == 0
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        step.commits.append(
          (0..<Int.random(in: 1...4, using: &random)).map { _ in
            var event = TestEvent(number: number)
            if chance(30) { event.entity = "Account" }
            // Midnight, with some events of the other day.
            if chance(run < 6 ? 5 : 95) { event.commitTimestamp = 1_771_372_800_000 }
            event.isUndecodable = chance(5)
            if !event.isUndecodable { event.rowCount = chance(10) ? 0 : chance(10) ? 2 : 1 }
            number += 1
            return event
          })
      }
      for var event in step.commits.joined() where event.isUndecodable {
        event.isUndecodable = false
        letters.append(event)
      }
      if chance(20) { (step.redriven, letters) = (letters, []) }
      step.rotation = .init(
        maxEventCount: Int.random(in: 1...3, using: &random),
        maxOpenFileCount: Int.random(in: 1...4, using: &random))
      // The last run finishes all files.
      if run < 11, chance(30) { step.rotation.minByteCount = 1 << 20 }
      if run == 11 || chance(30) {
        step.compaction = .init(maxEventCount: Int.random(in: 2...40, using: &random))
      }
      return step
    }
  }

  @Test(
    "The lines of random histories have the same order with and without compaction",
    arguments: 0..<(ExplorationSize.isFull ? 200 : 24))
  func randomHistory(seed: Int) throws {
    let (compacted, plain) = (History(), History())
    var joinedCount = 0
    for (index, step) in Self.steps(seed: seed).enumerated() {
      for history in [compacted, plain] {
        history.hasPass = step.hasPass
        try history.run(
          step.commits, epoch: step.epoch, rotation: step.rotation, redriving: step.redriven)
      }
      if let rotation = step.compaction {
        let objects = try compacted.compact(rotation)
        joinedCount += objects.reduce(0) { $0 + $1.replacedFileCount }
      }
      let (found, wanted) = (try compacted.read(), try plain.read())
      #expect(found.lines.keys.sorted() == wanted.lines.keys.sorted())
      for (object, lines) in wanted.lines {
        #expect(
          found.lines[object]?.map(\.text) == lines.map(\.text), "after run \(index): \(object)")
        // A snapshot contains the lines whose place is before its own.
        for snapshot in wanted.snapshots where snapshot.object == object {
          func contained(_ lines: [History.Line]) -> [String] {
            lines.filter { ($0.epoch, $0.place) < (snapshot.epoch, snapshot.place) }.map(\.text)
          }
          #expect(
            contained(found.lines[object] ?? []) == contained(lines),
            "after run \(index): \(object), snapshot before \(snapshot.place)")
        }
      }
      let places = try compacted.placesByName()
      #expect(places == places.sorted(), "after run \(index): names")
      #expect(compacted.fileSystem.violations == [])
    }
    #expect(joinedCount > 0)
  }
}
