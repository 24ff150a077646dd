import JSON
import Testing

@testable import Pipeline

/// A store that is not available for a while: the run waits for it without standing still.
@Suite("Runs while a store is unavailable") struct StoreOutageTests {
  typealias Harness = PipelineRunnerTests.Harness

  private static let events = PipelineRunnerTests.events(14)

  /// - Parameter databases: of these the first is away at some of its calls.
  private func harness(
    away calls: Range<Int>, databases: [String] = ["t"], delay: Duration = .zero
  ) -> Harness {
    let harness = Harness()
    harness.databases = databases
    let plan = OutagePlan(calls)
    plan.delay = delay
    harness.outages["t"] = plan
    return harness
  }

  private func check(_ harness: Harness, _ log: [ScriptedEvent], _ comment: Comment) {
    for sink in ["a", "b"] + harness.databases {
      #expect(harness.store.lines(of: sink) == log.map(\.line), comment)
    }
  }

  @Test(
    "Nothing is lost or repeated, whichever call of a store fails and wherever a run crashes",
    arguments: [["t"], ["u", "t"], ["t", "u"]], [false, true])
  func everyCall(databases: [String], isChannel: Bool) async throws {
    let log = isChannel ? PipelineRunnerTests.grouped : Self.events
    func source() -> ScriptedSource {
      ScriptedSource(log, responseSize: 5, isChannel: isChannel)
    }
    var first = 0
    var hasBeenAway = true
    while hasBeenAway {
      for length in [1, 3] {
        var point = 0
        var hasCrashed = true
        while hasCrashed {
          let harness = self.harness(away: first..<first + length, databases: databases)
          harness.areSlow = length > 1
          hasCrashed = false
          do {
            try await harness.run(source(), crashAfter: point)
          } catch is CrashPoint.Crash {
            hasCrashed = true
            harness.outages = [:]
            try await harness.run(source())
          }
          self.check(harness, log, "away at \(first), crash at \(point)")
          // Every third point is enough where there are many.
          point += isChannel ? 3 : 1
          if !hasCrashed {
            hasBeenAway = harness.outages["t"].map { $0.passed > first + length } ?? true
          }
        }
      }
      first += 1
    }
    #expect(first > 6)
  }

  @Test("Events are taken only until the next commit is full")
  func bounded() async throws {
    // The first call is for the layout, the second for the first commit.
    let harness = self.harness(away: 1..<200)
    let log = PipelineRunnerTests.events(40)
    try await harness.run(ScriptedSource(log, responseSize: 3))
    self.check(harness, log, "")
    let most = try #require(harness.stores.first).largestPendingCount
    // Two commits of four events, each of which may go on to the end of a transaction or response.
    #expect((8...14).contains(most), "\(most)")
  }

  @Test("A response waits while the tables of its events are unavailable")
  func layoutAway() async throws {
    let harness = self.harness(away: 0..<5, delay: .milliseconds(1))
    let source = ScriptedSource(Self.events, responseSize: 14)
    try await harness.run(source)
    #expect(source.waitCount > 0)
    self.check(harness, Self.events, "")
  }

  @Test(
    "An interrupted run ends when the store stays unavailable, and loses nothing", arguments: 0...3)
  func interrupted(call: Int) async throws {
    let harness = self.harness(away: call..<100_000, delay: .milliseconds(1))
    harness.configuration.until = .forever
    harness.configuration.stopPatience = .zero
    let log = PipelineRunnerTests.events(40)
    let source = ScriptedSource(log)
    source.onWait = { $0 == 2 }
    await #expect(throws: OutagePlan.Outage.self) { try await harness.run(source) }
    harness.configuration.until = .caughtUp
    harness.outages = [:]
    try await harness.run(ScriptedSource(log))
    self.check(harness, log, "")
  }

