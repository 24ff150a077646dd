import JSON
import Testing

@testable import Pipeline

@Suite("Continuity of a resumed stream")
struct StreamContinuityTests {
  typealias Harness = PipelineRunnerTests.Harness

  private static let hour = StreamContinuity.tolerance
  private static let now: Int64 = 1_000_000_000

  @Test(
    "Only the first change after a stored position is compared, with an hour's tolerance",
    arguments: [
      ([now - hour], nil), ([now - hour - 1], now), ([nil, nil, now - hour - 1], now),
      ([now, now - 5 * hour], nil), ([nil], nil), ([now + 5 * hour, 0], nil),
    ] as [([Int64?], Int64?)])
  func judges(commits: [Int64?], verdict: Int64?) {
    var continuity = StreamContinuity()
    continuity.opening(at: .after(ReplayID([1])), exported: Self.now)
    #expect(commits.compactMap { continuity.judge(commit: $0) }.first == verdict)
  }

  @Test("Nothing is compared where old changes are expected or nothing is known")
  func comparesNothing() {
    for (start, exported) in [
      (StartPoint.earliest, Self.now), (.latest, Self.now), (.after(ReplayID([1])), nil),
    ] as [(StartPoint, Int64?)] {
      var continuity = StreamContinuity()
      continuity.opening(at: start, exported: exported)
      #expect(!continuity.isOpen)
      #expect(continuity.judge(commit: 0) == nil)
    }
  }

  /// Two events, and what comes after them.
  private static func log(then times: Int64?...) -> [ScriptedEvent] {
    ([now - 2000, now] + times).enumerated().map { index, time in
      ScriptedEvent(replay: index + 1, event: "e\(index)", committedAt: time)
    }
  }

  private func harness() async throws -> Harness {
    let harness = Harness()
    harness.databases = ["d"]
    harness.wallClock = Self.now
    try await harness.run(ScriptedSource(Self.log()))
    return harness
  }

  @Test("Nothing of another stream is written, and each store knows the time")
  func isRefused() async throws {
    let harness = try await self.harness()
    for position in [try harness.store.positions(), try harness.store.positions(of: "d")] {
      #expect(position["/data/T"]?.newestCommit == Self.now)
    }
    let before = harness.store.topics
    let other = Self.log(then: nil, Self.now - Self.hour - 1, Self.now)
    await #expect(
      throws: OtherStreamError(
        topic: "/data/T", exportedAt: Self.now, committedAt: Self.now - Self.hour - 1)
    ) { try await harness.run(ScriptedSource(other)) }
    #expect(harness.store.topics == before)
    #expect(harness.store.lines(of: "a").count == 2)
    #expect(harness.store.lines(of: "d").count == 2)
    // It is asked for again by every run, until somebody decides.
    await #expect(throws: OtherStreamError.self) {
      try await harness.run(ScriptedSource(other))
    }
  }

  @Test("The same stream is resumed")
  func goesOn() async throws {
    let harness = try await self.harness()
    let log = Self.log(then: Self.now - Self.hour, Self.now - 10 * Self.hour)
    try await harness.run(ScriptedSource(log))
    #expect(harness.store.lines(of: "d").count == 4)
    #expect(try harness.store.positions()["/data/T"]?.newestCommit == Self.now)
  }

  @Test("A position of an earlier version without the time is resumed")
  func earlierVersion() async throws {
    let harness = try await self.harness()
    func old(_ topics: [String: JSONValue]) -> [String: JSONValue] {
      topics.mapValues { json in
        JSONValue(.object((json.members ?? []).filter { $0.name != "newest_commit_ms" }))
      }
    }
    let stored = (harness.store.topics, try #require(harness.store.transactions["d"]))
    harness.store.topics = old(stored.0)
    harness.store.transactions["d"] = (old(stored.1.topics), stored.1.lines)
    try await harness.run(ScriptedSource(Self.log(then: Self.now - 10 * Self.hour)))
    #expect(harness.store.lines(of: "d").count == 3)
  }

  @Test("An epoch that reads old events again knows only its own times")
  func newEpoch() async throws {
    let harness = try await self.harness()
    harness.configuration.onInvalidReplay = .earliest
    let log = [Self.now - 20 * Self.hour, Self.now - 19 * Self.hour].enumerated().map {
      ScriptedEvent(replay: $0.offset + 11, event: "o\($0.offset)", committedAt: $0.element)
    }
    let source = ScriptedSource(log)
    source.refusals = 1
    try await harness.run(source)
    #expect(try harness.store.positions()["/data/T"]?.newestCommit == Self.now - 19 * Self.hour)
    let more = log + [ScriptedEvent(replay: 13, event: "m", committedAt: Self.now - 18 * Self.hour)]
    try await harness.run(ScriptedSource(more))
    #expect(harness.store.lines(of: "a").count == 5)
  }
}
