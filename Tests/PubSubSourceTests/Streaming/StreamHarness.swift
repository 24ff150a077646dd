import Clocks
import EventLoop
import FoundationEssentials
import GRPCCore
import Pipeline
import PubSubAPI
import PubSubMessages
import PubSubTestSupport
import SchemaStore
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubSource

/// A `TopicStream` between a test that plays the service and the runner.
final class StreamHarness: Sendable {
  typealias Signal = SourceSignal<PubSubResponse>

  static let topic = "/event/A__e"

  let clock = ManualClock()
  let logins = ScriptedCredentials()
  let signals: SignalQueue<Signal>
  let stream: TopicStream<ScriptedTransport>
  let managed: ManagedStream<ScriptedTransport>?
  private let calls: AsyncStream<ServerCall>
  /// To be told when a call for a schema has been answered; unlike a stream, it ends with that.
  let schemaAnswered: AsyncStream<Void>.Continuation
  private let client: GRPCClient<ScriptedTransport>

  init(
    window: Int = 100, maxEvents: Int? = nil, retry: RetrySchedule = RetrySchedule(),
    queueLimit: Int = 1 << 20, managed: ManagedSubscription.Record? = nil,
    subscriptionPatience: Duration? = nil,
    onManaged: @Sendable @escaping (ManagedNotice) -> Void = { _ in }
  ) {
    let (calls, inbox) = AsyncStream<ServerCall>.makeStream()
    let (schemas, schemaAnswered) = AsyncStream<Void>.makeStream()
    self.schemaAnswered = schemaAnswered
    self.calls = calls
    self.client = GRPCClient(
      transport: ScriptedTransport { call in
        inbox.yield(call)
        if call.method.hasSuffix("GetSchema") {
          for await _ in schemas { return }
        }
        // The test answers; the call lives until the client leaves it.
        for await _ in AsyncStream<Never>.makeStream().stream {}
      })
    self.signals = SignalQueue(limit: queueLimit)
    var options = PubSubSourceOptions(window: window, maxEvents: maxEvents, retry: retry)
    options.managed = managed
    options.subscriptionPatience = subscriptionPatience
    options.onManaged = onManaged
    let client = PubSubClient(self.client)
    self.stream = TopicStream(
      index: 0, topic: Self.topic, client: client, credentials: self.logins,
      schemas: SchemaResolver(
        library: SchemaLibrary(maxByteCount: options.maxSchemaByteCount, onUnexpectedID: { _ in }),
        fetcher: SchemaFetcher(
          client: client, credentials: self.logins, options: options, clock: self.clock.clock),
        maxByteCount: options.maxSchemaByteCount),
      options: options, maxEvents: options.maxEvents, signals: self.signals,
      clock: self.clock.clock)
    self.managed = managed.map { [stream] in ManagedStream($0, of: stream) }
  }

