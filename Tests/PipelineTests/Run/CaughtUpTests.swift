import Testing

@testable import Pipeline

@Suite("Caught up") struct CaughtUpTests {
  let start = ContinuousClock.now

  private func rules(isConfirmed: Bool = false) -> CaughtUp {
    var rules = CaughtUp(.init(quiet: .seconds(15), window: 100, runStart: 1_000_000))
    rules.opened(at: self.start, isConfirmed: isConfirmed)
    return rules
  }

  @Test(
    "Silence ends the run after one quiet period from a confirmed position, otherwise after two",
    arguments: [(isConfirmed: true, seconds: 15), (isConfirmed: false, seconds: 30)])
  func quiet(isConfirmed: Bool, seconds: Int) {
    var rules = self.rules(isConfirmed: isConfirmed)
    rules.tick(at: self.start + .seconds(seconds - 1))
    #expect(rules.rule == nil)
    rules.tick(at: self.start + .seconds(seconds))
    #expect(rules.rule == .quiet)
  }

  @Test("After the first response, one quiet period ends the run")
  func quietAfterResponse() {
    var rules = self.rules()
    rules.responded(events: 3, pending: 0, newestCommit: nil, at: self.start + .seconds(20))
    #expect(rules.quietDeadline == self.start + .seconds(35))
    rules.closed()
    #expect(rules.quietDeadline == nil)
    rules.opened(at: self.start + .seconds(40), isConfirmed: true)
    #expect(rules.quietDeadline == self.start + .seconds(55))
  }

  @Test("The silence so far counts from the last message, or from the opening of the stream")
  func silence() {
    typealias Silence = CaughtUp.Silence
    var rules = self.rules(isConfirmed: false)
    #expect(
      rules.silence(at: self.start + .seconds(4))
        == Silence(elapsed: .seconds(4), needed: .seconds(30)))
    rules.responded(events: 3, pending: 0, newestCommit: nil, at: self.start + .seconds(20))
    #expect(
      rules.silence(at: self.start + .seconds(29))
        == Silence(elapsed: .seconds(9), needed: .seconds(15)))
    rules.held()
    #expect(rules.silence(at: self.start + .seconds(30)) == nil)
    rules.responded(events: 0, pending: 0, newestCommit: nil, at: self.start + .seconds(40))
    #expect(rules.silence(at: self.start + .seconds(41)) == nil, "a rule has decided")
  }

  @Test("Silence of a closed stream does not count")
  func closed() {
    var rules = self.rules()
    rules.closed()
    rules.tick(at: self.start + .seconds(1000))
    #expect(rules.rule == nil)
  }

  @Test("An empty response counts only long enough after the last event")
  func keepalive() {
    var rules = self.rules()
    rules.responded(events: 3, pending: 0, newestCommit: nil, at: self.start)
    rules.responded(events: 0, pending: 100, newestCommit: nil, at: self.start + .seconds(14))
    #expect(rules.rule == nil)
    rules.responded(events: 0, pending: 100, newestCommit: nil, at: self.start + .seconds(15))
    #expect(rules.rule == .keepalive)
  }

  @Test(
    "A change committed after the run's start ends the run",
    arguments: [(1_002_000, false), (1_002_001, true)])
  func committedAfterStart(commit: Int64, ends: Bool) {
    var rules = self.rules()
    rules.responded(events: 1, pending: 99, newestCommit: commit, at: self.start)
    #expect((rules.rule == .committedAfterStart) == ends)
  }

  @Test("A trickle below half the credit ends the run, and a burst restarts the wait")
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
