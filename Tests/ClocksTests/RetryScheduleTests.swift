import Clocks
import Testing

@Suite("Retry schedule") struct RetryScheduleTests {
  private static let start = ContinuousClock.now

  @Test("Delays double from 1 s to 60 s, with a fifth of jitter either way")
  func doubles() {
    var retries = Retries(RetrySchedule(giveUpAfter: nil))
    for seconds in [1.0, 2, 4, 8, 16, 32, 60, 60, 60] {
      var other = retries
      let shortest = other.failed(at: Self.start, random: 0) ?? .zero
      let longest = retries.failed(at: Self.start, random: 1) ?? .zero
      #expect(abs(shortest / .seconds(seconds) - 0.8) < 1e-6)
      #expect(abs(longest / .seconds(seconds) - 1.2) < 1e-6)
    }
  }

  @Test("Without a time limit, each of a million failures has a delay")
  func endless() {
    var retries = Retries(RetrySchedule(giveUpAfter: nil))
    var now = Self.start
    for _ in 0..<1_000_000 {
      guard let delay = retries.failed(at: now, random: 0.5) else {
        return #expect(Bool(false), "gave up after \(retries.failures)")
      }
      now += delay
    }
    let last = retries.failed(at: now, random: 0.5)
    #expect(last == .seconds(60))
  }

  @Test("The last attempt is made at the time limit, and the verdict counts all attempts")
  func budget() {
    let policy = RetrySchedule(giveUpAfter: .seconds(10), minDelay: .seconds(4))
    var retries = Retries(policy)
    var now = Self.start
    var delays: [Duration] = []
    while let delay = retries.failed(at: now, random: 0.5) {
      delays.append(delay)
      now += delay
    }
    #expect(delays == [.seconds(4), .seconds(6)])
    #expect(retries.verdict(at: now).contains("3 failed attempts in 10 s"))
  }

  @Test("A success restarts the time limit, and with a limit of zero there is one attempt")
  func afresh() {
    var retries = Retries(RetrySchedule(giveUpAfter: .seconds(1)))
    let first = retries.failed(at: Self.start, random: 0.5)
    retries.succeeded()
    let later = [60, 61].map { retries.failed(at: Self.start + .seconds($0), random: 0.5) }
    #expect([first] + later == [.seconds(1), .seconds(1), nil])
    var impatient = Retries(RetrySchedule(giveUpAfter: .zero))
    let only = impatient.failed(at: Self.start, random: 0.5)
    #expect(only == nil)
    #expect(impatient.verdict(at: Self.start).isEmpty)
  }

  @Test("The time that the failed attempt was without an answer counts toward the time limit")
  func silence() {
    var retries = Retries(RetrySchedule(giveUpAfter: .seconds(3)))
    let now = Self.start + .seconds(45)
    let delay = retries.failed(at: now, silence: Self.start, random: 0.5)
    #expect(delay == nil)
    #expect(retries.elapsed(at: now) == .seconds(45))
  }

  @Test("A delay that the peer requests is kept, even beyond the policy's time limit")
  func minimum() {
    var retries = Retries(RetrySchedule(giveUpAfter: .seconds(5)))
    let first = retries.failed(at: Self.start, minimum: .seconds(30), random: 0)
    let second = retries.failed(at: Self.start + .seconds(30), random: 0)
    #expect(first == .seconds(30))
    #expect(second == nil)
  }

  @Test("Excused time does not count toward the time limit")
  func excused() {
    var retries = Retries(RetrySchedule(giveUpAfter: .seconds(10), minDelay: .seconds(4)))
    retries.excuse(.seconds(5))
    #expect(retries.failed(at: Self.start, random: 0.5) == .seconds(4))
    retries.excuse(.seconds(900))
    #expect(retries.elapsed(at: Self.start + .seconds(904)) == .seconds(4))
    #expect(retries.failed(at: Self.start + .seconds(904), random: 0.5) == .seconds(6))
  }

  @Test("Quick retries come before those of the policy")
  func quick() {
    var retries = Retries(RetrySchedule(giveUpAfter: nil), quickDelays: [.milliseconds(50)])
    let delays = (0..<4).map { _ in retries.failed(at: Self.start, random: 0.5) }
    #expect(delays == [.milliseconds(50), .seconds(1), .seconds(2), .seconds(4)])
  }
}