  @Test("A run that gives up reports only committed events")
  func tellsOfCommitted() async throws {
    // After a layout and one commit of four events.
    let harness = self.harness(away: 3..<100_000, delay: .milliseconds(1))
    harness.configuration.until = .forever
    harness.configuration.stopPatience = .zero
    let log = PipelineRunnerTests.events(40).map { event in
      var event = event
      event.committedAt = 900_000 + Int64(event.replay)
      return event
    }
    let source = ScriptedSource(log, responseSize: 2)
    source.onWait = { $0 == 2 }
    await #expect(throws: OutagePlan.Outage.self) { try await harness.run(source) }
    let topic = try #require(harness.statistics?.topics.first)
    let position = try #require(try harness.store.positions(of: "t")["/data/T"])
    #expect(position.nextOrdinal > 0)
    #expect(topic.committed.events == Int(position.nextOrdinal))
    #expect(topic.committed.rows == topic.committed.events)
    #expect(topic.committed.lastReplayID == position.resume)
    #expect(topic.committed.completeThrough == position.completeThrough)
    #expect(topic.committed.newestCommit == position.newestCommit)
    #expect(harness.statistics?.newestCommit == position.newestCommit)
    #expect(topic.taken.events > topic.committed.events)
    #expect(topic.taken.newestCommit != topic.committed.newestCommit)
    // The report of a run that has committed nothing has the position from before.
    let away = OutagePlan(0..<100_000)
    away.delay = .milliseconds(1)
    harness.outages["t"] = away
    await #expect(throws: OutagePlan.Outage.self) {
      let source = ScriptedSource(log, responseSize: 2)
      source.onWait = { $0 == 2 }
      try await harness.run(source)
    }
    let next = try #require(harness.statistics?.topics.first)
    #expect(next.committed.events == 0 && next.committed.lastReplayID == nil)
    #expect(next.committed.completeThrough == position.completeThrough)
  }

  @Test("An interrupted run waits briefly for a store that returns")
  func interruptedInTime() async throws {
    let harness = self.harness(away: 1..<20, delay: .milliseconds(1))
    harness.configuration.until = .forever
    let source = ScriptedSource(Self.events)
    source.onWait = { $0 == 2 }
    let outcome = try await harness.run(source)
    guard case .interrupted = outcome else { return #expect(Bool(false), "\(outcome)") }
    // What the source had handed on by then is committed.
    let count = harness.store.lines(of: "t").count
    #expect(count > 3)
    #expect(harness.store.lines(of: "a").count == count)
  }

  @Test("A time limit ends a run whose store stays unavailable")
  func timeLimit() async throws {
    let harness = self.harness(away: 1..<100_000, delay: .milliseconds(1))
    harness.configuration.maxDuration = .zero
    harness.configuration.stopPatience = .zero
    await #expect(throws: OutagePlan.Outage.self) {
      try await harness.run(ScriptedSource(Self.events))
    }
  }

  @Test("A stopping run retries a store at once, whatever delay remained")
  func hastened() async throws {
    let harness = self.harness(away: 1..<2, delay: .seconds(3600))
    harness.configuration.until = .forever
    let source = ScriptedSource(PipelineRunnerTests.events(40))
    source.onWait = { $0 == 2 }
    let outcome = try await harness.run(source)
    guard case .interrupted = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(harness.store.lines(of: "t").count == harness.store.lines(of: "a").count)
    #expect(harness.store.lines(of: "t").count > 3)
  }

  @Test("During an outage of one store, the others renew their leases and finish what they hold")
  func leases() async throws {
    let harness = self.harness(away: 0..<20, databases: ["u", "t"])
    harness.isLeaseDue = true
    try await harness.run(ScriptedSource(Self.events))
    self.check(harness, Self.events, "")
    let other = try #require(harness.stores.first { $0.name == "u" })
    #expect(other.renewalCount > 5)
    #expect(other.retractionCount > 5)
  }

  @Test(
    "Refused and undecodable events are one dead letter each during an outage", arguments: 0...9)
  func letters(away: Int) async throws {
    let harness = self.harness(away: away..<away + 3, databases: ["u", "t"])
    harness.configuration.maxDeadLetters = 10
    harness.refusedEvents = ["e2", "e9"]
    var log = Self.events
    log[5].isBroken = true
    log[11].isBroken = true
    try await harness.run(ScriptedSource(log))
    #expect(harness.letters.letters.sorted() == ["e12", "e2", "e6", "e9"])
    #expect(harness.statistics?.deadLetters == 4)
  }

  @Test("A new epoch starts in no store before all stores have ended the old one", arguments: 0...6)
  func newEpoch(away: Int) async throws {
    let harness = self.harness(away: away..<away + 4)
    harness.configuration.onInvalidReplay = .earliest
    let source = ScriptedSource(Self.events)
    source.refusals = 1
    try await harness.run(source)
    #expect(harness.statistics?.holes == 1)
    #expect(try harness.store.positions(of: "t")["/data/T"]?.epoch == 2)
    self.check(harness, Self.events, "")
  }
}
