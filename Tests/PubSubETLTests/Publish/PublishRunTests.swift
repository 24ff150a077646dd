import EventLoop
import FoundationEssentials
import GRPCCore
import Glibc
import PubSubMessages
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubAPI
@testable import PubSubETL

/// What a run of `publish` reports of a service that a test scripts.
@Suite("Runs of publish") struct PublishRunTests {
  private static let topic = "/event/A__e"
  private static let schema = """
    {"type":"record","name":"A__e","fields":[{"name":"City__c","type":["null","string"],
      "default":null}]}
    """

  private struct StaticCredentials: CredentialsSource {
    func credentials() async throws -> Credentials {
      Credentials(
        accessToken: "t", instanceURL: "https://org.example", tenantID: "00D000000000001")
    }
    func worked(_ credentials: Credentials) async {}
    func refused(_ credentials: Credentials) async -> Bool { true }
  }

  private struct Account: Equatable {
    var published = 0
    var refused = 0
    var unknown = 0
    var notSent = 0
    /// Requests that the service got.
    var requests = 0
  }

  /// An answer that publishes everything but events that are to be refused, all with this text.
  private static func answer(
    to request: Eventbus_V1_PublishRequest, refusal: String? = nil
  ) -> [UInt8] {
    let response = Eventbus_V1_PublishResponse.with {
      $0.schemaID = "S"
      $0.results = request.events.enumerated().map { index, event in
        .with {
          $0.correlationKey = event.id
          if index == 0, let refusal {
            $0.error = .with { $0.msg = refusal }
          } else {
            $0.replayID = Data([1])
          }
        }
      }
    }
    return (try? response.serializedBytes()) ?? []
  }

