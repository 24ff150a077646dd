import Clocks
import EventLoop
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import PubSubTestSupport
import TestSupport
import Testing

@testable import PubSubSource

/// Each opening of a managed stream may cost an event of the org's allowance.
@Suite("Reopening managed streams") struct ManagedReopeningTests {
  private static let position = StartPoint.after(ReplayID(ManagedJoinTests.replayID(4)))

  private static func harness(giveUpAfter seconds: Int) -> StreamHarness {
    StreamHarness(
      window: 10, retry: RetrySchedule(giveUpAfter: .seconds(seconds)),
      managed: .developerName("Sub"))
  }

  @Test(
    "A managed stream that brings nothing new is reopened at growing intervals, then abandoned",
    arguments: [[], [3]])
  func nothingNew(known: [Int]) async throws {
    try await StreamHarness.run(Self.harness(giveUpAfter: 5)) { harness in
      let (delays, ending) = try await harness.play { opening in
        opening(Self.position)
        // The plain subscription of the stream before may have been opened when that one ended.
        var managed = try await harness.call()
        while !managed.method.hasSuffix("ManagedSubscribe") { managed = try await harness.call() }
        _ = try await managed.managedRequest()
        try managed.respondManaged(known, latest: 3)
        managed.end(.deadlineExceeded, "x")
      }
      #expect(delays.count == 3)
      Self.expectGivenUp(delays, ending, first: .milliseconds(800))
    }
  }

  @Test("Detours without new events are taken at growing intervals, then abandoned")
  func uselessDetours() async throws {
    try await StreamHarness.run(Self.harness(giveUpAfter: 600)) { harness in
      let isDetour = Lock(false)
      let (delays, ending) = try await harness.play { opening in
        opening(Self.position)
        let call = try await harness.call()
        let wasDetour = isDetour.withLock { isDetour in
          defer { isDetour.toggle() }
          return isDetour
        }
        if wasDetour {
          _ = try await call.request()
          return try call.respondManaged([], latest: 4)
        }
        _ = try await call.managedRequest()
        try call.respondManaged([9])
        let probe = try await harness.ticking { try await harness.call() }
        _ = try await probe.request()
        try probe.respondManaged([5])
        await harness.ticking {
          while await call.nextMessage() != nil {}
        }
        call.end(.ok, "")
      }
      Self.expectGivenUp(delays, ending, first: .zero)
    }
  }

  @Test("A managed stream that ends after a long quiet time is reopened without a longer wait")
  func longLife() async throws {
    try await StreamHarness.run(Self.harness(giveUpAfter: 5)) { harness in
      for _ in 0..<4 {
        let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
          try call.respondManaged([], latest: 4)
        }
        harness.clock.advance(by: .seconds(200))
        try probe.respondManaged([], latest: 4)
        _ = try await harness.response()
        managed.end(.deadlineExceeded, "x")
        let (_, delay) = try await harness.retry()
        #expect(delay <= .milliseconds(1200))
        harness.clock.advance(by: delay)
      }
    }
  }

  private static func expectGivenUp(
    _ delays: [Duration], _ ending: SourceFailure?, first: Duration
  ) {
    #expect(delays.first.map { $0 >= first && $0 <= first + .milliseconds(400) } == true)
    #expect(delays.count >= 3)
    // The last may be cut short by the time that is left, and those before it have a limit.
    let growing = delays.dropLast().prefix(5)
    #expect(zip(growing, growing.dropFirst()).allSatisfy { $0 < $1 })
    #expect(ending?.disposition == .unavailable)
    #expect(ending?.description.contains("gave up after") == true)
  }
}

extension StreamHarness {
  /// Answers each opening until the stream has ended.
  ///
  /// - Returns: the pauses, and why it has ended; nil if it has not after 30 pauses.
  fileprivate func play(
    _ answer: @Sendable @escaping (_ opening: (StartPoint?) -> Void) async throws -> Void
  ) async throws -> (delays: [Duration], ending: SourceFailure?) {
    var delays: [Duration] = []
    while delays.count < 30 {
      switch try await self.signal() {
      case .opening(0, let reply): try await answer(reply)
      case .retrying(0, _, let delay):
        delays.append(delay)
        self.clock.advance(by: delay)
      case .ended(0, let failure): return (delays, failure)
      default: break
      }
    }
    return (delays, nil)
  }
}
