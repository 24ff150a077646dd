import Testing

@testable import Pipeline

@Suite struct CaughtUpTests {
  let start = ContinuousClock.now

  private func rules() -> CaughtUp {
    var rules = CaughtUp(.init(quiet: .seconds(15), window: 100, runStart: 1_000_000))
    rules.opened(at: self.start)
    return rules
  }

  @Test("Silence ends the run, twice as long before the first response")
  func quiet() {
    var rules = self.rules()
    rules.tick(at: self.start + .seconds(29))
    #expect(rules.rule == nil)
    rules.tick(at: self.start + .seconds(30))
    #expect(rules.rule == .quiet)
  }

  @Test("Silence of a stream that is not open says nothing")
  func closed() {
    var rules = self.rules()
    rules.closed()
    rules.tick(at: self.start + .seconds(1000))
    #expect(rules.rule == nil)
  }

  @Test("An empty response counts only when the last event is long enough ago")
  func keepalive() {
    var rules = self.rules()
    rules.responded(events: 3, pending: 0, newestCommit: nil, at: self.start)
    rules.responded(events: 0, pending: 100, newestCommit: nil, at: self.start + .seconds(14))
    #expect(rules.rule == nil)
    rules.responded(events: 0, pending: 100, newestCommit: nil, at: self.start + .seconds(15))
    #expect(rules.rule == .keepalive)
  }

  @Test(
    "A change committed during the run ends it", arguments: [(1_002_000, false), (1_002_001, true)])
  func committedAfterStart(commit: Int64, ends: Bool) {
    var rules = self.rules()
    rules.responded(events: 1, pending: 99, newestCommit: commit, at: self.start)
    #expect((rules.rule == .committedAfterStart) == ends)
  }

  @Test("A trickle that never uses half of the credit ends the run, a burst starts over")
  func supplyLimited() {
    var rules = self.rules()
    rules.responded(events: 1, pending: 99, newestCommit: nil, at: self.start)
    rules.responded(events: 60, pending: 40, newestCommit: nil, at: self.start + .seconds(10))
    rules.responded(events: 1, pending: 99, newestCommit: nil, at: self.start + .seconds(16))
    rules.responded(events: 1, pending: 99, newestCommit: nil, at: self.start + .seconds(30))
    #expect(rules.rule == nil)
    rules.responded(events: 1, pending: 99, newestCommit: nil, at: self.start + .seconds(31))
    #expect(rules.rule == .supplyLimited)
  }
}
