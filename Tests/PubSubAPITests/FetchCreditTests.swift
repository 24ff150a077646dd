import Testing

@testable import PubSubAPI

@Suite("Fetch credit") struct FetchCreditTests {
  let start = ContinuousClock.now

  func at(_ seconds: Int) -> ContinuousClock.Instant { self.start + .seconds(seconds) }

  @Test(
    "The window is between 1 and 100", arguments: [(-1, 1), (0, 1), (1, 1), (100, 100), (500, 100)])
  func window(asked: Int, window: Int) {
    var credit = FetchCredit(window: asked)
    #expect(credit.begin(at: self.start) == window)
  }

  @Test("Credit that a response used is requested again")
  func givesBack() {
    var credit = FetchCredit(window: 100)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 10, pending: 90, at: self.at(1)) == 10)
    #expect(credit.open == 100)
  }

  @Test("Outstanding requests are not repeated")
  func countsOutstandingRequests() {
    var credit = FetchCredit(window: 100)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 10, pending: 90, at: self.at(1)) == 10)
    // Sent before the service saw the 10.
    #expect(credit.received(eventCount: 30, pending: 60, at: self.at(1)) == 30)
    #expect(credit.received(eventCount: 60, pending: 0, at: self.at(1)) == 60)
    #expect(credit.open == 100)
  }

  @Test("Credit never exceeds the remaining allowance")
  func allowance() {
    var credit = FetchCredit(window: 100, allowance: 130)
    #expect(credit.begin(at: self.start) == 100)
    #expect(credit.received(eventCount: 20, pending: 80, at: self.at(1)) == 20)
    #expect(credit.received(eventCount: 50, pending: 50, at: self.at(1)) == 10)
    #expect(credit.received(eventCount: 30, pending: 30, at: self.at(1)) == nil)
    #expect(credit.received(eventCount: 30, pending: 0, at: self.at(1)) == nil)
    #expect(credit.restart(at: self.at(50)) == nil && credit.open == 0)
    #expect(credit.allow(2, at: self.at(51)) == 2)
    #expect(credit.allowance == 2)
  }

  @Test("A stream without a limit keeps no account of an allowance")
  func noAllowance() {
    var credit = FetchCredit(window: 100)
    #expect(credit.begin(at: self.start) == 100)
    #expect(credit.allow(5, at: self.at(1)) == nil && credit.open == 100)
  }

  @Test("A keepalive with the whole window open requests nothing")
  func keepalive() {
    var credit = FetchCredit(window: 5)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 0, pending: 5, at: self.at(60)) == nil)
  }

  @Test("The service's count applies once nothing can be in flight")
  func settles() {
    var credit = FetchCredit(window: 100)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 0, pending: 40, at: self.at(9)) == nil)
    #expect(credit.received(eventCount: 0, pending: 40, at: self.at(10)) == 60)
  }

  @Test(
    "A service that reports more open credit gets no further request",
    arguments: [100, 5000, Int(Int32.max)])
  func pendingTooHigh(pending: Int) {
    var credit = FetchCredit(window: 100)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 50, pending: pending, at: self.at(1)) == nil)
    #expect(credit.open == 100)
  }

  @Test("Excess events and negative counts never raise credit above the window")
  func hostileCounts() {
    var credit = FetchCredit(window: 10)
    _ = credit.begin(at: self.start)
    #expect(credit.received(eventCount: 5000, pending: -7, at: self.at(1)) == 10)
    #expect(credit.received(eventCount: 0, pending: -7, at: self.at(20)) == 10)
  }

  @Test("After a stop, no credit is given, and open credit is counted down")
  func stops() {
    var credit = FetchCredit(window: 10)
    _ = credit.begin(at: self.start)
    credit.stop()
    #expect(credit.received(eventCount: 4, pending: 6, at: self.at(1)) == nil)
    #expect(credit.open == 6)
    #expect(credit.restart(at: self.at(2)) == nil)
  }

  @Test("Lost requests are repeated")
  func restarts() {
    var credit = FetchCredit(window: 10)
    _ = credit.begin(at: self.start)
    #expect(credit.restart(at: self.at(45)) == 10)
  }
}

@Suite("Liveness of a stream") struct LivenessTests {
  let start = ContinuousClock.now

  func at(_ seconds: Int) -> ContinuousClock.Instant { self.start + .seconds(seconds) }

  @Test("A stream without a message for 300 s is idle, and any message restarts the time")
  func idle() {
    var liveness = Liveness(openedAt: self.start)
    #expect(liveness.check(at: self.at(299)) == .alive(until: self.at(300)))
    #expect(liveness.check(at: self.at(300)) == .idle)
    liveness.received(pending: 3, at: self.at(298))
    liveness.resumed(at: self.at(299))
    #expect(liveness.check(at: self.at(598)) == .alive(until: self.at(599)))
    #expect(liveness.check(at: self.at(599)) == .idle)
  }

  @Test("Without credit at the service, credit is due before its 60 s limit")
  func creditDue() {
    var liveness = Liveness(openedAt: self.start)
    liveness.received(pending: 0, at: self.at(9))
    liveness.resumed(at: self.at(10))
    #expect(liveness.check(at: self.at(54)) == .alive(until: self.at(55)))
    #expect(liveness.check(at: self.at(55)) == .giveCredit)
    liveness.creditGiven()
    #expect(liveness.check(at: self.at(55)) == .alive(until: self.at(310)))
  }

  @Test("A pause of the consumer does not count as silence")
  func consumerWaits() {
    var liveness = Liveness(openedAt: self.start)
    liveness.received(pending: 0, at: self.at(1))
    #expect(liveness.check(at: self.at(999)) == .alive(until: self.at(1044)))
    liveness.resumed(at: self.at(1000))
    #expect(liveness.check(at: self.at(1044)) == .alive(until: self.at(1045)))
    #expect(liveness.check(at: self.at(1045)) == .giveCredit)
    liveness.creditGiven()
    #expect(liveness.check(at: self.at(1299)) == .alive(until: self.at(1300)))
  }
}
