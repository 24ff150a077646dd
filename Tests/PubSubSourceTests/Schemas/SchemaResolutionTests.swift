import Avro
import Clocks
import EventLoop
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import SchemaStore
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

@Suite("Schema resolution")
struct SchemaResolutionTests {
  private static let schema =
    #"{"type":"record","name":"A__e","fields":[{"name":"N","type":"long"}]}"#
  private static let topics = ["/event/A__e", "/event/B__e"].map {
    SourceTopic(name: $0, isChannel: false, start: .earliest)
  }

  /// A source between a test that plays the service and the runner.
  private final class Service: Sendable {
    private struct State {
      var requests: [String] = []
      /// Schema IDs of the events, by response, of topic 0 and 1.
      var responses: [[[String]]]
    }
    private let state: Lock<State>
    private let answer: @Sendable (ServerCall) async throws -> Void

    /// - Parameter answer: to `GetSchema`.
    init(
      _ responses: [[[String]]], answer: @Sendable @escaping (ServerCall) async throws -> Void
    ) {
      self.state = Lock(State(responses: responses))
      self.answer = answer
    }

    /// IDs of the schemas that were asked for.
    var requests: [String] { self.state.withLock { $0.requests } }

    func serve(_ call: ServerCall) async {
      _ = await call.nextMetadata()
      guard let request = await call.nextMessage() else { return }
      call.sendHeaders()
      if call.method == "GetSchema" {
        let id = (try? Eventbus_V1_SchemaRequest(serializedBytes: request))?.schemaID ?? "?"
        self.state.withLock { $0.requests.append(id) }
        try? await self.answer(call)
        return
      }
      let topic = (try? Eventbus_V1_FetchRequest(serializedBytes: request))?.topicName
      let index = SchemaResolutionTests.topics.firstIndex { $0.name == topic } ?? 0
      let responses = self.state.withLock { $0.responses[index] }
      for (number, schemaIDs) in responses.enumerated() {
        let message = Eventbus_V1_FetchResponse.with {
          $0.events = schemaIDs.map { id in
            .with {
              $0.replayID = Data([UInt8(number + 1)])
              $0.event.schemaID = id
              $0.event.payload = Data([2])
            }
          }
          $0.pendingNumRequested = 50
        }
        if let bytes: [UInt8] = try? message.serializedBytes() { call.send(bytes) }
      }
      for await _ in AsyncStream<Never>.makeStream().stream {}
    }

    static func succeed(_ call: ServerCall) throws {
      let info = Eventbus_V1_SchemaInfo.with {
        $0.schemaID = "S1"
        $0.schemaJson = SchemaResolutionTests.schema
      }
      call.send(try info.serializedBytes())
      call.end(.ok)
    }
  }

  private typealias PubSub = PubSubSource<ScriptedTransport>
  private typealias Before =
    @Sendable ([PubSubSourceOptions.SchemaOfObject]) async throws(SourceFailure) -> Void

  private func run(
    _ service: Service, maxSchemaByteCount: Int = 64 << 20, topics: Int = 1,
    cache: SchemaCache? = nil,
    before: Before? = nil,
    _ body: (PubSub) async throws -> Void
  ) async throws {
    let client = GRPCClient(transport: ScriptedTransport { await service.serve($0) })
    var options = PubSubSourceOptions(
      retry: RetrySchedule(giveUpAfter: .seconds(2), minDelay: .seconds(1)))
    options.maxSchemaByteCount = maxSchemaByteCount
    options.schemaCache = cache
    options.beforeHandingOn = before
    let source = PubSub(
      topics: Array(Self.topics.prefix(topics)), client: PubSubClient(client),
      credentials: ScriptedCredentials(), options: options)
    let connections = Task { try await client.runConnections() }
    let background = Task(operation: source.background)
    defer {
      background.cancel()
      connections.cancel()
    }
    try await body(source)
  }

