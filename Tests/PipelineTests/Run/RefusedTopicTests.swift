import Testing

@testable import Pipeline

/// A topic that the service refuses does not stop the others.
@Suite("Runs with a topic that is refused") struct RefusedTopicTests {
  typealias Harness = PipelineRunnerTests.Harness

  private static let events = PipelineRunnerTests.events(14)
  private static let late = ScriptedEvent(replay: 99, event: "late")

  private func source(refusals: Int, interrupts: Bool = false) -> ScriptedSource {
    ScriptedSource(
      Self.events,
      refused: ScriptedSource.Refused(times: refusals, event: Self.late, interrupts: interrupts))
  }

  @Test("A run that ends by itself exports the other topics first, and asks once")
  func batch() async throws {
    let harness = Harness()
    var refusals: [Duration?] = []
    harness.onNote = { if case .refused(_, _, let delay) = $0 { refusals.append(delay) } }
    let outcome = try await harness.run(self.source(refusals: 5))
    guard case .caughtUp = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(harness.store.lines(of: "a") == Self.events.map(\.line))
    #expect(harness.statistics?.topics.map { $0.refusal?.reason } == [nil, "topic_not_found"])
    #expect(refusals == [nil])
    // What was misspelt leaves no position.
    #expect(try harness.store.positions().keys.sorted() == ["/data/T"])
  }

  @Test("A run that follows asks again until the topic is available", arguments: 0...3)
  func following(refusals: Int) async throws {
    let harness = Harness()
    harness.configuration.until = .forever
    harness.configuration.refusedDelay = .zero
    var told = 0
    harness.onNote = { if case .refused(_, _, .some) = $0 { told += 1 } }
    let outcome = try await harness.run(self.source(refusals: refusals, interrupts: true))
    guard case .interrupted(following: true) = outcome else {
      return #expect(Bool(false), "\(outcome)")
    }
    #expect(told == refusals)
    #expect(harness.statistics?.topics[1].refusal == nil)
    #expect(harness.statistics?.topics[1].retries == refusals)
    #expect(Set(harness.store.lines(of: "a")) == Set((Self.events + [Self.late]).map(\.line)))
  }

  @Test("A refused topic is not requested again before its time")
  func pace() {
    var topic = TopicRun(
      SourceTopic(name: "/data/R", isChannel: false, start: .earliest), index: 0, stored: [nil],
      keeper: 0, rules: CaughtUp.Configuration(quiet: .zero, window: 1, runStart: 0))
    let now = ContinuousClock.now
    let failure = SourceFailure(.refused, reason: "r", "refused")
    topic.refused(failure, until: now + .seconds(600))
    #expect(topic.hasEnded)
    let turns = [599, 600, 601].map { topic.resumeIfDue(at: now + .seconds($0)) }
    #expect(turns == [false, true, false])
    #expect(!topic.hasEnded)
    // A refusal is over when the topic delivers, not when it is asked for.
    #expect(topic.refusal != nil)
    topic.refused(failure, until: nil)
    let isAskedAgain = topic.resumeIfDue(at: now + .seconds(100_000))
    #expect(!isAskedAgain)
  }

  @Test("A run whose topics are all refused ends", arguments: [false, true])
  func all(follows: Bool) async throws {
    let harness = Harness()
    if follows { harness.configuration.until = .forever }
    let source = self.source(refusals: .max)
    source.refusesAll = true
    var noteCount = 0
    harness.onNote = { if case .refused = $0 { noteCount += 1 } }
    let outcome = try await harness.run(source)
    guard case .failed(let failure) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(failure.disposition == .refused)
    #expect(harness.statistics?.topics.allSatisfy { $0.refusal != nil } == true)
    // No other topic is exported after the last refusal.
    #expect(noteCount == (follows ? 2 : 1))
  }
}
