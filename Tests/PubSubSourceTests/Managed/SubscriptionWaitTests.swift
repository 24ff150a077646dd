import Clocks
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubTestSupport
import TestSupport
import Testing

@testable import PubSubSource

@Suite("Waiting for a managed subscription") struct SubscriptionWaitTests {
  private static let start = ContinuousClock.now

  /// Refused until it gives up.
  private static func play(_ wait: inout SubscriptionWait) -> Duration {
    var elapsed = Duration.zero
    for _ in 0..<1000 {
      guard
        let delay = wait.refused(
          at: Self.start + elapsed, minimum: .seconds(30), random: 0.5)
      else { break }
      elapsed += delay
    }
    return elapsed
  }

  @Test("A run that gives up waits longer than the service keeps a subscription for a lost client")
  func patient() {
    var wait = SubscriptionWait(RetrySchedule(), patience: .seconds(1200))
    let elapsed = Self.play(&wait)
    #expect(elapsed >= .seconds(1200))
    #expect(elapsed < .seconds(1260))
    let verdict = wait.verdict(at: Self.start + elapsed)
    #expect(verdict.contains("gave up after"))
    #expect(verdict.contains("so another client is connected: end it"))
  }

  @Test(
    "A run that gives up sooner says when the subscription will be free at the latest",
    arguments: [(0, "15 minutes"), (300, "10 minutes"), (885, "1 minute")])
  func impatient(seconds: Int, words: String) {
    var wait = SubscriptionWait(RetrySchedule(), patience: .seconds(seconds))
    let elapsed = Self.play(&wait)
    let verdict = wait.verdict(at: Self.start + elapsed)
    #expect(verdict.contains("the service frees it in \(words) at the latest"))
  }

  @Test(
    "Without its own limit, a wait has that of the schedule; with an endless schedule, it has none")
  func schedule() {
    var wait = SubscriptionWait(RetrySchedule(giveUpAfter: .seconds(60)), patience: nil)
    #expect(Self.play(&wait) == .seconds(60))
    var endless = SubscriptionWait(RetrySchedule(giveUpAfter: nil), patience: .seconds(60))
    #expect(Self.play(&endless) > .seconds(10_000))
  }
}

/// Between a test that plays the service and the runner.
@Suite("Managed streams that wait for their subscription") struct SubscriptionWaitStreamTests {
  private static let position = StartPoint.after(ReplayID(ManagedJoinTests.replayID(4)))

  private static func harness() -> StreamHarness {
    StreamHarness(
      window: 10, retry: RetrySchedule(giveUpAfter: .seconds(600)),
      managed: .developerName("Sub"), subscriptionPatience: .seconds(1200))
  }

  @Test("A wait for the subscription does not count as an outage of the service")
  func outage() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      // An outage, then the hold of a run that was killed, then another outage.
      var elapsed = Duration.zero
      try await harness.endManaged { $0.end(.unavailable, "x") }
      harness.clock.advance(by: try await harness.retry().1)
      while elapsed < SubscriptionWait.holdTime {
        try await harness.endManaged { $0.refuse(.alreadyExists, .managedAlreadyActive) }
        let (failure, delay) = try await harness.retry()
        #expect(failure.reason == "managed_subscription_already_active")
        harness.clock.advance(by: delay)
        elapsed += delay
      }
      try await harness.endManaged { $0.end(.unavailable, "x") }
      #expect(try await harness.retry().0.disposition == .unavailable)
    }
  }

  @Test("The wait for a subscription starts afresh once the subscription has answered")
  func afresh() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      for _ in 0..<3 {
        var elapsed = Duration.zero
        while elapsed < SubscriptionWait.holdTime {
          try await harness.endManaged { $0.refuse(.alreadyExists, .managedAlreadyActive) }
          let delay = try await harness.retry().1
          harness.clock.advance(by: delay)
          elapsed += delay
        }
        try await harness.endManaged { call in
          try call.respondManaged([], latest: 4)
          call.end(.unavailable, "x")
        }
        harness.clock.advance(by: try await harness.pauseAfterAnswer())
      }
    }
  }

  @Test("While a second refusal is awaited, Subscribe requests no event")
  func slowRefusal() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      try await harness.endManaged { $0.refuse(.alreadyExists, .managedAlreadyActive) }
      harness.clock.advance(by: try await harness.retry().1)
      try await harness.begin(at: Self.position)
      let call = try await harness.call()
      _ = try await call.managedRequest()
      // What would have opened a plain subscription has had its turn.
      for _ in 0..<29 {
        harness.clock.advance(by: .seconds(1))
        for _ in 0..<1000 { await Task.yield() }
      }
      call.refuse(.alreadyExists, .managedAlreadyActive)
      #expect(try await harness.retry().0.reason == "managed_subscription_already_active")
      // A service that does not answer is not waited for without end.
      harness.clock.advance(by: .seconds(60))
      try await harness.begin(at: Self.position)
      #expect(try await harness.call().method.hasSuffix("ManagedSubscribe"))
      let plain = try await harness.ticking { try await harness.call() }
      #expect(!plain.method.hasSuffix("ManagedSubscribe"))
    }
  }

  @Test("A subscription that stays in use ends the run, and the error says why")
  func gaveUp() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      var ending: SourceFailure?
      while ending == nil {
        try await harness.endManaged { $0.refuse(.alreadyExists, .managedAlreadyActive) }
        switch try await harness.signal() {
        case .retrying(0, _, let delay): harness.clock.advance(by: delay)
        case .ended(0, let failure): ending = failure
        default: throw StreamHarness.UnexpectedSignal(expected: "retrying or ended")
        }
      }
      #expect(ending?.disposition == .unavailable)
      #expect(ending?.description.contains("so another client is connected") == true)
    }
  }
}

extension StreamHarness {
  /// Opens the managed call, and has `body` end it.
  fileprivate func endManaged(_ body: (ServerCall) throws -> Void) async throws {
    try await self.begin(at: .after(ReplayID(ManagedJoinTests.replayID(4))))
    var call = try await self.call()
    // The plain subscription of the stream before may have been opened when that one ended.
    while !call.method.hasSuffix("ManagedSubscribe") { call = try await self.call() }
    _ = try await call.managedRequest()
    try body(call)
  }

  fileprivate func pauseAfterAnswer() async throws -> Duration {
    while true {
      switch try await self.signal() {
      case .opened(0): break
      case .retrying(0, _, let delay): return delay
      default: throw UnexpectedSignal(expected: "opened or retrying")
      }
    }
  }
}
