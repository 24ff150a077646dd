import Testing

@testable import Pipeline

@Suite("Times of a run") struct RunTimesTests {
  @Test("Bounds are inclusive, and a negative time counts as 0")
  func histogram() {
    var histogram = TimeHistogram(bounds: [1, 2])
    for (time, count) in [(-3.0, 1), (1, 2), (1.5, 3), (2, 4), (2.5, 5)] {
      histogram.add(time, count: count)
    }
    #expect(histogram.counts == [3, 7, 5])
    #expect(histogram.count == 15)
    #expect(histogram.sum == 27)
  }

  private func harness(_ measures: Bool) -> PipelineRunnerTests.Harness {
    let harness = PipelineRunnerTests.Harness()
    harness.configuration.measuresTimes = measures
    return harness
  }

  /// Change events committed so many milliseconds before the run's time, which stands still.
  private func events(_ ages: [Int64?], of harness: PipelineRunnerTests.Harness) -> [ScriptedEvent]
  {
    ages.enumerated().map { index, age in
      ScriptedEvent(
        replay: index + 1, event: "e\(index)", transaction: "t",
        committedAt: age.map { harness.wallClock - $0 })
    }
  }

  @Test("Each durable event with a plausible commit time counts once, by its age", arguments: 1...4)
  func lag(responseSize: Int) async throws {
    let harness = self.harness(true)
    let ages: [Int64?] = [3000, 3000, 60_000, nil, 3000, 0, -5000, -60_000]
    try await harness.run(
      ScriptedSource(self.events(ages, of: harness), responseSize: responseSize))
    let topic = try #require(harness.statistics?.topics.first)
    // The last one is in the future; the one before it may be, by the precision of clocks.
    #expect(topic.lag.count == 6 && topic.lag.sum == 69)
    #expect(topic.futureCommits == 1)
    let byBound = zip(topic.lag.bounds, topic.lag.counts).filter { $0.1 > 0 }
    #expect(byBound.map(\.0) == [1, 5, 60] && byBound.map(\.1) == [2, 3, 1])
    #expect(topic.processing.count == ages.count && topic.committed.events == ages.count)
  }

  @Test("Dead letters are events that became durable")
  func deadLetters() async throws {
    let harness = self.harness(true)
    harness.configuration.maxDeadLetters = nil
    var events = PipelineRunnerTests.events(5)
    events[2].isBroken = true
    try await harness.run(ScriptedSource(events))
    #expect(harness.statistics?.topics.first?.processing.count == 5)
  }

  @Test("What a crash has undone is not counted")
  func crash() async throws {
    let harness = self.harness(true)
    var point = 0
    while true {
      do {
        try await harness.run(ScriptedSource(PipelineRunnerTests.events(9)), crashAfter: point)
        break
      } catch is CrashPoint.Crash {
        let topic = try #require(harness.statistics?.topics.first)
        #expect(topic.processing.count == topic.committed.events)
        point += 1
      }
    }
    #expect(point > 3)
  }

  @Test("Calls of each store are measured by phase, and nothing is if nobody wants to know")
  func stores() async throws {
    for measures in [true, false] {
      let harness = self.harness(measures)
      harness.databases = ["d"]
      try await harness.run(ScriptedSource(self.events([0, 0, 0], of: harness)))
      let statistics = try #require(harness.statistics)
      #expect(statistics.stores.map(\.name) == [CheckpointedStore.name, "d"])
      // The checkpoint needs no tables.
      let phases: Set<RunStatistics.StorePhase> = [.write, .seal, .prepare, .commit, .complete]
      let times = statistics.stores.map { Set($0.times.keys) }
      #expect(times == (measures ? [phases, phases.union([.makeReady])] : [[], []]))
      #expect(statistics.topics[0].lag.count == (measures ? 3 : 0))
      #expect(statistics.topics[0].processing.count == (measures ? 3 : 0))
    }
  }

  @Test("Openings of a stream are counted, and the last commit and the position have their times")
  func streams() async throws {
    let harness = self.harness(false)
    let source = ScriptedSource(PipelineRunnerTests.events(9))
    source.breakAfter = 1
    try await harness.run(source)
    let topic = try #require(harness.statistics?.topics.first)
    #expect(topic.openings == 2 && topic.keepalives == 0 && topic.committed.events == 9)
    #expect(harness.statistics?.lastCommitAt == harness.wallClock)
    #expect(topic.committed.confirmedAt == harness.wallClock)
  }
}
