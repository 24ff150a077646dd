import EventLoop
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import PubSubTestSupport
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

/// A managed stream between a test that plays the service and the runner.
@Suite("Managed stream") struct ManagedStreamTests {
  private static func harness(
    onManaged: @Sendable @escaping (ManagedNotice) -> Void = { _ in }
  ) -> StreamHarness {
    StreamHarness(window: 10, managed: .developerName("Sub"), onManaged: onManaged)
  }

  private static let position = StartPoint.after(ReplayID(ManagedJoinTests.replayID(4)))

  @Test("Without our own position, the managed stream is exported from its start")
  func firstRun() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      try await harness.begin(at: .managed)
      let call = try await harness.call()
      let first = try await call.managedRequest()
      #expect(first.developerName == "Sub")
      #expect(first.numRequested == 10)
      #expect(!first.hasCommitReplayIDRequest)
      guard case .opened(0) = try await harness.signal() else {
        throw StreamHarness.UnexpectedSignal(expected: "opened")
      }
      try call.respondManaged([1, 2])
      #expect(try await harness.response().events.count == 2)
    }
  }

  @Test("The managed stream is delivered from the first event after our position")
  func proof() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      try probe.respondManaged([5])
      try await harness.expectPassedOver(1)
      try await harness.expectHolding()
      let view = try await harness.response()
      #expect(view.events.map { view.string($0.eventID) } == ["e-5"])
      var credit = 0
      while credit < 10 { credit += Int(try await managed.managedRequest().numRequested) }
      #expect(credit == 10)
      try managed.respondManaged([6, 7])
      #expect(try await harness.response().events.count == 2)
    }
  }

  @Test("Events of a managed stream that is behind are dropped up to our position and counted")
  func behind() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([2])
      }
      try probe.respondManaged([5])
      try await harness.expectPassedOver(1)
      try await harness.expectHolding()
      try await harness.expectPassedOver(1)
      try managed.respondManaged([3, 4, 5, 6])
      try await harness.expectPassedOver(2)
      let view = try await harness.response()
      #expect(view.events.map { view.string($0.eventID) } == ["e-5", "e-6"])
    }
  }

  @Test(
    "A managed stream that is ahead is replaced by Subscribe, which reads the events in between")
  func ahead() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([7])
      }
      try probe.respondManaged([5])
      try await harness.expectPassedOver(1)
      try await harness.expectHolding()
      try await harness.expectPassedOver(1)
      // The call is closed by the client, not broken off.
      await harness.ticking {
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      let (failure, delay) = try await harness.retry()
      #expect(failure.reason == "managed_position")
      #expect(failure.description.contains("Sub"))
      #expect(failure.description.contains("\(ReplayID(ManagedJoinTests.replayID(4)))"))
      #expect(failure.description.contains("\(ReplayID(ManagedJoinTests.replayID(7)))"))
      #expect(delay == .zero)
      let (plain, first) = try await harness.open(at: Self.position)
      #expect(first.topicName == StreamHarness.topic)
      #expect(first.numRequested == 10)
      try plain.respondManaged([5, 6])
      #expect(try await harness.response().events.count == 2)
      #expect(harness.managed?.progress.detourCount == 1)
      // At the managed stream's first event it takes over again.
      try plain.respondManaged([7])
      #expect(try await harness.response().events.count == 1)
      try await harness.begin(at: .after(ReplayID(ManagedJoinTests.replayID(7))))
      #expect(try await harness.call().managedRequest().developerName == "Sub")
    }
  }

  @Test(
    "A managed stream that skips the expected event is discarded, and Subscribe reads its events")
  func apartIsFinal() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([6])
      }
      try probe.respondManaged([5])
      try await harness.expectPassedOver(1)
      try await harness.expectHolding()
      try await harness.expectPassedOver(1)
      // The expected event comes too late, before the call is closed.
      try managed.respondManaged([5])
      try managed.respondManaged([7])
      try await harness.ticking {
        try await harness.expectPassedOver(1)
        try await harness.expectPassedOver(1)
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      #expect(try await harness.retry().0.reason == "managed_position")
      let (plain, _) = try await harness.open(at: Self.position)
      try plain.respondManaged([5, 6, 7])
      let view = try await harness.response()
      #expect(view.events.map { view.string($0.eventID) } == ["e-5", "e-6", "e-7"])
    }
  }

  @Test("A managed stream that exceeds its credit while proof is missing is replaced by Subscribe")
  func flood() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, _) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      for number in 0..<ManagedJoin.maxHeldEvents { try managed.respondManaged([6 + number]) }
      try await harness.expectPassedOver(1)
      await harness.ticking {
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      try await harness.expectPassedOver(ManagedJoin.maxHeldEvents)
      let (failure, _) = try await harness.retry()
      #expect(failure.description.contains("more events than were requested"))
      let (plain, _) = try await harness.open(at: Self.position)
      try plain.respondManaged([5, 6])
      #expect(try await harness.response().events.count == 2)
    }
  }

  @Test("A response that waited for the proof and its schema is passed on before later ones")
  func order() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5], schema: "S")
      }
      try probe.respondManaged([5], schema: "S")
      let schema = try await harness.call()
      #expect(await schema.nextMessage() != nil)
      try managed.respondManaged([6])
      // The next response has been asked for; the schema is still on its way.
      #expect(try await managed.managedRequest().numRequested == 1)
      let answer = Eventbus_V1_SchemaInfo.with {
        $0.schemaID = "S"
        $0.schemaJson = #"{"type":"record","name":"A__e","fields":[]}"#
      }
      schema.send(try answer.serializedBytes())
      schema.end(.ok)
      harness.schemaAnswered.yield()
      let ids = try await harness.ticking {
        var ids: [String] = []
        while ids.count < 2 {
          if case .response(0, let response, _) = try await harness.signal() {
            ids += response.view.events.map { response.view.string($0.eventID) }
          }
        }
        return ids
      }
      #expect(ids == ["e-5", "e-6"])
    }
  }

  @Test("Keepalives of the managed stream do not move our position before the proof")
  func keepalives() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([], latest: 90)
      }
      try managed.respondManaged([], latest: 91)
      try probe.respondManaged([], latest: 8)
      let view = try await harness.response()
      #expect(Array(view[view.latestReplayIDField]) == ManagedJoinTests.replayID(8))
    }
  }

  @Test("While an event waits for proof, neither silence nor a keepalive ends the topic")
  func waiting() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (_, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      try await harness.expectHolding()
      try probe.respondManaged([], latest: 8)
      try probe.respondManaged([5])
      // The keepalive is not handed on, which would move our position past the event.
      try await harness.expectPassedOver(1)
      #expect(harness.isHolding)
      let view = try await harness.response()
      #expect(view.events.map { view.string($0.eventID) } == ["e-5"])
    }
  }

  @Test("An event that arrives after a Subscribe keepalive is also awaited")
  func waitingAfterKeepalive() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([], latest: 4)
      }
      try probe.respondManaged([], latest: 4)
      _ = try await harness.response()
      #expect(!harness.isHolding)
      try managed.respondManaged([5])
      try await harness.expectHolding()
    }
  }

  @Test("Subscribe takes over if its keepalive contradicts an event of the managed stream")
  func contradiction() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      try await harness.expectHolding()
      harness.clock.advance(by: ManagedJoin.patience)
      try probe.respondManaged([], latest: 8)
      await harness.ticking {
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      try await harness.expectPassedOver(1)
      #expect(harness.isHolding)
      let (failure, _) = try await harness.retry()
      #expect(failure.reason == "managed_position")
      #expect(failure.description.contains("brings an event that Subscribe does not"))
      let (plain, _) = try await harness.open(at: Self.position)
      try plain.respondManaged([5, 6])
      #expect(try await harness.response().events.count == 2)
    }
  }

  @Test("A stop ends a topic whose event still waits for proof")
  func stoppedWhileWaiting() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      _ = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      try await harness.expectHolding()
      harness.stream.stop()
      let ending = try await harness.ticking { try await harness.ending() }
      #expect(ending == nil)
    }
  }

  @Test("A stream is reopened if Subscribe stays silent while an event waits")
  func silentProof() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, _) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([5])
      }
      try await harness.expectHolding()
      harness.clock.advance(by: Liveness.idleLimit)
      await harness.ticking {
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      try await harness.expectPassedOver(1)
      let (failure, _) = try await harness.retry()
      #expect(failure.disposition == .unavailable)
      #expect(failure.description.contains("sent nothing for 300 s"))
    }
  }

  @Test("Durable positions are committed, and after a refusal the stream continues")
  func commits() async throws {
    let notices = Lock([ManagedNotice]())
    try await StreamHarness.run(
      Self.harness(onManaged: { notice in notices.withLock { $0.append(notice) } })
    ) { harness in
      try await harness.begin(at: .managed)
      let call = try await harness.call()
      _ = try await call.managedRequest()
      _ = try await harness.signal()
      let (one, two) = (
        ReplayID(ManagedJoinTests.replayID(1)), ReplayID(ManagedJoinTests.replayID(2))
      )
      harness.managed?.becameDurable(one)
      let first = try await harness.ticking { try await call.managedRequest() }
      #expect(Array(first.commitReplayIDRequest.replayID) == one.bytes)
      #expect(first.numRequested == 0)
      try call.answer(first, failure: "no")
      harness.managed?.becameDurable(two)
      let second = try await harness.ticking { try await call.managedRequest() }
      #expect(Array(second.commitReplayIDRequest.replayID) == two.bytes)
      try call.answer(second)
      try call.respondManaged([3])
      #expect(try await harness.response().events.count == 1)
      #expect(notices.withLock { $0 } == [.commitFailed(one, reason: "no"), .confirmed(two)])
      #expect(harness.managed?.progress.stored == two)
      #expect(harness.managed?.progress.failedCount == 1)
    }
  }

  @Test(
    "The position in the service's answer counts, and an answer without one confirms the request",
    arguments: [2, nil])
  func answeredPosition(answered: Int?) async throws {
    let notices = Lock([ManagedNotice]())
    try await StreamHarness.run(
      Self.harness(onManaged: { notice in notices.withLock { $0.append(notice) } })
    ) { harness in
      try await harness.begin(at: .managed)
      let call = try await harness.call()
      _ = try await call.managedRequest()
      _ = try await harness.signal()
      let asked = ReplayID(ManagedJoinTests.replayID(1))
      harness.managed?.becameDurable(asked)
      let request = try await harness.ticking { try await call.managedRequest() }
      let stored = answered.map { ReplayID(ManagedJoinTests.replayID($0)) }
      try call.answer(request, stored: stored?.bytes ?? [])
      try call.respondManaged([3])
      #expect(try await harness.response().events.count == 1)
      let progress = harness.managed?.progress
      #expect(progress?.stored == stored ?? asked)
      #expect(progress?.confirmedCount == (stored == nil ? 1 : 0))
      #expect(progress?.failedCount == (stored == nil ? 0 : 1))
      #expect(
        notices.withLock { $0 }
          == [stored.map { .misplaced($0, asked: asked) } ?? .confirmed(asked)])
    }
  }

  @Test("The last position is committed and confirmed before the call is closed")
  func end() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      try await harness.begin(at: .managed)
      let call = try await harness.call()
      _ = try await call.managedRequest()
      _ = try await harness.signal()
      harness.stream.stop()
      let ending = try await harness.ticking { try await harness.ending() }
      #expect(ending == nil)
      #expect(harness.managed?.isDone == false)
      let last = ReplayID(ManagedJoinTests.replayID(9))
      harness.managed?.becameDurable(last)
      harness.managed?.finish()
      let request = try await harness.ticking { try await call.managedRequest() }
      #expect(Array(request.commitReplayIDRequest.replayID) == last.bytes)
      try call.answer(request)
      // The request side is closed when the answer is in.
      let rest = await harness.ticking { await call.nextMessage() }
      #expect(rest == nil)
      #expect(harness.managed?.progress.stored == last)
    }
  }

  @Test(
    "A run whose managed stream delivered nothing commits the last position that Subscribe reached",
    arguments: [false, true])
  func endAfterSilence(subscribeFails: Bool) async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (managed, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([], latest: 4)
      }
      try probe.respondManaged([5])
      try await harness.expectPassedOver(1)
      try await harness.expectHolding()
      harness.clock.advance(by: ManagedJoin.patience)
      await harness.ticking {
        while await managed.nextMessage() != nil {}
      }
      managed.end(.ok, "")
      #expect(try await harness.retry().0.reason == "managed_position")
      let (plain, _) = try await harness.open(at: Self.position)
      try plain.respondManaged([5, 6])
      #expect(try await harness.response().events.count == 2)
      harness.stream.stop()
      if subscribeFails { plain.fail(RPCError(code: .unavailable, message: "connection reset")) }
      #expect(try await harness.ticking { try await harness.ending() } == nil)
      let last = ReplayID(ManagedJoinTests.replayID(6))
      harness.managed?.becameDurable(last)
      harness.managed?.finish()
      let call = try await harness.ticking { try await harness.call() }
      let first = try await call.managedRequest()
      #expect(first.developerName == "Sub" && first.numRequested == 1)
      let request = try await harness.ticking { try await call.managedRequest() }
      #expect(Array(request.commitReplayIDRequest.replayID) == last.bytes)
      // The service may send an event before its answer.
      try call.respondManaged([7])
      try call.answer(request)
      #expect(await harness.ticking { await call.nextMessage() } == nil)
      #expect(harness.managed?.progress.stored == last)
    }
  }

  @Test("A refused position may have been stored while source.managed was for another topic")
  func positionOfAnotherTopic() async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      let (_, probe) = try await harness.openManaged(at: Self.position) { call in
        try call.respondManaged([], latest: 4)
      }
      probe.refuse(.invalidArgument, .replayIDValidationFailed)
      let failure = try await harness.ticking { try await harness.ending() }
      #expect(failure?.disposition == .invalidReplay)
      #expect(
        failure?.description.contains("source.managed (Sub) was a subscription of another topic")
          == true)
    }
  }

  @Test(
    "A run waits for a subscription in use, but not for a missing or stopped one",
    arguments: [
      (Status.Code.alreadyExists, ServiceErrorCode.managedAlreadyActive, "another client has"),
      (.notFound, .managedNameNotFound, "check source.managed"),
      (.failedPrecondition, .managedStopped, "RUN"),
    ])
  func refusals(status: Status.Code, code: ServiceErrorCode, words: String) async throws {
    try await StreamHarness.run(Self.harness()) { harness in
      try await harness.begin(at: Self.position)
      let call = try await harness.call()
      _ = try await call.managedRequest()
      call.refuse(status, code)
      let failure: SourceFailure?
      if code == .managedAlreadyActive {
        let (reason, delay) = try await harness.retry()
        #expect(delay >= .seconds(30))
        failure = reason
      } else {
        failure = try await harness.ending()
        #expect(failure?.disposition == .refused)
        #expect(failure?.isOfTopicAlone == false)
      }
      #expect(failure?.description.contains(words) == true)
      // Nothing was asked for by Subscribe, which would cost an event at each attempt.
      #expect(harness.logins.used.count == 1)
    }
  }
}

