import Clocks
import EventLoop
import FoundationEssentials
import GRPCCore
import PubSubAPI
import PubSubMessages
import PubSubTestSupport
import SwiftProtobuf
import TestSupport
import Testing

@testable import SalesforcePubSub

/// An `EventStream` between a test that plays the service and a consumer.
final class EventStreamHarness: Sendable {
  static let topic = "/event/A__e"

  let clock = ManualClock()
  let credentials = NumberedCredentials()
  let stream: EventStream<ScriptedTransport>
  private let calls: AsyncStream<ServerCall>
  private let retries: AsyncStream<(PubSubError, Duration)>
  private let client: GRPCClient<ScriptedTransport>

  init(
    start: Subscription.Position = .earliest, window: Int = 4,
    retry: RetrySchedule = RetrySchedule()
  ) {
    let (calls, inbox) = AsyncStream<ServerCall>.makeStream()
    let (retries, retryInbox) = AsyncStream<(PubSubError, Duration)>.makeStream()
    self.calls = calls
    self.retries = retries
    self.client = GRPCClient(
      transport: ScriptedTransport { call in
        inbox.yield(call)
        // The test answers; the call lives until the client leaves it.
        for await _ in AsyncStream<Never>.makeStream().stream {}
      })
    self.stream = EventStream(
      topic: Self.topic, start: start, window: window, client: PubSubClient(self.client),
      credentials: self.credentials,
      schemas: EventSchemas(
        directory: nil, organizationID: { "00DXX0000000001AAA" },
        fetch: { _ in #"{"type":"record","name":"A__e","fields":[]}"# }),
      retry: retry, isIdentityError: { $0 is UntrustedPeer },
      onRetry: { retryInbox.yield(($0, $1)) }, clock: self.clock.clock)
  }

  struct UntrustedPeer: Error {}

  /// Runs the stream while `body` plays the other parts.
  func run(_ body: @Sendable (EventStreamHarness) async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.client.runConnections() }
      group.addTask { await self.stream.run() }
      try await body(self)
      group.cancelAll()
      while let result = await group.nextResult() { _ = result }
    }
  }

  /// The next call of the client with its first request.
  func open() async throws -> (ServerCall, Eventbus_V1_FetchRequest) {
    var iterator = self.calls.makeAsyncIterator()
    let call = try #require(await iterator.next())
    let metadata = try #require(await call.nextMetadata())
    self.credentials.used(Array(metadata[stringValues: "accesstoken"]))
    call.sendHeaders()
    return (call, try await call.request())
  }

  /// Waits for a pause, and lets it pass.
  @discardableResult func passPause() async throws -> (error: PubSubError, delay: Duration) {
    var iterator = self.retries.makeAsyncIterator()
    let (error, delay) = try #require(await iterator.next())
    self.clock.advance(by: delay)
    return (error, delay)
  }

  /// Returns when so many events wait for the consumer.
  func waiting(_ count: Int) async {
    while self.stream.state.withLock({ $0.waiting }) != count { await Task.yield() }
  }

  /// The IDs of the next events.
  func take(_ count: Int) async throws -> [String] {
    var ids: [String] = []
    for _ in 0..<count { ids.append(try #require(await self.stream.next()).id) }
    return ids
  }
}

extension ServerCall {
  func request() async throws -> Eventbus_V1_FetchRequest {
    let bytes = try #require(await self.nextMessage())
    return try Eventbus_V1_FetchRequest(serializedBytes: bytes)
  }

  /// Sends a response with the events `e1`, `e2`, …, whose replay IDs are their numbers.
  func respond(_ numbers: ClosedRange<Int>, pending: Int) throws {
    let response = Eventbus_V1_FetchResponse.with {
      $0.events = numbers.map { number in
        .with {
          $0.event.id = "e\(number)"
          $0.event.schemaID = "S"
          $0.replayID = Data([UInt8(number)])
        }
      }
      $0.latestReplayID = Data([UInt8(numbers.upperBound)])
      $0.pendingNumRequested = Int32(pending)
    }
    self.send(try response.serializedBytes())
  }

  /// Sends a response without events.
  func respond(latest: UInt8) throws {
    let response = Eventbus_V1_FetchResponse.with {
      $0.latestReplayID = Data([latest])
      $0.pendingNumRequested = 4
    }
    self.send(try response.serializedBytes())
  }

  func refuse(_ status: Status.Code, _ code: ServiceErrorCode) {
    self.end(
      status, "refused",
      trailers: ["error-code": .string("sfdc.platform.eventbus.grpc." + code.rawValue)])
  }
}

/// Tokens `t1`, `t2`, … of which a new one comes after each that is refused.
final class NumberedCredentials: CredentialsSource {
  private struct State {
    var number = 1
    var used: [String] = []
    var mayRenew = true
  }
  private let state = Lock(State())

  /// Tokens of the calls made so far.
  var used: [String] { self.state.withLock { $0.used } }

  func used(_ tokens: [String]) { self.state.withLock { $0.used += tokens } }

  /// The next token that is refused is the last.
  func renewNoMore() { self.state.withLock { $0.mayRenew = false } }

  func credentials() async throws -> Credentials {
    Credentials(
      accessToken: self.state.withLock { "t\($0.number)" }, instanceURL: "https://org.example",
      tenantID: "00DXX0000000001AAA")
  }

  func worked(_ credentials: Credentials) async {}

  func refused(_ credentials: Credentials) async -> Bool {
    self.state.withLock { state in
      if credentials.accessToken == "t\(state.number)" { state.number += 1 }
      return state.mayRenew
    }
  }
}
