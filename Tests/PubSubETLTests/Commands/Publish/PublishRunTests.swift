import Clocks
import EventLoop
import FoundationEssentials
import GRPCCore
import Glibc
import JSON
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
    /// Results that say that the event was sent again.
    var repeated = 0
    /// Requests that the service got.
    var requests = 0
  }

  /// An answer that publishes everything but events that are to be refused, all with this text.
  private static func answer(
    to request: Eventbus_V1_PublishRequest, refusal: String? = nil, schemaID: String = "S"
  ) -> [UInt8] {
    let response = Eventbus_V1_PublishResponse.with {
      $0.schemaID = schemaID
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

  private static func describe(
    _ call: ServerCall, _ schemas: [String: String], missing: Status.Code
  ) async {
    _ = await call.nextMetadata()
    let message = await call.nextMessage() ?? []
    let request = try? Eventbus_V1_SchemaRequest(serializedBytes: message)
    let id = request?.schemaID ?? ""
    if call.method == "GetSchema", schemas[id] == nil { return call.end(missing) }
    let bytes: [UInt8]? =
      if call.method == "GetTopic" {
        try? Eventbus_V1_TopicInfo.with {
          $0.topicName = Self.topic
          $0.canPublish = true
          $0.schemaID = "S"
        }.serializedBytes()
      } else {
        try? Eventbus_V1_SchemaInfo.with {
          $0.schemaID = id
          $0.schemaJson = schemas[id] ?? ""
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
    schemas: [String: String] = ["S": Self.schema], missing: Status.Code = .notFound,
    credentials: any CredentialsSource = StaticCredentials(),
    interruption: Interruption = Interruption(deadline: nil, clock: ProcessClock()),
    repeatsUnknown: Bool = false, giveUpAfter: Duration? = RetrySchedule().giveUpAfter,
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
      guard call.method.hasPrefix("Publish") else {
        return await Self.describe(call, schemas, missing: missing)
      }
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
    options.repeatsUnknown = repeatsUnknown
    options.retry.giveUpAfter = giveUpAfter
    let repeated = Lock(0)
    let input = try InputBytes(descriptor)
    return try await withGRPCClient(transport: transport) { [options] grpc in
      let run = PublishRun(
        options, client: PubSubClient(grpc), credentials: credentials, input: input,
        interruption: interruption,
        output: { lines in
          let results = lines.map { $0.json(hiding: SecretMask()) }
          let count = results.count { $0["repeated"]?.boolean == true }
          repeated.withLock { $0 += count }
          return true
        })
      await run.run()
      let summary = await run.summary
      return (
        Account(
          published: summary.published, refused: summary.refused, unknown: summary.unknown,
          notSent: summary.notSent, repeated: repeated.withLock { $0 },
          requests: counts.withLock { $0.requests }), await run.failure
      )
    }
  }

  @Test(
    "Events answered before a stream ends in the middle of a request are published once",
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
      #expect(failure?.exitCode == .usage && failure?.reason == .input)
    }
  }

  @Test("An oversized answer ends the run as a fault of the service")
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

  @Test("Repeated events refused under an old schema are encoded with the new one")
  func repeatedWithOtherSchema() async throws {
    for isStream in [false, true] {
      let (account, failure) = try await Self.account(
        lines: 1, isStream: isStream, schemas: ["S": Self.schema, "T": Self.schema],
        repeatsUnknown: true
      ) { call, number, next in
        while let request = await next() {
          let isKnown = request.events.allSatisfy { $0.schemaID == "T" }
          // The first call is lost, and the second refuses the event.
          guard number > 1 else {
            return call.end(.unavailable, isRefusal: false)
          }
          call.sendHeaders()
          call.send(
            Self.answer(
              to: request, refusal: isKnown ? nil : "INVALID_SCHEMA: other", schemaID: "T"))
          if !isStream { break }
        }
        call.end(.ok)
      }
      #expect(account == Account(published: 1, repeated: 1, requests: 3))
      #expect(failure == nil)
    }
  }

  @Test("An event that may have been published and is not sent again does not count as repeated")
  func notRepeated() async throws {
    let (account, failure) = try await Self.account(
      lines: 1, isStream: false,
      repeatsUnknown: true, giveUpAfter: .zero
    ) { call, _, next in
      guard await next() != nil else { return }
      call.end(.unavailable, isRefusal: false)
    }
    #expect(account == Account(unknown: 1, requests: 1))
    #expect(failure?.exitCode == .unavailable)
  }

  @Test("A new schema named in the last answer is not requested")
  func schemaAfterTheEnd() async throws {
    for isStream in [false, true] {
      let (account, failure) = try await Self.account(lines: 3, isStream: isStream) {
        call, _, next in
        call.sendHeaders()
        while let request = await next() {
          call.send(Self.answer(to: request, schemaID: "T"))
          if !isStream { break }
        }
        call.end(.ok)
      }
      #expect(account == Account(published: 3, requests: 1))
      #expect(failure == nil)
    }
  }

  @Test("A schema that is malformed is the service's fault")
  func malformedSchema() async throws {
    let (account, failure) = try await Self.account(
      lines: 1, isStream: false, schemas: ["S": "{"]
    ) { call, _, _ in call.end(.ok) }
    #expect(account == Account())
    #expect(failure?.exitCode == .unavailable && failure?.reason == .schema)
  }

  /// Hangs once the first token was refused.
  private struct HangingLogin: CredentialsSource {
    let isRefused = Lock(false)
    let onHang: @Sendable () -> Void

    func credentials() async throws -> Credentials {
      if self.isRefused.withLock({ $0 }) {
        self.onHang()
        try await Task.sleep(for: .seconds(3600))
      }
      return try await StaticCredentials().credentials()
    }
    func worked(_ credentials: Credentials) async {}
    func refused(_ credentials: Credentials) async -> Bool {
      self.isRefused.withLock { $0 = true }
      return true
    }
  }

  @Test("A signal ends a run while its login hangs")
  func hangingLogin() async throws {
    for isStream in [false, true] {
      let interruption = Interruption(deadline: nil, clock: ProcessClock())
      let (account, failure) = try await Self.account(
        lines: 3, isStream: isStream,
        credentials: HangingLogin { interruption.ask() }, interruption: interruption
      ) { call, _, next in
        guard await next() != nil else { return }
        call.end(.unauthenticated)
      }
      #expect(account == Account(notSent: 3, requests: 1))
      #expect(failure?.reason == .signal)
    }
  }

  @Test("An event's refusal means a used-up allowance only if it begins with that code")
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

  @Test("A topic whose name contains the code for a used-up allowance does not end the run")
  func nameOfTopic() {
    let error = RPCError(code: .unavailable, message: "later")
    let named = PubSubError(error, operation: "Publish to /event/LIMIT_EXCEEDED__e")
    #expect(!named.isAllowanceUsedUp)
    let exhausted = RPCError(code: .resourceExhausted, message: "error: LIMIT_EXCEEDED, later")
    #expect(PubSubError(exhausted, operation: "Publish").isAllowanceUsedUp)
  }

  @Test(
    "A schema ID that the service names and then refuses is not a defect of this program",
    arguments: [(Status.Code.invalidArgument, ExitCode.unavailable), (.notFound, .refused)])
  func refusedSchemaID(code: Status.Code, exitCode: ExitCode) async throws {
    let (_, failure) = try await Self.account(
      lines: 1, isStream: false, schemas: [:], missing: code
    ) { call, _, _ in call.end(.internalError) }
    #expect(failure?.exitCode == exitCode)
    #expect(failure?.message.contains("GetSchema S") == true)
  }

  @Test("Answers from GetTopic and GetSchema about another topic or schema are refused")
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
