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

@Suite("Topic stream") struct TopicStreamTests {
  @Test("A call starts where the runner says, with the whole window")
  func begins() async throws {
    try await StreamHarness.run(StreamHarness(window: 40)) { harness in
      let (_, first) = try await harness.open(at: .after(ReplayID([1, 2, 3])))
      #expect(first.topicName == StreamHarness.topic)
      #expect(first.replayPreset == .custom)
      #expect(Array(first.replayID) == [1, 2, 3])
      #expect(first.numRequested == 40)
    }
  }

  @Test("Without a start nothing is requested")
  func noStart() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      try await harness.begin(at: nil)
      #expect(try await harness.ending() == nil)
      #expect(harness.logins.used.isEmpty)
    }
  }

  @Test("Credit is returned before the response is taken, even with a slow consumer")
  func creditFirst() async throws {
    try await StreamHarness.run(StreamHarness(queueLimit: 0)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 30, pending: 70)
      #expect(try await call.request().numRequested == 30)
      #expect(try await harness.response().events.count == 30)
    }
  }

  @Test("A consumer that takes nothing keeps the next response from being read")
  func backpressure() async throws {
    try await StreamHarness.run(StreamHarness(queueLimit: 0)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 1, pending: 99)
      try call.respond(events: 2, pending: 97)
      #expect(try await call.request().numRequested == 1)
      // The second response is credited only once the first has been taken.
      #expect(try await harness.response().events.count == 1)
      #expect(try await call.request().numRequested == 2)
    }
  }

  @Test("No more events are requested than the run's limit, even over several streams")
  func limit() async throws {
    try await StreamHarness.run(StreamHarness(window: 10, maxEvents: 15)) { harness in
      let (first, opened) = try await harness.open()
      #expect(opened.numRequested == 10)
      try first.respond(events: 8, pending: 2)
      #expect(try await first.request().numRequested == 5)
      #expect(try await harness.response().events.count == 8)
      first.fail(RPCError(code: .unavailable, message: "connection reset"))
      let (_, delay) = try await harness.retry()
      harness.clock.advance(by: delay)
      let (second, reopened) = try await harness.open()
      #expect(reopened.numRequested == 7)
      try second.respond(events: 7, pending: 0)
      #expect(try await harness.response().events.count == 7)
      // Two of them had been exported before.
      harness.stream.allow(2)
      #expect(try await second.request().numRequested == 2)
    }
  }

  @Test("A stream that breaks after the last event of the limit is not reopened")
  func limitReached() async throws {
    try await StreamHarness.run(StreamHarness(maxEvents: 3)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 3, pending: 0)
      #expect(try await harness.response().events.count == 3)
      call.fail(RPCError(code: .unavailable, message: "connection reset"))
      harness.clock.advance(by: try await harness.retry().1)
      // It waits, until one of them proves to have been exported before.
      await harness.clock.someoneSleeps()
      harness.stream.allow(1)
      harness.clock.advance(by: .milliseconds(100))
      let (_, again) = try await harness.open()
      #expect(again.numRequested == 1)
    }
  }

  @Test("A stream that breaks after the last event of the limit ends with the run")
  func stopsAtLimitWhileClosed() async throws {
    try await StreamHarness.run(StreamHarness(maxEvents: 3)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 3, pending: 0)
      #expect(try await harness.response().events.count == 3)
      call.fail(RPCError(code: .unavailable, message: "connection reset"))
      harness.clock.advance(by: try await harness.retry().1)
      await harness.clock.someoneSleeps()
      harness.stream.stop()
      harness.clock.advance(by: .milliseconds(100))
      try await harness.begin(at: nil)
      #expect(try await harness.ending() == nil)
      #expect(harness.logins.used.count == 1)
    }
  }

  @Test("A broken connection is reopened after 1, 2 and 4 s, then the stream ends")
  func retries() async throws {
    let policy = RetrySchedule(giveUpAfter: .seconds(9))
    try await StreamHarness.run(StreamHarness(retry: policy)) { harness in
      for seconds in [1.0, 2.0, 4.0] {
        let (call, _) = try await harness.open()
        call.fail(RPCError(code: .unavailable, message: "connection reset"))
        let (failure, delay) = try await harness.retry()
        #expect(failure.disposition == .unavailable)
        #expect(delay >= .seconds(seconds * 0.8) && delay <= .seconds(seconds * 1.2))
        harness.clock.advance(by: delay)
      }
      // The last attempt comes when the time is over.
      let (call, _) = try await harness.open()
      call.fail(RPCError(code: .unavailable, message: "connection reset"))
      let (_, rest) = try await harness.retry()
      #expect(rest <= .seconds(9 - 7 * 0.8))
      harness.clock.advance(by: rest)
      let (last, _) = try await harness.open()
      last.fail(RPCError(code: .unavailable, message: "connection reset"))
      let failure = try #require(try await harness.ending())
      #expect(failure.disposition == .unavailable)
      #expect(failure.description.contains(StreamHarness.topic))
      #expect(failure.description.contains("gave up after 5 failed attempts in 9 s"))
    }
  }

  @Test("A response that moves the position restarts the retries")
  func resets() async throws {
    let policy = RetrySchedule(giveUpAfter: .seconds(2))
    try await StreamHarness.run(StreamHarness(retry: policy)) { harness in
      for number in UInt8(1)...5 {
        let (call, _) = try await harness.open(at: .after(ReplayID([0, number - 1])))
        try call.respond(events: 0, pending: 100, latest: number)
        #expect(try await harness.response().isKeepalive)
        call.end(.unavailable, "restarting")
        let (_, delay) = try await harness.retry()
        #expect(delay <= .seconds(1.2))
        harness.clock.advance(by: delay)
      }
      #expect(harness.workedCount == 5)
    }
  }

  @Test(
    "A stream that ends after a response with nothing new is retried like one without a response",
    arguments: [(start: UInt8(5), events: 0, latest: UInt8?(5)), (5, 0, nil), (0, 1, 9)],
    [Status.Code.ok, .unavailable])
  func nothingNew(
    response: (start: UInt8, events: Int, latest: UInt8?), status: Status.Code
  ) async throws {
    let policy = RetrySchedule(giveUpAfter: .seconds(5))
    try await StreamHarness.run(StreamHarness(retry: policy)) { harness in
      func fail() async throws {
        let (call, _) = try await harness.open(at: .after(ReplayID([0, response.start])))
        try call.respond(events: response.events, pending: 99, latest: response.latest)
        #expect(try await harness.response().events.count == response.events)
        call.end(status, "restarting")
      }
      for seconds in [0.8, 1.6, 1.4] {
        try await fail()
        let (_, delay) = try await harness.retry()
        #expect(delay >= .seconds(seconds))
        harness.clock.advance(by: delay)
      }
      try await fail()
      let failure = try #require(try await harness.ending())
      #expect(failure.disposition == .unavailable)
      #expect(failure.description.contains("gave up after 4 failed attempts in 5 s"))
      #expect(harness.workedCount == 0)
    }
  }

  @Test(
    "A quiet stream that has answered for a minute restarts the retries, however it ends",
    arguments: [(Status.Code.ok, Duration.zero), (.unavailable, .milliseconds(1200))])
  func quietLife(status: Status.Code, longest: Duration) async throws {
    let policy = RetrySchedule(giveUpAfter: .seconds(5))
    try await StreamHarness.run(StreamHarness(retry: policy)) { harness in
      for round in 1...4 {
        let (call, _) = try await harness.open(at: .after(ReplayID([0, 9])))
        try call.respond(events: 0, pending: 100)
        _ = try await harness.response()
        #expect(harness.workedCount == round - 1)
        harness.clock.advance(by: .seconds(60))
        call.end(status, "restarting")
        let (_, delay) = try await harness.retry()
        #expect(delay <= longest)
        #expect(harness.workedCount == round)
        harness.clock.advance(by: delay)
      }
    }
  }

  @Test("A long-lived call that the service ended is reopened at once")
  func rotation() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 0, pending: 100)
      _ = try await harness.response()
      harness.clock.advance(by: .seconds(20))
      call.end(.ok)
      #expect(try await harness.retry().1 == .zero)
      _ = try await harness.open()
    }
  }

  @Test("Calls that the service ends right after a response are not reopened in a tight loop")
  func rotationLoop() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 0, pending: 100)
      _ = try await harness.response()
      call.end(.ok)
      #expect(try await harness.retry().1 >= .milliseconds(800))
    }
  }

  @Test("A login is retried while the service is down, and a refused login ends the stream")
  func loginFails() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      harness.logins.fail(
        with: PubSubError(.credentialsRetryable, status: .unauthenticated, "login is down"))
      try await harness.begin(at: .latest)
      let (failure, delay) = try await harness.retry()
      #expect(failure.description.contains("login is down"))
      harness.logins.fail(
        with: PubSubError(.credentials, status: .unauthenticated, "login is refused"))
      harness.clock.advance(by: delay)
      try await harness.begin(at: .latest)
      #expect(try await harness.ending()?.disposition == .refused)
      #expect(harness.logins.used.isEmpty)
    }
  }

  @Test(
    "Permanent errors end the stream with their reason",
    arguments: [
      (Status.Code.notFound, ServiceErrorCode.topicNotFound, SourceFailure.Disposition.refused),
      (.permissionDenied, .cannotSubscribe, .refused),
      (.invalidArgument, .replayIDCorrupted, .invalidReplay),
      (.resourceExhausted, .limitExceeded, .quota),
      (.invalidArgument, .requestedEventsInvalid, .bug),
    ])
  func final(
    status: Status.Code, code: ServiceErrorCode, disposition: SourceFailure.Disposition
  ) async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open(at: .after(ReplayID([1])))
      call.refuse(status, code)
      let failure = try #require(try await harness.ending())
      #expect(failure.disposition == disposition)
      #expect(failure.reason == code.rawValue.split(separator: ".").joined(separator: "_"))
    }
  }

  @Test(
    "The advice about an unknown or refused topic suits its kind",
    arguments: [
      ("/data/AccountChangeEvent", "the object is selected for Change Data Capture", "View All"),
      ("/data/ChangeEvents", "the object is selected for Change Data Capture", "View All"),
      ("/data/Sales__chn", "the channel exists", "View All"),
      ("/event/Order__e", "the platform event exists", "Read on the platform event"),
      ("/event/Orders__chn", "the channel exists", "Read on the platform event"),
    ])
  func advice(topic: String, existence: String, right: String) {
    func advice(_ code: ServiceErrorCode) -> String {
      PubSubError(
        .service, status: .notFound, serviceCode: code, "Subscribe to \(topic): NOT_FOUND no topic"
      ).advice()
    }
    #expect(advice(.topicNotFound).hasSuffix("case sensitive) and that \(existence)"))
    #expect(advice(.cannotSubscribe).contains(right))
  }

  @Test("A service whose protection was triggered gets no call for 30 s")
  func protection() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open()
      call.refuse(.resourceExhausted, .protectionTriggered)
      #expect(try await harness.retry().1 >= .seconds(30))
    }
  }

  @Test("A window that the service finds too large is halved")
  func overflow() async throws {
    try await StreamHarness.run(StreamHarness(window: 100)) { harness in
      let (call, _) = try await harness.open()
      call.refuse(.resourceExhausted, .fetchOverflow)
      harness.clock.advance(by: try await harness.retry().1)
      #expect(try await harness.open().1.numRequested == 50)
    }
  }

  @Test("After a response above the message limit, smaller ones are requested, down to one event")
  func tooLarge() async throws {
    try await StreamHarness.run(StreamHarness(window: 3)) { harness in
      let (call, _) = try await harness.open()
      call.end(.resourceExhausted, "a message of 20000000 bytes", isRefusal: false)
      harness.clock.advance(by: try await harness.retry().1)
      let (smaller, request) = try await harness.open()
      #expect(request.numRequested == 1)
      smaller.end(.resourceExhausted, "a message of 20000000 bytes", isRefusal: false)
      #expect(try await harness.ending()?.disposition == .unavailable)
    }
  }

  @Test("A stream that is silent for 300 s with open credit is reopened")
  func idle() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      _ = try await harness.open()
      harness.clock.advance(by: .seconds(300))
      let (failure, delay) = try await harness.retry()
      #expect(failure.description.contains("300 s"))
      harness.clock.advance(by: delay)
      _ = try await harness.open()
    }
  }

  @Test("The time without a word counts toward the time limit of retries")
  func silentForGood() async throws {
    let harness = StreamHarness(retry: RetrySchedule(giveUpAfter: .seconds(3)))
    try await StreamHarness.run(harness) { harness in
      _ = try await harness.open()
      harness.clock.advance(by: .seconds(300))
      let failure = try #require(await harness.ending())
      #expect(failure.disposition == .unavailable && failure.description.contains("300 s"))
    }
  }

  @Test("Silence while the consumer is busy does not count")
  func busyConsumer() async throws {
    try await StreamHarness.run(StreamHarness(queueLimit: 0)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 1, pending: 99)
      // The response waits in the queue once its credit has come back. After 30 s without room the stream
      // would be closed on purpose.
      #expect(try await call.request().numRequested == 1)
      harness.clock.advance(by: .seconds(29))
      #expect(try await harness.response().events.count == 1)
      // More than 300 s since the response, but less since there is room.
      harness.clock.advance(by: .seconds(280))
      await harness.clock.someoneSleeps()
      try call.respond(events: 2, pending: 98)
      #expect(try await harness.response().events.count == 2)
    }
  }

  @Test("Credit that the service has lost is sent again before its 60 s limit")
  func lostCredit() async throws {
    try await StreamHarness.run(StreamHarness(window: 10)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 10, pending: 0)
      #expect(try await call.request().numRequested == 10)
      _ = try await harness.response()
      async let again = call.request()
      // In steps that the stream sees one by one, from whenever it has handed the response on. A
      // keepalive in between keeps it from ending for silence when its writer is slower than they.
      let steps = Task {
        while !Task.isCancelled {
          for _ in 0..<40 where !Task.isCancelled {
            await harness.clock.someoneSleeps()
            harness.clock.advance(by: .seconds(5))
          }
          if Task.isCancelled { return }
          try call.respond(events: 0, pending: 0)
          _ = try await harness.response()
        }
      }
      #expect(try await again.numRequested == 10)
      steps.cancel()
      _ = await steps.result
    }
  }

  @Test(
    "A stream whose responses are not taken is closed before the service closes it, and resumed")
  func heldBack() async throws {
    // Room for two responses of an event, and closed with twice as many.
    let limit = 2 * PubSubSourceOptions().weight(eventCount: 1, byteCount: 60)
    try await StreamHarness.run(StreamHarness(window: 9, queueLimit: limit)) { harness in
      let (call, _) = try await harness.open()
      for number in 1...3 {
        try call.respond(events: 1, pending: 9 - number)
        #expect(try await call.request().numRequested == 1)
      }
      // The third waits for room. These have been asked for, and are taken without new credit.
      for _ in 0..<2 { try call.respond(events: 1, pending: 8) }
      let patience = Task {
        while !Task.isCancelled {
          await harness.clock.someoneSleeps()
          harness.clock.advance(by: .milliseconds(250))
        }
      }
      #expect(await call.nextMessage() == nil)
      // The service ends the call when its requests have ended.
      call.end(.ok)
      patience.cancel()
      await patience.value
      for _ in 0..<5 { #expect(try await harness.response().events.count == 1) }
      guard case .heldBack(0) = try await harness.signal() else {
        throw StreamHarness.UnexpectedSignal(expected: "heldBack")
      }
      // It sleeps if it has seen the queue before this test has emptied it.
      let steps = Task {
        while !Task.isCancelled {
          await harness.clock.someoneSleeps()
          harness.clock.advance(by: .milliseconds(1))
        }
      }
      let (again, first) = try await harness.open(at: .after(ReplayID([7])))
      steps.cancel()
      await steps.value
      #expect(Array(first.replayID) == [7])
      #expect(first.numRequested == 9)
      try again.respond(events: 1, pending: 8)
      #expect(try await again.request().numRequested == 1)
      #expect(try await harness.response().events.count == 1)
    }
  }

  @Test("A refused topic is reported as affecting that topic alone; a refused login is not")
  func refusedAlone() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open()
      call.refuse(.notFound, .topicNotFound)
      #expect(try await harness.ending()?.isOfTopicAlone == true)
    }
    try await StreamHarness.run(StreamHarness()) { harness in
      harness.logins.fail(
        with: PubSubError(.credentials, status: .unauthenticated, "login is refused"))
      try await harness.begin(at: .latest)
      #expect(try await harness.ending()?.isOfTopicAlone == false)
    }
  }

  @Test("After a stop, no credit is given, and events of the next 2 s are delivered")
  func stops() async throws {
    try await StreamHarness.run(StreamHarness(window: 10)) { harness in
      let (call, _) = try await harness.open()
      harness.stream.stop()
      try call.respond(events: 3, pending: 7)
      #expect(try await harness.response().events.count == 3)
      harness.clock.advance(by: .seconds(2))
      #expect(try await harness.ending() == nil)
      #expect(await call.nextMessage() == nil)
    }
  }

  @Test("A stop closes the request side, and the stream ends when the service has ended the call")
  func stopsWithService() async throws {
    try await StreamHarness.run(StreamHarness(window: 10)) { harness in
      let (call, _) = try await harness.open()
      harness.stream.stop()
      #expect(await call.nextMessage() == nil)
      try call.respond(events: 3, pending: 7)
      call.end(.ok)
      #expect(try await harness.response().events.count == 3)
      // No time has passed.
      #expect(try await harness.ending() == nil)
    }
  }

  @Test("A stopped stream ends with the last requested event")
  func stopsDrained() async throws {
    try await StreamHarness.run(StreamHarness(window: 2)) { harness in
      let (call, _) = try await harness.open()
      harness.stream.stop()
      try call.respond(events: 2, pending: 0)
      #expect(try await harness.response().events.count == 2)
      #expect(try await harness.ending() == nil)
    }
  }

  @Test("A stop without outstanding events waits for nothing")
  func stopsAtLimit() async throws {
    try await StreamHarness.run(StreamHarness(maxEvents: 3)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 3, pending: 0)
      #expect(try await harness.response().events.count == 3)
      harness.stream.stop()
      #expect(try await harness.ending() == nil)
    }
  }

  @Test("A response that waits for the consumer at the end of the drain time is not lost")
  func stopsBusy() async throws {
    try await StreamHarness.run(StreamHarness(window: 10, queueLimit: 0)) { harness in
      let (call, _) = try await harness.open()
      try call.respond(events: 3, pending: 7)
      #expect(try await call.request().numRequested == 3)
      harness.stream.stop()
      harness.clock.advance(by: .seconds(3))
      #expect(try await harness.response().events.count == 3)
      #expect(try await harness.ending() == nil)
    }
  }

  @Test("A stop ends a back-off")
  func stopsBackOff() async throws {
    try await StreamHarness.run(StreamHarness()) { harness in
      let (call, _) = try await harness.open()
      call.fail(RPCError(code: .unavailable, message: "reset"))
      _ = try await harness.retry()
      harness.stream.stop()
      try await harness.begin(at: .earliest)
      #expect(try await harness.ending() == nil)
      #expect(harness.logins.used.count == 1)
    }
  }

  @Test("A stream whose runner has gone ends when it is cancelled, and requests nothing")
  func cancelledWhileAsking() async throws {
    let harness = StreamHarness()
    let stream = Task { await harness.runStream() }
    guard case .opening(0, _) = try await harness.signal() else {
      throw StreamHarness.UnexpectedSignal(expected: "opening")
    }
    // Nobody answers.
    stream.cancel()
    #expect(try await harness.ending() == nil)
    await stream.value
    #expect(harness.signals.poll() == nil)
    #expect(harness.logins.used.isEmpty)
  }
}