extension StreamHarness {
  /// Opens the managed call, has the service answer it, and takes the plain one that proves its place.
  func openManaged(
    at start: StartPoint, answer: (ServerCall) throws -> Void
  ) async throws -> (managed: ServerCall, probe: ServerCall) {
    try await self.begin(at: start)
    let managed = try await self.call()
    let first = try await managed.managedRequest()
    #expect(first.developerName == "Sub")
    #expect(first.numRequested == 1)
    try answer(managed)
    let probe = try await self.ticking { try await self.call() }
    let request = try await probe.request()
    #expect(request.topicName == Self.topic)
    #expect(request.numRequested == 1)
    guard case .opened(0) = try await self.signal() else {
      throw UnexpectedSignal(expected: "opened")
    }
    return (managed, probe)
  }

  func expectPassedOver(_ count: Int) async throws {
    guard case .passedOver(0, count) = try await self.signal() else {
      throw UnexpectedSignal(expected: "passedOver \(count)")
    }
  }

  /// Time passes as long as `body` runs.
  func ticking<Value: Sendable>(
    _ body: @Sendable () async throws -> Value
  ) async rethrows -> Value {
    let clock = self.clock
    let ticker = Task {
      while !Task.isCancelled {
        clock.advance(by: .milliseconds(10))
        // Whoever woke up comes first.
        for _ in 0..<20 { await Task.yield() }
      }
    }
    defer { ticker.cancel() }
    return try await body()
  }
}

