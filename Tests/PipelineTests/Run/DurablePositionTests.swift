import Testing

@testable import Pipeline

/// What the source is told to be durable, since it may have the service store it.
@Suite("Durable positions") struct DurablePositionTests {
  private static let log = (1...30).map { ScriptedEvent(replay: $0, event: "e\($0)") }

  @Test("The source learns only positions that every store has made durable, despite crashes")
  func neverAhead() async throws {
    var told = 0
    for calls in 0..<120 {
      let harness = PipelineRunnerTests.Harness()
      harness.databases = ["x", "y"]
      for limit in [calls, .max] {
        let source = ScriptedSource(Self.log)
        source.onDurable = { resume in
          told += 1
          let stored =
            try? [harness.store.positions()]
            + ["x", "y"].map(harness.store.positions(of:))
          #expect(stored?.count == 3)
          for stored in stored ?? [] {
            guard let position = stored["/data/T"]?.resume else {
              Issue.record("\(resume) is said to be durable, and a store has no position")
              return
            }
            #expect(!position.isCertainlyBefore(resume))
          }
        }
        _ = try? await harness.run(source, crashAfter: limit)
      }
    }
    #expect(told > 500)
  }

  @Test("The source learns the last position, and a later run begins with it")
  func last() async throws {
    let harness = PipelineRunnerTests.Harness()
    var told: [ReplayID] = []
    for _ in 0..<2 {
      let source = ScriptedSource(Self.log)
      source.onDurable = { told.append($0) }
      try await harness.run(source)
    }
    #expect(told.last == Self.log.last?.replayID)
    #expect(told.filter { $0 == Self.log.last?.replayID }.count >= 2)
    #expect(try harness.store.positions()["/data/T"]?.resume == told.last)
  }
}