  /// The next signal except those about the streams themselves.
  private func signal(_ source: PubSub) async throws -> SourceSignal<PubSubResponse> {
    while true {
      switch try #require(await source.next(until: .now + .seconds(20)), "no signal came") {
      case .opening(_, let reply): reply(.earliest)
      case .opened, .worked: break
      case let signal: return signal
      }
    }
  }

  /// Which events of the next response have a layout.
  private func known(_ source: PubSub, isFetching: Bool) async throws -> [Bool] {
    if isFetching {
      guard case .holding(0) = try await self.signal(source) else {
        Issue.record("no schema is fetched")
        return []
      }
    }
    guard case .response(0, let response, _) = try await self.signal(source) else {
      Issue.record("no response")
      return []
    }
    return (0..<response.eventCount).map {
      (try? source.layout(ofEvent: $0, of: response, topic: 0)) != nil
    }
  }

  @Test("A schema is fetched once for all responses and topics")
  func once() async throws {
    let service = Service([[["S1", "S1"], ["S1"]], []], answer: { try Service.succeed($0) })
    try await self.run(service) { source in
      var known = try await self.known(source, isFetching: true)
      #expect(known == [true, true])
      known = try await self.known(source, isFetching: false)
      #expect(known == [true])
    }
    #expect(service.requests == ["S1"])
  }

  @Test("The consumer learns of schemas and objects before their events")
  func beforeHandingOn() async throws {
    let service = Service([[["S1", "S1"], []], []], answer: { try Service.succeed($0) })
    let told = Lock<[[String]]>([])
    let before: Before = { schemas async throws(SourceFailure) in
      told.withLock { told in told.append(schemas.map { "\($0.entity) \($0.schemaID)" }) }
    }
    try await self.run(service, before: before) { source in
      _ = try await self.known(source, isFetching: true)
      #expect(told.withLock { $0.first } == ["A__e S1"])
      _ = try await self.known(source, isFetching: false)
      #expect(told.withLock { $0 } == [["A__e S1"], []])
    }
  }

  @Test("A response that must not be delivered ends its topic with the reason")
  func mustNotBeHandedOn() async throws {
    let service = Service([[["S1"]], []], answer: { try Service.succeed($0) })
    let before: Before = { _ async throws(SourceFailure) in
      throw SourceFailure(.quota, reason: "changed", "x")
    }
    try await self.run(service, before: before) { source in
      guard case .holding(0) = try await self.signal(source),
        case .ended(0, let failure) = try await self.signal(source)
      else {
        Issue.record("no end")
        return
      }
      #expect(failure?.reason == "changed" && failure?.disposition == .quota)
    }
  }

  @Test("A schema that an earlier run has fetched is not requested")
  func cached() async throws {
    let id = try #require(try Schema(parsing: Array(Self.schema.utf8)).serviceID)
    let directory = try TemporaryDirectory()
    var requests: [[String]] = []
    for isFetching in [true, false] {
      let service = Service([[[id, id], [id]], []], answer: { try Service.succeed($0) })
      let cache = SchemaCache(directory: directory.path + "/schemas", org: "00DXX0000000001AAA")
      try await self.run(service, cache: cache) { source in
        var known = try await self.known(source, isFetching: isFetching)
        #expect(known == [true, true])
        known = try await self.known(source, isFetching: false)
        #expect(known == [true])
      }
      requests.append(service.requests)
    }
    #expect(requests == [[id], []])
  }

  @Test("Schemas beyond the budget are dropped, and fetched again when needed")
  func budget() async throws {
    let service = Service(
      [[["S1"], ["S2"], ["S3"], ["S1"]], []], answer: { try Service.succeed($0) })
    try await self.run(service, maxSchemaByteCount: 10_000) { source in
      for _ in 0..<4 {
        let known = try await self.known(source, isFetching: true)
        #expect(known == [true])
      }
    }
    #expect(service.requests == ["S1", "S2", "S3", "S1"])
  }

  @Test("A schema beyond the budget of one response is requested only by the next that needs it")
  func budgetOfOneResponse() async throws {
    let service = Service(
      [[["S1", "S2", "S3", "S1"], ["S3"]], []], answer: { try Service.succeed($0) })
    try await self.run(service, maxSchemaByteCount: 10_000) { source in
      var known = try await self.known(source, isFetching: true)
      #expect(known == [true, false, false, true])
      known = try await self.known(source, isFetching: true)
      #expect(known == [true])
    }
    #expect(service.requests == ["S1", "S3"])
  }

  @Test("A schema is requested again after an answer that is malformed or not UTF-8")
  func malformedAnswer() async throws {
    for answer: [UInt8] in [[0x0A, 0x01, 0xFF], [0x0A, 0x05, 0x41]] {
      let service = Service([[["S1"]], []]) { call in
        call.send(answer)
        call.end(.ok)
      }
      try await self.run(service) { source in
        guard case .holding(0) = try await self.signal(source),
          case .schemasFailed(0, let failure, _) = try await self.signal(source)
        else {
          Issue.record("not retried")
          return
        }
        #expect(failure.disposition == .unavailable)
      }
    }
  }

  @Test("Other topics and signals are not delayed while one topic waits for a schema")
  func others() async throws {
    let service = Service([[["S1"]], [[""]]]) { _ in
      for await _ in AsyncStream<Never>.makeStream().stream {}
    }
    try await self.run(service, topics: 2) { source in
      var seen: Set<String> = []
      while seen.count < 2 {
        switch try await self.signal(source) {
        case .holding(0): seen.insert("fetching")
        case .response(1, let response, _):
          #expect(response.eventCount == 1)
          seen.insert("response")
        case let signal: Issue.record("\(signal)")
        }
      }
      source.interrupt()
      guard case .interrupted = try await self.signal(source) else {
        Issue.record("not interrupted")
        return
      }
      source.stop()
      var ended: Set<Int> = []
      while ended.count < 2 {
        guard case .ended(let topic, let failure) = try await self.signal(source) else {
          Issue.record("a response was handed on without its schema")
          return
        }
        #expect(failure == nil)
        ended.insert(topic)
      }
    }
  }

  @Test("A failed attempt is reported with the schema, the reason and the time of the next")
  func retried() async throws {
    let service = Service([[["S1"]], []]) { call in
      call.end(.unavailable, "overloaded. rpcId: r-1")
    }
    try await self.run(service) { source in
      guard case .holding(0) = try await self.signal(source),
        case .schemasFailed(0, let failure, let delay) = try await self.signal(source)
      else {
        Issue.record("no retry")
        return
      }
      #expect(failure.description.contains("GetSchema S1"))
      #expect(failure.description.contains("overloaded"))
      #expect((.milliseconds(800)...(.milliseconds(1200))).contains(delay))
      // The next comes when the time is over, and is the last.
      guard case .schemasFailed = try await self.signal(source),
        case .ended(0, let last) = try await self.signal(source)
      else {
        Issue.record("no end")
        return
      }
      #expect(last?.disposition == .unavailable)
    }
    #expect(service.requests == ["S1", "S1", "S1"])
  }

  @Test("A schema that the user may not see ends the topic")
  func refused() async throws {
    let service = Service([[["S1"]], []]) { call in
      call.end(
        .permissionDenied, "no",
        trailers: ["error-code": .string("sfdc.platform.eventbus.grpc.schema.meta.permission")])
    }
    try await self.run(service) { source in
      guard case .holding(0) = try await self.signal(source),
        case .ended(0, let failure) = try await self.signal(source)
      else {
        Issue.record("no end")
        return
      }
      #expect(failure?.disposition == .refused)
    }
  }

  @Test("A time of day in a field of dates leads to the later schema of that field")
  func outdated() async throws {
    @Sendable func text(_ type: String) -> String {
      #"{"type":"record","name":"A__e","fields":[{"name":"D","type":"long","doc":"Data:\#(type)"}]}"#
    }
    let old = try Schema(parsing: Array(text("DateOnly").utf8))
    let id = try #require(old.serviceID)
    let directory = try TemporaryDirectory()
    let cache = SchemaCache(directory: directory.path + "/schemas", org: "00DXX0000000001AAA")
    cache.fetched(id, json: text("DateOnly"), schema: old)
    // The value is 1: a millisecond after midnight.
    let service = Service([[[id]], []]) { call in
      let info = Eventbus_V1_SchemaInfo.with {
        $0.schemaID = id
        $0.schemaJson = text("DateTime")
      }
      call.send(try info.serializedBytes())
      call.end(.ok)
    }
    try await self.run(service, cache: cache) { source in
      guard case .response(0, let response, let receivedAt) = try await self.signal(source) else {
        Issue.record("no response")
        return
      }
      func renew(receivedAt: ContinuousClock.Instant) async {
        await source.renewSchema(ofEvent: 0, of: response, topic: 0, receivedAt: receivedAt)
      }
      func type() throws -> Column.Content? {
        try source.layout(ofEvent: 0, of: response, topic: 0).columns.last?.content
      }
      func decode() throws -> RecordBatch {
        let batch = RecordBatch(layout: try source.layout(ofEvent: 0, of: response, topic: 0))
        try source.decode(event: 0, of: response, topic: 0, into: batch)
        return batch
      }
      #expect(try type() == .slot(MetadataSlot.count, .date(.milliseconds)))
      let error = #expect(throws: UndecodableEvent.self) { _ = try decode() }
      #expect(error?.isOfOutdatedSchema == true && error?.fieldPath == "D")
      await renew(receivedAt: receivedAt)
      #expect(try type() == .slot(MetadataSlot.count, .timestamp(.milliseconds, isLocal: false)))
      #expect(try decode().texts(row: 0)["D"] == "1")
      await renew(receivedAt: receivedAt)
      #expect(service.requests == [id])
      // Another field has changed since.
      await renew(receivedAt: ProcessClock().now)
    }
    #expect(service.requests == [id, id])
    #expect(cache.find(id)?.json == text("DateTime"))
  }
}
