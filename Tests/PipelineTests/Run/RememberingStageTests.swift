import JSON
import Testing

@testable import Pipeline

/// A stage that leaves out every third row of a topic, whatever run it comes in.
private final class EveryThird: Transform {
  private var counts: [String: Int64] = [:]

  func layout(for input: RecordLayout) -> RecordLayout { input }
  var changesRows: Bool { true }
  var memoryName: String? { "every_third" }

  func apply(to batch: RecordBatch) {
    var count = self.counts[batch.layout.topic, default: 0]
    batch.keepRows { _, _ in
      count += 1
      return count % 3 != 0
    }
    self.counts[batch.layout.topic] = count
  }

  func memory(ofTopic topic: String) -> JSONValue? {
    self.counts[topic].map { .integer($0) }
  }

  func recall(_ memory: JSONValue, ofTopic topic: String) {
    self.counts[topic] = memory.integer
  }
}

/// Stages that leave out rows and go on where they were, in whatever store that is known.
@Suite("Stages that remember") struct RememberingStageTests {
  typealias Harness = PipelineRunnerTests.Harness

  private static func kept(_ log: [ScriptedEvent]) -> [String] {
    log.indices.filter { ($0 + 1) % 3 != 0 }.map { log[$0].line }
  }

  private static func harness(_ databases: [String]) -> Harness {
    let harness = Harness()
    harness.databases = databases
    harness.stages = { [EveryThird()] }
    return harness
  }

  @Test(
    "The same rows are left out wherever runs crash and whichever store is behind",
    arguments: [[], ["t"], ["t", "u"]], [false, true])
  func crashes(databases: [String], isChannel: Bool) async throws {
    let log =
      isChannel
      ? PipelineRunnerTests.grouped.prefix(9).map { $0 } : PipelineRunnerTests.events(9)
    let expected = Self.kept(log)
    func source() -> ScriptedSource {
      ScriptedSource(log, responseSize: 4, isChannel: isChannel)
    }
    func run(_ harness: Harness, crashAfter calls: Int) async throws -> Bool {
      do {
        try await harness.run(source(), crashAfter: calls)
        return true
      } catch is CrashPoint.Crash {
        return false
      }
    }
    var first = 0
    var hasEnded = false
    while !hasEnded {
      var second = 0
      var hasEndedAgain = false
      while !hasEndedAgain {
        let harness = Self.harness(databases)
        harness.configuration.commitMaxEvents = 2
        hasEnded = try await run(harness, crashAfter: first)
        hasEndedAgain = try await run(harness, crashAfter: second)
        _ = try await run(harness, crashAfter: .max)
        for sink in ["a", "b"] + databases where harness.store.lines(of: sink) != expected {
          Issue.record("crashes at \(first) and \(second): \(harness.store.lines(of: sink))")
          return
        }
        second += 1
      }
      first += 1
    }
    #expect(first > 10)
  }

  @Test("A stage's memory is stored with the position, and rows left out are counted")
  func stored() async throws {
    let harness = Self.harness(["t"])
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(7)))
    for stored in [try harness.store.positions(), try harness.store.positions(of: "t")] {
      #expect(stored["/data/T"]?.memory == ["every_third": 7])
    }
    let committed = try #require(harness.statistics?.topics.first?.committed)
    #expect(committed.rows == 7 && committed.leftOut == 2 && committed.events == 7)
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    #expect(harness.statistics?.leftOut == 1)
    #expect(try harness.store.positions()["/data/T"]?.memory == ["every_third": 10])
    // A stage that is gone leaves nothing.
    harness.stages = { [] }
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(12)))
    #expect(try harness.store.positions()["/data/T"]?.memory == [:])
  }

  @Test("Stages of one kind, and those of different sinks, have separate memories")
  func names() throws {
    let chain = StageChain([EveryThird(), EveryThird()])
    try chain.recall(
      ["every_third": 1, "every_third#2": 2, "warehouse/every_third": 3, "other": 4],
      ofTopic: "/t")
    #expect(chain.memory(ofTopic: "/t") == ["every_third": 1, "every_third#2": 2])
    let own = StageChain([EveryThird()], sink: "warehouse")
    try own.recall(["every_third": 1, "warehouse/every_third": 3], ofTopic: "/t")
    #expect(own.memory(ofTopic: "/t") == ["warehouse/every_third": 3])
    #expect(own.memory(ofTopic: "/u") == [:])
  }

  @Test("Any stored memory is read back", arguments: 0..<50)
  func roundTrip(_: Int) throws {
    func value(_ depth: Int) -> JSONValue {
      switch Int.random(in: 0..<(depth > 2 ? 4 : 6)) {
      case 0: nil
      case 1: .boolean(Bool.random())
      case 2: .integer(Int64.random(in: .min ... .max))
      case 3: .string(String(UnicodeScalar(UInt8.random(in: 0...127))))
      case 4: .array((0..<3).map { _ in value(depth + 1) })
      default: JSONValue(.object([JSONMember("a", value(depth + 1)), JSONMember("", nil)]))
      }
    }
    var position = TopicPosition(beginningEpoch: 2, after: ReplayID([1, 2]))
    position.memory = ["dedupe": value(0), "files/dedupe#2": value(0), "": value(0)]
    let text = position.json.text()
    #expect(try TopicPosition(json: JSONValue(parsing: text), topic: "/t") == position, "\(text)")
  }

  @Test("Memory that is not an object is an error that names it")
  func damaged() throws {
    let json = TopicPosition(beginningEpoch: 2).json
    let members = (json.members ?? []) + [JSONMember("stages", 5)]
    let error = #expect(throws: TopicPositionError.self) {
      try TopicPosition(json: JSONValue(.object(members)), topic: "/t")
    }
    #expect(error?.description.contains("stages") == true)
  }

  @Test("An event keeps its record IDs when rows are left out")
  func recordIDs() throws {
    for keeps in [[true, false, true], [false, false, false], [false, true, true]] {
      let batch = RecordBatch(
        layout: RecordLayout(
          topic: "/t", schemaID: "s", entity: "T", family: .changeEvent,
          slotCount: MetadataSlot.count, fieldOrder: [], columns: []))
      for name in ["a", "b", "c", "d"] {
        let row = batch.addRow()
        let text = Array(name.utf8).withUnsafeBufferPointer { batch.append($0) }
        batch.row(row).cells[MetadataSlot.recordID] = text.cell
        batch.row(row).presence[MetadataSlot.recordID] = RecordBatch.Presence.value
      }
      // A change to three records, and one to another.
      let none = RecordBatch.Range(offset: 0, count: 0)
      for (first, count) in [(0, 3), (3, 1)] {
        batch.events.append(
          RecordBatch.Event(
            firstRow: first, rowCount: count, replayID: none, eventID: none, commitTimestamp: nil,
            kind: .change))
      }
      func names() -> [String] {
        batch.events.map { event in
          var joined: [UInt8] = []
          batch.appendRecordIDs(of: event, to: &joined)
          return String(decoding: joined, as: UTF8.self)
        }
      }
      #expect(names() == ["a,b,c", "d"])
      var verdicts = (keeps + [true]).makeIterator()
      batch.keepRows { _, _ in verdicts.next() ?? true }
      #expect(names() == ["a,b,c", "d"])
      let count = keeps.count { $0 }
      #expect(batch.rowCount == count + 1)
      #expect(batch.events.map(\.firstRow) == [0, count])
      #expect(batch.events.map(\.rowCount) == [count, 1])
    }
  }
}
