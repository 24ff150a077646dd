import Testing

@testable import Pipeline

/// Responses that have come and whose schemas have not: the run goes on without them.
@Suite("Runs without a schema")
struct HeldResponseTests {
  typealias Harness = PipelineRunnerTests.Harness

  private static let noSchema = SourceFailure(.unavailable, reason: "unavailable", "GetSchema s")
  private static let events = PipelineRunnerTests.events(9)

  /// A source of which the response from the fourth event on is held.
  private func source(
    _ signals: [SourceSignal<ScriptedResponse>?], isReleased: Bool = false
  ) -> ScriptedSource {
    let source = ScriptedSource(Self.events, responseSize: 3)
    source.held = .init(replay: 4, signals: signals, isReleased: isReleased)
    return source
  }

  @Test("A signal ends the run after the earlier events, and the next run resumes there")
  func interrupted() async throws {
    let harness = Harness()
    let outcome = try await harness.run(
      self.source([.schemasFailed(topic: 0, Self.noSchema, delay: .seconds(60)), nil, .interrupted])
    )
    guard case .interrupted = outcome else { return #expect(Bool(false), "\(outcome)") }
    let topic = try #require(harness.statistics).topics[0]
    #expect(topic.retries == 1 && topic.lastFailure?.description == "GetSchema s")
    #expect(harness.store.lines(of: "a") == Self.events.prefix(3).map(\.line))
    try await harness.run(ScriptedSource(Self.events, responseSize: 3))
    #expect(harness.store.lines(of: "a") == Self.events.map(\.line))
  }

  @Test("A request that fails because of a signal is not reported as retried")
  func failsWhileStopping() async throws {
    let harness = Harness()
    var retries = 0
    harness.onRetry = { retries += 1 }
    let source = self.source([
      .interrupted, .schemasFailed(topic: 0, Self.noSchema, delay: .seconds(60)),
    ])
    source.held?.endsWithStop = false
    try await harness.run(source)
    #expect(harness.statistics?.topics[0].retries == 1)
    #expect(retries == 0)
  }

  @Test("A time limit ends the run", arguments: [false, true])
  func timeLimit(isGoal: Bool) async throws {
    let harness = Harness()
    if isGoal {
      harness.configuration.until = .duration(.zero)
    } else {
      harness.configuration.maxDuration = .zero
    }
    switch try await harness.run(self.source([nil, nil])) {
    case .durationReached: #expect(isGoal)
    case .outOfTime: #expect(!isGoal)
    case let outcome: #expect(Bool(false), "\(outcome)")
    }
  }

  @Test("Events with a late schema are exported, and the wait is no longer reported")
  func lateSchema() async throws {
    let harness = Harness()
    var fetched = 0
    harness.onNote = { if case .schemasFetched("/data/T") = $0 { fetched += 1 } }
    // The time of silence after which a topic is caught up is zero here.
    try await harness.run(
      self.source(
        [nil, .schemasFailed(topic: 0, Self.noSchema, delay: .seconds(60)), nil, nil],
        isReleased: true))
    #expect(fetched == 1)
    #expect(harness.store.lines(of: "a") == Self.events.map(\.line))
    let topic = try #require(harness.statistics).topics[0]
    #expect(topic.retries == 1 && topic.lastFailure == nil)
  }

  @Test("Earlier events are committed in time, and leases are renewed")
  func commits() async throws {
    let harness = Harness()
    harness.configuration.commitMaxEvents = 1000
    harness.configuration.commitMaxDelay = .zero
    harness.databases = ["t"]
    harness.isLeaseDue = true
    let source = self.source([nil, nil, nil, .interrupted])
    var committed: [Int] = []
    source.held?.onSignal = { committed.append(harness.store.lines(of: "t").count) }
    try await harness.run(source)
    #expect(committed.first == 3)
    // Each silence renews the lease.
    #expect(try #require(harness.statistics).commits >= 4)
  }

  @Test("An unavailable schema ends the run with the position before its events")
  func refused() async throws {
    let harness = Harness()
    let failure = SourceFailure(.refused, reason: "schema_meta_permission", "GetSchema s")
    let outcome = try await harness.run(self.source([.ended(topic: 0, failure)]))
    guard case .failed(let cause) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(cause.reason == "schema_meta_permission")
    #expect(harness.store.lines(of: "a") == Self.events.prefix(3).map(\.line))
  }
}
