import Clocks
import FoundationEssentials
import GRPCCore
import PubSubAPI
import PubSubMessages
import PubSubTestSupport
import TestSupport
import Testing

@testable import SalesforcePubSub

@Suite("Events as a sequence")
struct EventStreamTests {
  @Test("Credit follows the consumer in steps of half a window, and never exceeds the window")
  func credit() async throws {
    try await EventStreamHarness(window: 4).run { harness in
      let (call, first) = try await harness.open()
      #expect(first.topicName == EventStreamHarness.topic)
      #expect(first.replayPreset == .earliest)
      #expect(first.numRequested == 4)
      try call.respond(1...4, pending: 0)
      #expect(try await harness.take(2) == ["e1", "e2"])
      #expect(try await call.request().numRequested == 2)
      #expect(try await harness.take(2) == ["e3", "e4"])
      #expect(try await call.request().numRequested == 2)
    }
  }

  @Test("Credit for a slow consumer is renewed after 30 s, so that the call stays open")
  func slowConsumer() async throws {
    try await EventStreamHarness(window: 4).run { harness in
      let (call, _) = try await harness.open()
      try call.respond(1...4, pending: 0)
      #expect(try await harness.take(1) == ["e1"])
      await harness.clock.someoneSleeps()
      harness.clock.advance(by: .seconds(31))
      #expect(try await call.request().numRequested == 1)
    }
  }

  @Test("A call whose consumer takes nothing is closed, and reopened at the same position")
  func heldBack() async throws {
    try await EventStreamHarness(window: 4).run { harness in
      let (call, _) = try await harness.open()
      try call.respond(1...4, pending: 0)
      await harness.waiting(4)
      await harness.clock.someoneSleeps()
      harness.clock.advance(by: .seconds(31))
      // The client has left.
      #expect(await call.nextPart() == nil)
      #expect(try await harness.take(4) == ["e1", "e2", "e3", "e4"])
      await harness.clock.someoneSleeps()
      harness.clock.advance(by: .seconds(1))
      let (again, first) = try await harness.open()
      #expect(first.replayPreset == .custom)
      #expect(first.replayID == Data([3]))
      #expect(first.numRequested == 4)
      try again.respond(4...5, pending: 2)
      #expect(try await harness.take(1) == ["e5"])
    }
  }

  @Test("A broken call is resumed where it broke, and nothing is missed or repeated")
  func resumes() async throws {
    try await EventStreamHarness(window: 4).run { harness in
      let (call, _) = try await harness.open()
      try call.respond(1...2, pending: 2)
      #expect(try await harness.take(2) == ["e1", "e2"])
      call.fail(RPCError(code: .unavailable, message: "reset"))
      #expect(try await harness.passPause().error.status == .unavailable)
      let (again, first) = try await harness.open()
      #expect(first.replayID == Data([1]))
      try again.respond(2...3, pending: 2)
      #expect(try await harness.take(1) == ["e3"])
      // What came twice may be asked for again.
      #expect(try await again.request().numRequested == 1)
    }
  }

