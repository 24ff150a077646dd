import EventLoop
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

@Suite("Schemas that do not come")
struct SchemaFetchTests {
  /// A source between a test that plays the service and the runner. Topic 0, of one event.
  private struct Harness {
    let source: PubSubSource<ScriptedTransport>
    let response: FetchResponseView

    init(client: GRPCClient<ScriptedTransport>, maxSchemaByteCount: Int?) throws {
      var options = PubSubSourceOptions(maxRetries: 1)
      if let maxSchemaByteCount { options.maxSchemaByteCount = maxSchemaByteCount }
      self.source = PubSubSource(
        topics: [SourceTopic(name: "/event/A__e", isChannel: false, start: .earliest)],
        client: PubSubClient(client), credentials: ScriptedCredentials(),
        options: options)
      self.response = try Self.response(["S1"])
    }

    static func response(_ schemaIDs: [String]) throws -> FetchResponseView {
      let message = Eventbus_V1_FetchResponse.with {
        $0.events = schemaIDs.map { id in
          .with {
            $0.replayID = Data([1])
            $0.event.schemaID = id
            $0.event.payload = Data([2])
          }
        }
      }
      return try FetchResponseView(parsing: message.serializedBytes() as [UInt8])
    }

    /// Prepares a response, and tells of which of its events the schema is known.
    func known(_ schemaIDs: [String]) async throws -> [Bool] {
      let response = try Self.response(schemaIDs)
      while true {
        let preparation = try await self.source.prepare(
          response, topic: 0, until: .now + .seconds(20))
        if case .ready = preparation { break }
      }
      return schemaIDs.indices.map {
        (try? self.source.layout(ofEvent: $0, of: response, topic: 0)) != nil
      }
    }

    func prepare(for time: Duration = .seconds(20)) async throws -> Preparation {
      try await self.source.prepare(self.response, topic: 0, until: .now + time)
    }
  }

  /// - Parameter answer: to `GetSchema`; Subscribe is never answered.
  private func run(
    maxSchemaByteCount: Int? = nil,
    answer: @Sendable @escaping (ServerCall) async throws -> Void,
    _ body: (Harness) async throws -> Void
  ) async throws {
    let client = GRPCClient(
      transport: ScriptedTransport { call in
        if call.method == "GetSchema" {
          _ = await call.nextMetadata()
          _ = await call.nextMessage()
          call.sendHeaders()
          try? await answer(call)
          return
        }
        for await _ in AsyncStream<Never>.makeStream().stream {}
      })
    let harness = try Harness(client: client, maxSchemaByteCount: maxSchemaByteCount)
    let connections = Task { try await client.runConnections() }
    let background = Task(operation: harness.source.background)
    defer {
      background.cancel()
      connections.cancel()
    }
    try await body(harness)
  }

  private final class Calls: Sendable {
    private let calls = Lock(0)
    var count: Int { self.calls.withLock { $0 } }
    func add() { self.calls.withLock { $0 += 1 } }
  }

  private static func answer(_ json: String, to call: ServerCall) throws {
    let info = Eventbus_V1_SchemaInfo.with {
      $0.schemaID = "S1"
      $0.schemaJson = json
    }
    call.send(try info.serializedBytes())
    call.end(.ok)
  }

  @Test("A schema that comes is ready, once and for all")
  func ready() async throws {
    try await self.run { call in
      try Self.answer(
        #"{"type":"record","name":"A__e","fields":[{"name":"N","type":"long"}]}"#, to: call)
    } _: { harness in
      for _ in 0..<2 {
        guard case .ready = try await harness.prepare() else {
          return #expect(Bool(false), "not ready")
        }
      }
      #expect(
        try harness.source.layout(ofEvent: 0, of: harness.response, topic: 0).entity == "A__e")
    }
  }

  @Test("An answer that is no message, or no UTF-8, is asked for again")
  func malformedAnswer() async throws {
    for answer: [UInt8] in [[0x0A, 0x01, 0xFF], [0x0A, 0x05, 0x41]] {
      try await self.run { call in
        call.send(answer)
        call.end(.ok)
      } _: { harness in
        guard case .retrying(let failure, _) = try await harness.prepare() else {
          return #expect(Bool(false), "not retried")
        }
        #expect(failure.disposition == .unavailable)
      }
    }
  }

  @Test(
    "Schemas beyond the budget are dropped between responses, and fetched again when they are needed"
  )
  func schemaBudget() async throws {
    let fetched = Calls()
    try await self.run(maxSchemaByteCount: 10_000) { call in
      fetched.add()
      try Self.answer(
        #"{"type":"record","name":"A__e","fields":[{"name":"N","type":"long"}]}"#, to: call)
    } _: { harness in
      let known1 = try await harness.known(["S1", "S1"])
      #expect(known1 == [true, true])
      #expect(fetched.count == 1)
      let known2 = try await harness.known(["S1"])
      #expect(known2 == [true])
      #expect(fetched.count == 2, "dropped with the response before")
    }
  }

  @Test("What a response needs beyond the budget is not asked for, until another response needs it")
  func schemasOfOneResponse() async throws {
    let fetched = Calls()
    try await self.run(maxSchemaByteCount: 10_000) { call in
      fetched.add()
      try Self.answer(
        #"{"type":"record","name":"A__e","fields":[{"name":"N","type":"long"}]}"#, to: call)
    } _: { harness in
      let known3 = try await harness.known(["S1", "S2", "S3"])
      #expect(known3 == [true, false, false])
      #expect(fetched.count == 1)
      let known4 = try await harness.known(["S3"])
      #expect(known4 == [true])
    }
  }

  @Test(
    "Who waits for a schema that does not come is told so when the time is over, or a signal comes")
  func silence() async throws {
    try await self.run { _ in
      for await _ in AsyncStream<Never>.makeStream().stream {}
    } _: { harness in
      guard case .waiting = try await harness.prepare(for: .zero) else {
        return #expect(Bool(false), "no waiting")
      }
      let interrupt = harness.source.interrupt
      async let interrupted: Void = interrupt()
      let preparation = try await harness.prepare()
      await interrupted
      guard case .interrupted = preparation else {
        return #expect(Bool(false), "\(preparation)")
      }
    }
  }

  @Test("A failed attempt is told with the schema, the reason and the time of the next")
  func retried() async throws {
    try await self.run { call in
      call.end(.unavailable, "overloaded. rpcId: r-1")
    } _: { harness in
      guard case .retrying(let failure, let delay) = try await harness.prepare() else {
        return #expect(Bool(false), "no retry")
      }
      #expect(failure.description.contains("GetSchema S1"))
      #expect(failure.description.contains("overloaded"))
      #expect((.milliseconds(800)...(.milliseconds(1200))).contains(delay))
    }
  }

  @Test("A schema that the user may not see ends the run")
  func refused() async throws {
    try await self.run { call in
      call.end(
        .permissionDenied, "no",
        trailers: ["error-code": .string("sfdc.platform.eventbus.grpc.schema.meta.permission")])
    } _: { harness in
      let failure = await #expect(throws: SourceFailure.self) { try await harness.prepare() }
      #expect(failure?.disposition == .refused)
    }
  }
}