  private static func text(lines: Int) -> String {
    (0..<lines).map { #"{"EventUuid":"e-\#($0)","City__c":"x"}"# + "\n" }.joined()
  }

  private static func describe(_ call: ServerCall) async {
    _ = await call.nextMetadata()
    _ = await call.nextMessage()
    let bytes: [UInt8]? =
      if call.method == "GetTopic" {
        try? Eventbus_V1_TopicInfo.with {
          $0.topicName = Self.topic
          $0.canPublish = true
          $0.schemaID = "S"
        }.serializedBytes()
      } else {
        try? Eventbus_V1_SchemaInfo.with {
          $0.schemaID = "S"
          $0.schemaJson = Self.schema
        }.serializedBytes()
      }
    call.sendHeaders()
    call.send(bytes ?? [])
    call.end(.ok)
  }

  /// Publishes lines to a service whose calls of `Publish` and `PublishStream` are served by a closure,
  /// which gets each request in turn and the number of the call.
  private static func account(
    lines: Int, isStream: Bool, takenMessages: Int = .max, from descriptor: Int32? = nil,
    _ serve:
      @Sendable @escaping (ServerCall, Int, @Sendable () async -> Eventbus_V1_PublishRequest?)
      async -> Void
  ) async throws -> (account: Account, failure: RunFailure?) {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/events"
    try Data(Self.text(lines: lines).utf8).write(to: URL(filePath: path))
    let descriptor = descriptor ?? open(path, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    let counts = Lock((calls: 0, requests: 0))
    let transport = ScriptedTransport(takenMessages: takenMessages) { call in
      guard call.method.hasPrefix("Publish") else { return await Self.describe(call) }
      let number = counts.withLock { counts in
        counts.calls += 1
        return counts.calls
      }
      _ = await call.nextMetadata()
      await serve(call, number) {
        guard let bytes = await call.nextMessage() else { return nil }
        counts.withLock { $0.requests += 1 }
        return try? Eventbus_V1_PublishRequest(serializedBytes: bytes)
      }
    }
    var options = PublishOptions(topic: Self.topic)
    options.isStream = isStream
    let input = try InputBytes(descriptor)
    return try await withGRPCClient(transport: transport) { [options] grpc in
      let run = PublishRun(
        options, client: PubSubClient(grpc), credentials: StaticCredentials(), input: input,
        interruption: Interruption(deadline: nil), output: { _ in true })
      await run.run()
      let summary = await run.summary
      return (
        Account(
          published: summary.published, refused: summary.refused, unknown: summary.unknown,
          notSent: summary.notSent, requests: counts.withLock { $0.requests }), await run.failure
      )
    }
  }

  @Test(
    "What was answered before a stream ended in the middle of a request is published, once",
    arguments: [
      Status.Code.unauthenticated, .unavailable, .permissionDenied, .resourceExhausted,
    ])
  func endInRequest(status: Status.Code) async throws {
    let (account, _) = try await Self.account(lines: 201, isStream: true, takenMessages: 1) {
      call, _, next in
      guard let request = await next() else { return }
      await call.waitUntilFull()
      call.sendHeaders()
      call.send(Self.answer(to: request))
      call.end(status, "LIMIT_EXCEEDED")
    }
    #expect(account == Account(published: 200, unknown: 1, requests: 1))
  }

  @Test("Events of a call that fails after its answer are not sent again")
  func failureAfterAnswer() async throws {
    let (account, _) = try await Self.account(lines: 3, isStream: false) { call, number, next in
      guard let request = await next() else { return }
      call.sendHeaders()
      call.send(Self.answer(to: request))
      call.end(number == 1 ? .unauthenticated : .ok)
    }
    #expect(account == Account(unknown: 3, requests: 1))
  }

  @Test("Events of a call that is refused without an answer are sent again")
  func refusedCall() async throws {
    let (account, failure) = try await Self.account(lines: 3, isStream: false) {
      call, number, next in
      guard let request = await next() else { return }
      if number == 1 { return call.end(.unauthenticated) }
      call.sendHeaders()
      call.send(Self.answer(to: request))
      call.end(.ok)
    }
    #expect(account == Account(published: 3, requests: 2))
    #expect(failure == nil)
  }

  @Test("Complete lines that came before the input failed are published")
  func failedInput() async throws {
    for isStream in [false, true] {
      var ends: [Int32] = [-1, -1]
      try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
      // A peer that leaves without having read everything resets the connection.
      try #require(write(ends[0], "x", 1) == 1)
      let text = Self.text(lines: 3) + #"{"City__c":"#
      try #require(write(ends[1], text, text.utf8.count) == text.utf8.count)
      close(ends[1])
      let (account, failure) = try await Self.account(
        lines: 0, isStream: isStream, from: ends[0]
      ) { call, _, next in
        call.sendHeaders()
        while let request = await next() { call.send(Self.answer(to: request)) }
        call.end(.ok)
      }
      #expect(account == Account(published: 3, requests: 1))
      #expect(failure?.exitCode == .usage && failure?.reason == "input")
    }
  }

  @Test("An answer that is too large ends the run as a fault of the service")
  func oversizedAnswer() async throws {
    let (account, failure) = try await Self.account(lines: 3, isStream: false) { call, _, next in
      guard await next() != nil else { return }
      call.end(.resourceExhausted, "The server sent a message of 9 bytes", isRefusal: false)
    }
    #expect(account == Account(unknown: 3, requests: 1))
    #expect(failure?.exitCode == .unavailable)
  }

  @Test(
    "Events of a call whose status is not the service's own are not sent again",
    arguments: [
      Status.Code.unauthenticated, .permissionDenied, .notFound, .unimplemented, .invalidArgument,
    ])
  func concludedStatus(status: Status.Code) async throws {
    for isStream in [false, true] {
      let (account, _) = try await Self.account(lines: 3, isStream: isStream) { call, _, next in
        guard await next() != nil else { return }
        call.end(status, "LIMIT_EXCEEDED", isRefusal: false)
      }
      #expect(account == Account(unknown: 3, requests: 1))
    }
  }

  @Test("An event's refusal is that of a used-up allowance only if it begins with the code")
  func allowance() async throws {
    for (text, isUsedUp) in [
      ("LIMIT_EXCEEDED: hourly publishing", true), ("LIMIT_EXCEEDED", true),
      ("STRING_TOO_LONG: value 'LIMIT_EXCEEDED' of City__c", false),
      ("STRING_LIMIT_EXCEEDED: City__c", false),
    ] {
      let (account, failure) = try await Self.account(lines: 201, isStream: false) {
        call, number, next in
        guard let request = await next() else { return }
        call.sendHeaders()
        call.send(Self.answer(to: request, refusal: number == 1 ? text : nil))
        call.end(.ok)
      }
      #expect((failure?.exitCode == .tryAgain) == isUsedUp, "\(text)")
      #expect(account.refused == (isUsedUp ? 0 : 1), "\(text)")
    }
  }

  @Test("A topic whose name has the code of a used-up allowance in it does not end the run")
  func nameOfTopic() {
    let error = RPCError(code: .unavailable, message: "later")
    let named = PubSubError(error, operation: "Publish to /event/LIMIT_EXCEEDED__e")
    #expect(!named.isAllowanceUsedUp)
    let exhausted = RPCError(code: .resourceExhausted, message: "error: LIMIT_EXCEEDED, later")
    #expect(PubSubError(exhausted, operation: "Publish").isAllowanceUsedUp)
  }

  @Test("Answers of GetTopic and GetSchema about something else are not used")
  func answersAboutOthers() {
    func topic(_ name: String, schema: String) -> TopicInformation {
      TopicInformation(
        name: name, tenantGUID: "", canPublish: true, canSubscribe: true, schemaID: schema,
        rpcID: "")
    }
    #expect(throws: Never.self) {
      for schema in ["", "S", String(repeating: "s", count: 256)] {
        _ = try topic("/event/a__E", schema: schema).checked(Self.topic)
      }
      _ = try SchemaInformation(id: "S", json: "", rpcID: "").checked("S")
    }
    for (name, schema) in [
      ("/event/B__e", "S"), ("", "S"), (Self.topic, "a\u{1B}[31m"), (Self.topic, "ä"),
      (Self.topic, String(repeating: "s", count: 257)),
    ] {
      let error = #expect(throws: PubSubError.self) {
        try topic(name, schema: schema).checked(Self.topic)
      }
      #expect(error?.code == .malformedResponse)
    }
    #expect(throws: PubSubError.self) {
      try SchemaInformation(id: "T", json: "", rpcID: "").checked("S")
    }
  }
}