  /// Runs the stream while `body` plays the other parts.
  static func run(
    _ harness: StreamHarness, _ body: @Sendable (StreamHarness) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await harness.client.runConnections() }
      group.addTask { await harness.runStream() }
      try await body(harness)
      group.cancelAll()
      while let result = await group.nextResult() { _ = result }
    }
  }

  /// Runs the stream until it has ended.
  func runStream() async {
    if let managed { await managed.run() } else { await self.stream.run() }
  }

  /// Whether the last signals say that silence is not the end of the topic.
  private let holding = Lock(false)
  var isHolding: Bool { self.holding.withLock { $0 } }

  /// How often the stream has said that it works.
  private let works = Lock(0)
  var workedCount: Int { self.works.withLock { $0 } }

  /// The stream's next signal besides `worked` and `holding`, which may come several times.
  func signal() async throws -> Signal {
    while true {
      let signal = try await self.anySignal()
      switch signal {
      case .holding, .worked: continue
      default: return signal
      }
    }
  }

  /// Waits until silence is not the end of the topic, before anything else is signalled.
  func expectHolding() async throws {
    while !self.isHolding {
      guard case .holding(0) = try await self.anySignal() else {
        throw UnexpectedSignal(expected: "holding")
      }
    }
  }

  /// The deadline only keeps a failing test from hanging.
  private func anySignal() async throws -> Signal {
    let signal = try #require(
      await self.signals.receive(until: .now + .seconds(60)), "no signal came")
    // As the runner does.
    switch signal {
    case .holding: self.holding.withLock { $0 = true }
    case .opened, .response: self.holding.withLock { $0 = false }
    case .worked: self.works.withLock { $0 += 1 }
    default: break
    }
    return signal
  }

  /// Answers the question where to begin.
  func begin(at start: StartPoint?) async throws {
    guard case .opening(0, let reply) = try await self.signal() else {
      throw UnexpectedSignal(expected: "opening")
    }
    reply(start)
  }

  /// Answers where to begin and takes the call with its first request.
  func open(
    at start: StartPoint = .earliest
  ) async throws -> (ServerCall, Eventbus_V1_FetchRequest) {
    try await self.begin(at: start)
    let call = try await self.call()
    let first = try await call.request()
    guard case .opened(0) = try await self.signal() else {
      throw UnexpectedSignal(expected: "opened")
    }
    return (call, first)
  }

  /// The next call of the client, after its metadata.
  func call() async throws -> ServerCall {
    var iterator = self.calls.makeAsyncIterator()
    let call = try #require(await iterator.next())
    self.logins.sawCall(with: await call.nextMetadata())
    call.sendHeaders()
    return call
  }

  func response() async throws -> FetchResponseView {
    guard case .response(0, let response, _) = try await self.signal() else {
      throw UnexpectedSignal(expected: "response")
    }
    return response.view
  }

  func retry() async throws -> (SourceFailure, Duration) {
    guard case .retrying(0, let failure, let delay) = try await self.signal() else {
      throw UnexpectedSignal(expected: "retrying")
    }
    return (failure, delay)
  }

  /// The reason for which the stream ended; nil for a clean end.
  func ending() async throws -> SourceFailure? {
    guard case .ended(0, let failure) = try await self.signal() else {
      throw UnexpectedSignal(expected: "ended")
    }
    return failure
  }

  struct UnexpectedSignal: Error { var expected: String }
}

extension ServerCall {
  func request() async throws -> Eventbus_V1_FetchRequest {
    let bytes = try #require(await self.nextMessage())
    return try Eventbus_V1_FetchRequest(serializedBytes: bytes)
  }

  /// Sends a response of `events` events, or a keepalive.
  ///
  /// - Parameter latest: the number in `latest_replay_id`; nil for a response without one.
  func respond(events: Int, pending: Int, latest: UInt8? = 9) throws {
    let response = Eventbus_V1_FetchResponse.with {
      for number in 0..<events {
        let event = Eventbus_V1_ConsumerEvent.with {
          $0.event.id = "e-\(number)"
          $0.replayID = Data([0, UInt8(number)])
        }
        $0.events.append(event)
      }
      if let latest { $0.latestReplayID = Data([0, latest]) }
      $0.pendingNumRequested = Int32(pending)
    }
    self.send(try response.serializedBytes())
  }

  func refuse(_ status: Status.Code, _ code: ServiceErrorCode) {
    self.end(
      status, "refused. rpcId: r-1",
      trailers: ["error-code": .string("sfdc.platform.eventbus.grpc." + code.rawValue)])
  }
}

/// Tokens `t1`, `t2`, … of which a new one comes after each that is refused.
final class ScriptedCredentials: CredentialsSource {
  private struct State {
    var number = 1
    var used: [String] = []
    var reports: [String] = []
    var mayRenew = true
    var failure: PubSubError?
  }
  private let state = Lock(State())

  /// Tokens of the calls made so far.
  var used: [String] { self.state.withLock { $0.used } }
  /// What was said of tokens: `t1 worked`, `t1 refused`.
  var reports: [String] { self.state.withLock { $0.reports } }

  func fail(with error: PubSubError?) { self.state.withLock { $0.failure = error } }

  /// The next token that is refused is the last.
  func renewNoMore() { self.state.withLock { $0.mayRenew = false } }

  func sawCall(with metadata: Metadata?) {
    for token in metadata?[stringValues: "accesstoken"] ?? Metadata()[stringValues: ""] {
      self.state.withLock { $0.used.append(token) }
    }
  }

  func credentials() async throws -> Credentials {
    try self.state.withLock { state in
      if let failure = state.failure { throw failure }
      return Credentials(
        accessToken: "t\(state.number)", instanceURL: "https://org.example", tenantID: "00D")
    }
  }

  func worked(_ credentials: Credentials) async {
    self.state.withLock { $0.reports.append("\(credentials.accessToken) worked") }
  }

  func refused(_ credentials: Credentials) async -> Bool {
    self.state.withLock { state in
      state.reports.append("\(credentials.accessToken) refused")
      if credentials.accessToken == "t\(state.number)" { state.number += 1 }
      return state.mayRenew
    }
  }
}
