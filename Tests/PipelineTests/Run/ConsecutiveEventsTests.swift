import JSON
import TestSupport
import Testing

@testable import Pipeline

/// Notes every batch that the sinks get, and refuses some events.
private final class BatchRecorder: Transform {
  private(set) var batches: [String] = []
  let changesRows: Bool

  init(refuses: Bool) { self.changesRows = refuses }

  func layout(for input: RecordLayout) -> RecordLayout { input }

  func apply(to batch: RecordBatch) {
    let events = batch.events.enumerated().map { index, event in
      let id = String(decoding: batch.bytes(event.eventID), as: UTF8.self)
      if self.changesRows, id.hasSuffix("7") { batch.refuse(event: index, reason: "a seven") }
      let replayID = ReplayID(batch.bytes(event.replayID)).hex
      return "\(event.ordinal): \(replayID) \(id) \(event.kind) \(event.rowCount)"
    }
    self.batches.append("\(batch.layout.schemaID) in epoch \(batch.epoch): \(events)")
  }
}

/// Responses are taken twice: with their events together where the runner may, and one event after the
/// other. Batches, positions, dead letters, statistics and commits have to be equal.
@Suite("Consecutive events") struct ConsecutiveEventsTests {
  /// How one run of a random pipeline went.
  private struct Course: Equatable {
    var batches: [String]
    var outcome: String
    var commitSizes: [Int]
    var statistics: String
    var topics: [String: JSONValue]
    var lines: [[String]]
    var letters: JSONValue
    var positionsOfDatabase: [String: JSONValue]
    var allowed: Int
    var starts: [StartPoint?]
  }

  /// Two runs that may crash and one that does not, of a pipeline made from a seed.
  private struct Pipeline {
    let isTogether: Bool
    var random: SplitMix
    private(set) var courses: [Course] = []
    /// Events that were decoded together.
    private(set) var togetherCount = 0

    init(seed: UInt64, isTogether: Bool) {
      self.random = SplitMix(seed: seed)
      self.isTogether = isTogether
    }

    private mutating func happens(oneIn count: Int) -> Bool {
      Int.random(in: 0..<count, using: &self.random) == 0
    }

    private mutating func log(isChannel: Bool) -> [ScriptedEvent] {
      let (layouts, broken, large) = (
        self.happens(oneIn: 3), self.happens(oneIn: 3), self.happens(oneIn: 8)
      )
      var log: [ScriptedEvent] = []
      var replay = 1
      var transaction = 1
      for number in 0..<80 {
        if !self.happens(oneIn: isChannel ? 2 : 20) { replay += 1 }
        if self.happens(oneIn: 3) { transaction += 1 }
        var event = ScriptedEvent(
          replay: replay, event: "e\(number)", record: "r\(number % 3)",
          transaction: "t\(transaction)")
        event.isOfOtherSchema = layouts && self.happens(oneIn: 9)
        event.isBroken = broken && self.happens(oneIn: 9)
        event.isOutdated = broken && self.happens(oneIn: 30)
        if large, self.happens(oneIn: 20) { event.byteCount = 20 << 20 }
        event.kind = self.happens(oneIn: 9) ? .gap : .change
        // None, the past, and a future that is out of the question.
        let times: [Int64?] = [nil, Int64(number) * 1000, 1 << 40]
        event.committedAt = times[.random(in: 0..<3, using: &self.random)]
        // Sent again, as long ago as a resumed stream would.
        if self.happens(oneIn: 12), let earlier = log.randomElement(using: &self.random) {
          event = earlier
        }
        log.append(event)
      }
      return log
    }