extension ServerCall {
  func managedRequest() async throws -> Eventbus_V1_ManagedFetchRequest {
    let bytes = try #require(await self.nextMessage())
    return try Eventbus_V1_ManagedFetchRequest(serializedBytes: bytes)
  }

  /// Sends a response, whose first four fields are those of `FetchResponse`.
  func respondManaged(_ numbers: [Int], latest: Int? = nil, schema: String = "") throws {
    let response = Eventbus_V1_ManagedFetchResponse.with {
      $0.events = numbers.map { number in
        .with {
          $0.event.id = "e-\(number)"
          $0.event.schemaID = schema
          $0.replayID = Data(ManagedJoinTests.replayID(number))
        }
      }
      $0.latestReplayID = Data(ManagedJoinTests.replayID(latest ?? numbers.last ?? 0))

    }
    self.send(try response.serializedBytes())
  }

  /// - Parameter stored: the position of the answer, which may be empty; nil for the one that was asked for.
  func answer(
    _ request: Eventbus_V1_ManagedFetchRequest, failure: String? = nil, stored: [UInt8]? = nil
  ) throws {
    let response = Eventbus_V1_ManagedFetchResponse.with {
      $0.commitResponse.commitRequestID = request.commitReplayIDRequest.commitRequestID
      $0.commitResponse.replayID = stored.map { Data($0) } ?? request.commitReplayIDRequest.replayID
      if let failure {
        $0.commitResponse.error.code = .commit
        $0.commitResponse.error.msg = failure
      }
    }
    self.send(try response.serializedBytes())
  }
}
