import EventLoop
import FoundationEssentials
import GRPCCore
import PubSubMessages
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubAPI

@Suite("Pub/Sub client") struct PubSubClientTests {
  static let credentials = Credentials(
    accessToken: "t", instanceURL: "https://org.example", tenantID: "00D000000000001")

  /// Runs `body` with a client of a server that answers as `serve` says.
  static func withClient<Result: Sendable>(
    serve: @Sendable @escaping (ServerCall) async -> Void,
    _ body: @Sendable (PubSubClient<ScriptedTransport>) async throws -> Result
  ) async throws -> Result {
    try await withGRPCClient(transport: ScriptedTransport(serve: serve)) {
      try await body(PubSubClient($0))
    }
  }

  @Test("Calls send the three headers and return the answer")
  func unary() async throws {
    let info = try await Self.withClient { call in
      let metadata = await call.nextMetadata()
      let request = await call.nextMessage().flatMap {
        try? Eventbus_V1_TopicRequest(serializedBytes: $0)
      }
      #expect(call.method == "GetTopic")
      #expect(metadata?[stringValues: "accesstoken"].first(where: { _ in true }) == "t")
      #expect(
        metadata?[stringValues: "instanceurl"].first(where: { _ in true }) == "https://org.example")
      #expect(metadata?[stringValues: "tenantid"].first(where: { _ in true }) == "00D000000000001")
      call.sendHeaders()
      let answer = Eventbus_V1_TopicInfo.with {
        $0.topicName = request?.topicName ?? ""
        $0.canSubscribe = true
        $0.schemaID = "S"
      }
      call.send((try? answer.serializedBytes()) ?? [])
      call.end(.ok)
    } _: {
      try await $0.topic(named: "/event/A__e", credentials: Self.credentials)
    }
    #expect(info.name == "/event/A__e")
    #expect(info.canSubscribe && !info.canPublish)
    #expect(info.schemaID == "S")
  }

  @Test("The error of a refused call names operation and code")
  func refused() async throws {
    let error = await #expect(throws: PubSubError.self) {
      try await Self.withClient { call in
        call.end(
          .unauthenticated, "An authentication exception occurred. rpcId: 5",
          trailers: ["error-code": "sfdc.platform.eventbus.grpc.service.auth.error"])
      } _: {
        try await $0.schema(id: "S1", credentials: Self.credentials)
      }
    }
    #expect(error?.serviceCode == .authError)
    #expect(error?.status == .unauthenticated)
    #expect(error?.message.hasPrefix("GetSchema S1: ") == true)
  }

  @Test("A subscription sends the first request, adds credit, and returns every response")
  func subscribe() async throws {
    let received = Lock<[FetchResponseView]>([])
    try await Self.withClient { call in
      _ = await call.nextMetadata()
      let first = await call.nextMessage()
      #expect(
        first == Bytes(hex: "0a0f2f6576656e742f4f726465725f5f6510021a0a000000000017905000002019"))
      call.sendHeaders()
      call.send(Bytes(hex: "0a1a0a0c0a03652d311201531a020102120a0000000000000007000020 18"))
      #expect(await call.nextMessage() == Bytes(hex: "2001"))
      call.send(Bytes(hex: "120a000000000017905e00001a03722d312064"))
      call.end(.ok)
    } _: { client in
      let credit = CreditQueue()
      try await client.subscribe(
        Subscription(
          topic: "/event/Order__e", position: .after(Bytes(hex: "00000000001790500000")), credit: 25
        ),
        credentials: Self.credentials, credit: credit
      ) { view in
        if !view.isKeepalive { credit.add(view.events.count) }
        received.withLock { $0.append(view) }
        return true
      }
    }
    #expect(received.withLock { $0.map(\.events.count) } == [1, 0])
    #expect(received.withLock { $0.map(\.pendingCredit) } == [24, 100])
  }

  @Test("A client reports requests, responses and ends of its calls")
  func traces() async throws {
    let told = Lock<[String]>([])
    let transport = ScriptedTransport { call in
      _ = await call.nextMetadata()
      _ = await call.nextMessage()
      guard call.method == "Subscribe" else {
        return call.end(.unavailable, "Later. rpcId: 7")
      }
      call.sendHeaders()
      call.send(Bytes(hex: "1a03722d312001"))
      _ = await call.nextMessage()
      call.end(.ok)
    }
    try await withGRPCClient(transport: transport) { grpc in
      let client = PubSubClient(grpc) { trace in told.withLock { $0.append(Self.words(trace)) } }
      _ = try? await client.schema(id: "S", credentials: Self.credentials)
      let credit = CreditQueue()
      try await client.subscribe(
        Subscription(topic: "/event/A__e", position: .latest, credit: 1),
        credentials: Self.credentials, credit: credit
      ) { _ in
        credit.add(2)
        return true
      }
    }
    #expect(
      told.withLock { $0 } == [
        "GetSchema S ended: unavailable 7", "/event/A__e subscribed: 1",
        "/event/A__e received: 1 r-1", "/event/A__e requested: 2",
        "Subscribe to /event/A__e ended: ok",
      ])
  }

  private static func words(_ trace: ServiceTrace) -> String {
    switch trace {
    case .subscribed(let subscription): "\(subscription.topic) subscribed: \(subscription.credit)"
    case .managedSubscribed(let subscription):
      "\(subscription.record) subscribed: \(subscription.credit)"
    case .committed(let subscription, let commit): "\(subscription.record) committed: \(commit.id)"
    case .requested(let topic, let count): "\(topic) requested: \(count)"
    case .received(let topic, let view):
      "\(topic) received: \(view.pendingCredit) \(String(decoding: view[view.rpcID], as: UTF8.self))"
    case .answered(let call, let rpcID, _): "\(call) answered: \(rpcID)"
    case .ended(let call, let error):
      "\(call) ended: \(error.map { "\($0.status) \($0.rpcID ?? "")" } ?? "ok")"
    }
  }

  @Test("A caller can end a call early")
  func leaves() async throws {
    try await Self.withClient { call in
      _ = await call.nextMetadata()
      _ = await call.nextMessage()
      call.sendHeaders()
      call.send(Bytes(hex: "2001"))
      #expect(await call.nextMessage() == nil)
    } _: { client in
      try await client.subscribe(
        Subscription(topic: "/event/A__e", position: .latest, credit: 1),
        credentials: Self.credentials, credit: CreditQueue()
      ) { _ in false }
    }
  }

  @Test("A message that is not protobuf gives an error that says so")
  func malformed() async throws {
    let error = await #expect(throws: PubSubError.self) {
      try await Self.withClient { call in
        call.sendHeaders()
        call.send([0x0a, 0x05])
        call.end(.ok)
      } _: { client in
        try await client.subscribe(
          Subscription(topic: "/event/A__e", position: .latest, credit: 1),
          credentials: Self.credentials, credit: CreditQueue()
        ) { _ in true }
      }
    }
    #expect(error?.code == .malformedResponse)
  }

  @Test("A stream that ends without a status is an error")
  func brokenOff() async throws {
    let error = await #expect(throws: PubSubError.self) {
      try await Self.withClient { call in
        call.sendHeaders()
      } _: { client in
        try await client.subscribe(
          Subscription(topic: "/event/A__e", position: .latest, credit: 1),
          credentials: Self.credentials, credit: CreditQueue()
        ) { _ in true }
      }
    }
    #expect(error?.status == .unavailable)
  }

  @Test("Credit that is added while the writer is busy is sent as one sum")
  func creditCoalesces() async {
    let queue = CreditQueue()
    queue.add(3)
    queue.add(4)
    #expect(await queue.next() == 7)
    queue.add(1)
    queue.finish()
    #expect(await queue.next() == nil)
  }
}
