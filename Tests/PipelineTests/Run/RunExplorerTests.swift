import Checkpoint
import TestSupport
import Testing

@testable import Pipeline

/// Walks through every way a short log can come: cut into responses anywhere, empty responses at
/// any border of a group, a start at the earliest event or at any later one, two sinks, and a crash
/// at every call, in the first run and in the one after it; with a sink whose position is in its own
/// store, slow or not, and without. What is explored is the production runner with its positions; sinks and
/// stores are memory. Of the longest logs every seventh way is walked through, unless
/// `PUBSUB_TEST_FULL` is set.
@Suite("Exploration of runs") struct RunExplorerTests {
  struct Way {
    var cuts: Set<Int>
    var keepalives: Set<Int>
    /// Events older than the start.
    var tip: Int
  }

  /// A log of runs of equal replay IDs.
  private static func log(_ groups: [Int]) -> [ScriptedEvent] {
    groups.enumerated().flatMap { replay, size in
      (1...size).map {
        ScriptedEvent(replay: replay + 1, event: "e\(replay + 1)", record: "r\($0)")
      }
    }
  }

  private static func subsets(_ elements: [Int]) -> [Set<Int>] {
    elements.reduce([[]]) { sets, element in sets + sets.map { $0.union([element]) } }
  }

  private static func ways(_ log: [ScriptedEvent]) -> [Way] {
    // An empty response follows a closed group only.
    let borders = (1...log.count).filter { $0 == log.count || log[$0].replay != log[$0 - 1].replay }
    return Self.subsets(Array(1..<log.count)).flatMap { cuts in
      Self.subsets(borders.filter { cuts.contains($0) || $0 == log.count }).flatMap { keepalives in
        ([0] + borders.dropLast()).map { Way(cuts: cuts, keepalives: keepalives, tip: $0) }
      }
    }
  }

  private static func source(_ log: [ScriptedEvent], _ way: Way) -> ScriptedSource {
    let source = ScriptedSource(
      log, isChannel: true, start: way.tip == 0 ? .earliest : .latest)
    source.cuts = way.cuts
    source.keepalives = way.keepalives
    source.tip = way.tip
    return source
  }

  /// - Returns: whether the run came to its end.
  private static func run(
    _ harness: PipelineRunnerTests.Harness, _ source: ScriptedSource, crashAfter calls: Int
  ) async throws -> Bool {
    do {
      try await harness.run(source, crashAfter: calls)
      return true
    } catch is CrashPoint.Crash {
      return false
    }
  }

  @Test(
    "Nothing is lost, repeated or stuck for any log and any crashes",
    arguments: [[1, 1, 1], [3], [2, 1], [1, 3], [2, 2], [1, 2, 1]], [[], ["t"]])
  func explore(groups: [Int], databases: [String]) async throws {
    let log = Self.log(groups)
    var explored = 0
    // Odd, because neighbours differ in one choice of two.
    let interval = log.count < 4 || ExplorationSize.isFull ? 1 : 7
    for (number, way) in Self.ways(log).enumerated() where number % interval == 0 {
      var first = 0
      var hasEnded = false
      while !hasEnded {
        var second = 0
        var hasEndedAgain = false
        while !hasEndedAgain {
          let harness = PipelineRunnerTests.Harness()
          harness.configuration.commitMaxEvents = 1
          harness.databases = databases
          harness.areSlow = number % 4 < 2
          hasEnded = try await Self.run(harness, Self.source(log, way), crashAfter: first)
          // A start at the latest stands where the tip is: nothing before a position exists.
          var next = way
          if harness.store.topics.isEmpty { next.tip = way.tip } else { next.tip = log.count }
          if way.tip == 0 { next.tip = 0 }
          hasEndedAgain = try await Self.run(harness, Self.source(log, next), crashAfter: second)
          if harness.store.topics.isEmpty {
            next.tip = way.tip
          } else if way.tip > 0 {
            next.tip = log.count
          }
          _ = try await Self.run(harness, Self.source(log, next), crashAfter: .max)
          let expected = log.dropFirst(way.tip).map(\.line)
          for sink in ["a", "b"] + databases where harness.store.lines(of: sink) != expected {
            Issue.record(
              "\(way), crashes at \(first) and \(second): \(sink): \(harness.store.lines(of: sink))"
            )
            return
          }
          explored += 1
          second += 1
        }
        first += 1
      }
    }
    #expect(explored > 100)
  }

  @Test("A second instance is refused at every step of the first, and resumes after its end")
  func secondInstance() async throws {
    let log = Self.log([1, 2, 1])
    for way in Self.ways(log) where way.tip == 0 {
      var point = 0
      var hasEnded = false
      while !hasEnded {
        let directory = try TemporaryDirectory()
        let harness = PipelineRunnerTests.Harness()
        harness.configuration.commitMaxEvents = 1
        harness.databases = ["t"]
        func instance() throws(CheckpointError) -> FileCheckpointStore {
          try FileCheckpointStore(directory: directory.path, pipeline: "p")
        }
        var steps = 0
        harness.onStep = {
          steps += 1
          #expect(throws: CheckpointError.self) { _ = try instance() }
        }
        do {
          let first = try instance()
          hasEnded = try await Self.run(harness, Self.source(log, way), crashAfter: point)
          withExtendedLifetime(first) {}
        }
        #expect(steps > 0)
        harness.onStep = nil
        let second = try instance()
        _ = try await Self.run(harness, Self.source(log, way), crashAfter: .max)
        withExtendedLifetime(second) {}
        for sink in ["a", "b", "t"] {
          #expect(harness.store.lines(of: sink) == log.map(\.line), "\(way), crash at \(point)")
        }
        point += 1
      }
    }
  }
}