  @Test("After the last retry the last failure is thrown with the duration of the retries")
  func givesUp() async throws {
    // Pauses of about 1 s, and then of what is left.
    let retry = RetrySchedule(giveUpAfter: .seconds(2))
    try await EventStreamHarness(retry: retry).run { harness in
      for _ in 1...2 {
        let (call, _) = try await harness.open()
        call.refuse(.unavailable, .serviceUnavailable)
        try await harness.passPause()
      }
      let (call, _) = try await harness.open()
      call.refuse(.unavailable, .serviceUnavailable)
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.disposition(sentReplayID: false) == .retry(minimumDelay: .zero))
      #expect(error?.message.contains("gave up after 3 failed attempts") == true)
      #expect(try await harness.stream.next() == nil)
    }
  }

  @Test("Calls that end after a response with nothing new are retried at growing intervals")
  func nothingNew() async throws {
    let retry = RetrySchedule(giveUpAfter: .seconds(5))
    try await EventStreamHarness(start: .after([7]), retry: retry).run { harness in
      for seconds in [0.8, 1.6, 1.4] {
        let (call, _) = try await harness.open()
        try call.respond(latest: 7)
        call.end(.ok)
        try #require(try await harness.passPause().delay >= .seconds(seconds))
      }
      let (call, _) = try await harness.open()
      try call.respond(latest: 7)
      call.end(.ok)
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.message.contains("gave up after 4 failed attempts") == true)
    }
  }

  @Test("A refused replay ID is not retried, because the caller decides")
  func refusedReplayID() async throws {
    try await EventStreamHarness(start: .after([7])).run { harness in
      let (call, first) = try await harness.open()
      #expect(first.replayID == Data([7]))
      call.refuse(.invalidArgument, .replayIDValidationFailed)
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.disposition(sentReplayID: true) == .replay)
    }
  }

  @Test("Events that arrived before a failure are delivered before it")
  func eventsBeforeFailure() async throws {
    try await EventStreamHarness().run { harness in
      let (call, _) = try await harness.open()
      try call.respond(1...2, pending: 2)
      call.refuse(.permissionDenied, .cannotSubscribe)
      #expect(try await harness.take(2) == ["e1", "e2"])
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.disposition(sentReplayID: false) == .stop)
    }
  }

  @Test("A refused token is replaced")
  func renewsTokens() async throws {
    try await EventStreamHarness().run { harness in
      let (call, _) = try await harness.open()
      call.refuse(.unauthenticated, .authError)
      try await harness.passPause()
      let (again, _) = try await harness.open()
      #expect(harness.credentials.used == ["t1", "t2"])
      try again.respond(1...1, pending: 3)
      #expect(try await harness.take(1) == ["e1"])
    }
  }

  @Test("Without another token, the refusal is thrown")
  func tokensOver() async throws {
    let harness = EventStreamHarness()
    harness.credentials.renewNoMore()
    try await harness.run { harness in
      let (call, _) = try await harness.open()
      call.refuse(.unauthenticated, .authError)
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.disposition(sentReplayID: false) == .reauthenticate)
    }
  }

  @Test("A server that cannot prove its identity gets no further call")
  func untrustedPeer() async throws {
    try await EventStreamHarness().run { harness in
      let (call, _) = try await harness.open()
      call.fail(
        RPCError(
          code: .unavailable, message: "untrusted", cause: EventStreamHarness.UntrustedPeer()))
      let error = await #expect(throws: PubSubError.self) { try await harness.stream.next() }
      #expect(error?.cause is EventStreamHarness.UntrustedPeer)
    }
  }

  @Test("After 300 s of silence with open credit a new call is made")
  func idle() async throws {
    try await EventStreamHarness().run { harness in
      let (call, _) = try await harness.open()
      await harness.clock.someoneSleeps()
      harness.clock.advance(by: .seconds(301))
      #expect(try await harness.passPause().error.code == .idle)
      #expect(await call.nextPart() == nil)
      let (_, first) = try await harness.open()
      #expect(first.replayPreset == .earliest)
    }
  }

  @Test("A cancelled consumer gets CancellationError, and the call ends")
  func cancelled() async throws {
    try await EventStreamHarness().run { harness in
      let (call, _) = try await harness.open()
      let consumer = Task { try await harness.stream.next() }
      consumer.cancel()
      await #expect(throws: CancellationError.self) { _ = try await consumer.value }
      #expect(await call.nextPart() == nil)
    }
  }

  @Test("A client that shuts down ends its sequences without an error")
  func shutDown() async throws {
    let harness = EventStreamHarness()
    try await harness.run { harness in
      let (call, _) = try await harness.open()
      try call.respond(1...1, pending: 3)
      #expect(try await harness.take(1) == ["e1"])
    }
    #expect(try await harness.stream.next() == nil)
  }
}