    mutating func run() async {
      let isChannel = self.happens(oneIn: 5)
      let log = self.log(isChannel: isChannel)
      let refuses = self.happens(oneIn: 3)
      let harness = PipelineRunnerTests.Harness()
      harness.configuration.commitMaxEvents = .random(in: 1...100, using: &self.random)
      harness.configuration.commitMaxDelay = .seconds(10_000_000)
      harness.configuration.maxDeadLetters = nil
      harness.configuration.onInvalidReplay = .earliest
      if self.happens(oneIn: 2) { harness.databases = ["t"] }
      if self.happens(oneIn: 4) { harness.refusedEvents = ["e5", "e21"] }
      if self.happens(oneIn: 4) { harness.lineByteCount = 8 << 20 }
      for run in 0..<3 {
        if self.happens(oneIn: 4) {
          let first = Int.random(in: 0..<6, using: &self.random)
          harness.outages["t"] = OutagePlan(first..<first + 2)
        }
        harness.configuration.maxEvents = self.happens(oneIn: 4) ? 30 : nil
        let source = ScriptedSource(
          log, responseSize: .random(in: 1...50, using: &self.random), isChannel: isChannel)
        source.decodesTogether = self.isTogether
        source.overlap = .random(in: 0...4, using: &self.random)
        source.refusals = self.happens(oneIn: 9) ? 1 : 0
        if self.happens(oneIn: 3) { source.breakAfter = .random(in: 0...3, using: &self.random) }
        // Nothing depends on how long the test takes: until the first commit, each response is ripe
        // for one, or none is.
        let interval: Duration = self.happens(oneIn: 2) ? .seconds(3600) : .zero
        source.arrival = (.now - interval * 1000, interval)
        let recorder = BatchRecorder(refuses: refuses)
        harness.stages = { [recorder] }
        let crash = run < 2 && self.happens(oneIn: 2)
        let calls = crash ? Int.random(in: 0..<60, using: &self.random) : .max
        var outcome: String
        do {
          outcome = "\(try await harness.run(source, crashAfter: calls))"
        } catch {
          outcome = "\(error)"
        }
        self.togetherCount += source.togetherCount
        self.courses.append(
          Course(
            batches: recorder.batches, outcome: outcome, commitSizes: harness.sink.commitSizes,
            statistics: harness.statistics.map(Self.text) ?? "", topics: harness.store.topics,
            lines: (["a", "b"] + harness.databases).map(harness.store.lines(of:)),
            letters: harness.store.deadLetters,
            positionsOfDatabase: harness.store.transactions["t"]?.topics ?? [:],
            allowed: source.allowed, starts: source.starts))
      }
    }

    private static func text(_ statistics: RunStatistics) -> String {
      func text(_ tally: RunStatistics.Tally) -> String {
        let attention = tally.attention.map { "\($0.key.entity) \($0.key.kind): \($0.value)" }
        return "\(tally.events) \(tally.rows) \(tally.leftOut) \(tally.deadLetters) "
          + "\(tally.refused) \(attention.sorted()) \(String(describing: tally.firstReplayID)) "
          + "\(String(describing: tally.lastReplayID)) \(String(describing: tally.newestCommit)) "
          + "\(String(describing: tally.completeThrough))"
      }
      let topic = statistics.topics[0]
      return "\(topic.delivered) \(topic.responses) \(topic.repeated) \(topic.futureCommits) "
        + "\(topic.retries) \(topic.holes); \(text(topic.taken)); \(text(topic.committed))"
    }
  }

  @Test("Events taken together end as if each had been taken alone", arguments: 0..<10)
  func together(tenth: Int) async {
    var togetherCount = 0
    for seed in UInt64(tenth) * 20..<UInt64(tenth + 1) * 20 {
      var together = Pipeline(seed: seed, isTogether: true)
      await together.run()
      var alone = Pipeline(seed: seed, isTogether: false)
      await alone.run()
      #expect(together.courses == alone.courses, "seed \(seed)")
      #expect(alone.togetherCount == 0)
      togetherCount += together.togetherCount
    }
    // 25 events of each pipeline.
    #expect(togetherCount > 20 * 25)
  }
}
