import EventLoop
import FoundationEssentials
import GRPCCore
import PubSubMessages
import SwiftProtobuf
import TestSupport
import Testing

@testable import PubSubAPI

@Suite("Publish calls") struct PublishTests {
  private static let topic = "/event/A__e"
  private static let events = [
    EventToPublish(id: "k1", schemaID: "S", payload: [1, 2]),
    EventToPublish(id: "k2", schemaID: "S", payload: []),
  ]

  private static func request(_ bytes: [UInt8]?) -> Eventbus_V1_PublishRequest? {
    bytes.flatMap { try? Eventbus_V1_PublishRequest(serializedBytes: $0) }
  }

  /// An answer that publishes everything; the replay ID is a byte.
  private static func answer(to request: Eventbus_V1_PublishRequest, _ replayID: UInt8) -> [UInt8] {
    let response = Eventbus_V1_PublishResponse.with {
      $0.schemaID = "S"
      $0.results = request.events.map { event in
        .with {
          $0.correlationKey = event.id
          $0.replayID = Data([replayID])
        }
      }
    }
    return (try? response.serializedBytes()) ?? []
  }

  @Test("A request carries topic, events and credentials; the answer has a result for each event")
  func unary() async throws {
    let answer = try await PubSubClientTests.withClient { call in
      let metadata = await call.nextMetadata()
      #expect(metadata?[stringValues: "accesstoken"].first(where: { _ in true }) == "t")
      let request = Self.request(await call.nextMessage())
      #expect(call.method == "Publish")
      #expect(request?.topicName == Self.topic)
      #expect(request?.events.map(\.id) == ["k1", "k2"])
      #expect(request?.events.map(\.schemaID) == ["S", "S"])
      #expect(request?.events.map { Array($0.payload) } == [[1, 2], []])
      call.sendHeaders()
      // The golden response of the wire format: one published, one refused.
      call.send(
        Bytes(
          hex: "0a100a0a000000000000000800001a026b31"
            + "0a0d1207080112036261641a026b321201531a0172"))
      call.end(.ok)
    } _: {
      try await $0.publish(
        topic: Self.topic, events: Self.events, credentials: PubSubClientTests.credentials)
    }
    #expect(
      answer.results == [
        .published(replayID: Bytes(hex: "00000000000000080000")), .refused(message: "bad"),
      ])
    #expect(answer.schemaID == "S" && answer.rpcID == "r")
  }

  @Test(
    "An answer that does not fit the request is an error",
    arguments: [
      ("one result for two events", ["k1"], 10, nil as String?),
      ("three results", ["k1", "k2", "k3"], 10, nil), ("another order", ["k2", "k1"], 10, nil),
      ("a key that was not sent", ["k1", "x"], 10, nil), ("no key", ["k1", ""], 10, nil),
      ("neither replay ID nor error", ["k1", "k2"], 0, nil),
      ("both", ["k1", "k2"], 10, "bad"), ("a replay ID without end", ["k1", "k2"], 1025, nil),
    ])
  func malformed(name: String, keys: [String], replayBytes: Int, error: String?) async throws {
    let response = Eventbus_V1_PublishResponse.with {
      $0.results = keys.map { key in
        .with {
          $0.correlationKey = key
          $0.replayID = Data(repeating: 1, count: replayBytes)
          if let error { $0.error = .with { $0.msg = error } }
        }
      }
    }
    let bytes: [UInt8] = try response.serializedBytes()
    let failure = await #expect(throws: PubSubError.self) {
      try await PubSubClientTests.withClient { call in
        _ = await call.nextMetadata()
        _ = await call.nextMessage()
        call.sendHeaders()
        call.send(bytes)
        call.end(.ok)
      } _: {
        try await $0.publish(
          topic: Self.topic, events: Self.events, credentials: PubSubClientTests.credentials)
      }
    }
    #expect(failure?.code == .malformedResponse, "\(name)")
  }

  @Test(
    "The service's message about an event is kept up to a number of bytes, in whole scalars",
    arguments: [
      String(repeating: "x", count: 100_000), "a" + String(repeating: "\u{301}", count: 100_000),
    ])
  func longMessage(message: String) async throws {
    let answer = try await PubSubClientTests.withClient { call in
      _ = await call.nextMetadata()
      let request = Self.request(await call.nextMessage())
      let response = Eventbus_V1_PublishResponse.with {
        $0.results = (request?.events ?? []).map { event in
          .with {
            $0.correlationKey = event.id
            $0.error = .with { $0.msg = message }
          }
        }
      }
      call.sendHeaders()
      call.send((try? response.serializedBytes()) ?? [])
      call.end(.ok)
    } _: {
      try await $0.publish(
        topic: Self.topic, events: Self.events, credentials: PubSubClientTests.credentials)
    }
    let beginning = String(message.unicodeScalars.prefix(message.first == "x" ? 4096 : 2048))
    #expect(answer.results == [1, 2].map { _ in .refused(message: beginning) })
  }

  @Test("An error says whether the service has certainly not processed the request")
  func unprocessed() async throws {
    for isUnprocessed in [true, false] {
      let failure = await #expect(throws: PubSubError.self) {
        try await PubSubClientTests.withClient { call in
          _ = await call.nextMetadata()
          call.fail(
            RPCError(
              code: .unavailable, message: "gone",
              metadata: isUnprocessed ? [":unprocessed": ""] : [:]))
        } _: {
          try await $0.publish(
            topic: Self.topic, events: Self.events, credentials: PubSubClientTests.credentials)
        }
      }
      #expect(failure?.isUnprocessed == isUnprocessed)
    }
  }

  @Test(
    "The error of a call that fails after its answer says that the answer was received",
    arguments: [(0, Status.Code.unauthenticated), (1, .unauthenticated), (2, .ok), (0, .ok)])
  func failureAfterAnswer(messages: Int, status: Status.Code) async throws {
    let failure = await #expect(throws: PubSubError.self) {
      try await PubSubClientTests.withClient { call in
        _ = await call.nextMetadata()
        let request = Self.request(await call.nextMessage())
        call.sendHeaders()
        for _ in 0..<messages { call.send(Self.answer(to: request ?? .init(), 1)) }
        call.end(status)
      } _: {
        try await $0.publish(
          topic: Self.topic, events: Self.events, credentials: PubSubClientTests.credentials)
      }
    }
    #expect(failure?.status == status)
    #expect(failure?.hasResponse == (messages > 0))
    if status == .ok { #expect(failure?.code == .malformedResponse) }
  }

  // MARK: Streams

  @Test("Requests of a stream are answered in order, several at a time")
  func stream() async throws {
    let answers = try await PubSubClientTests.withClient { call in
      #expect(call.method == "PublishStream")
      _ = await call.nextMetadata()
      var requests: [Eventbus_V1_PublishRequest] = []
      for _ in 0..<2 {
        if let request = Self.request(await call.nextMessage()) { requests.append(request) }
      }
      call.sendHeaders()
      for (index, request) in requests.enumerated() {
        #expect(request.topicName == Self.topic)
        call.send(Self.answer(to: request, UInt8(index + 1)))
      }
      #expect(await call.nextMessage() == nil)
      call.end(.ok)
    } _: {
      try await $0.withPublishStream(
        topic: Self.topic, credentials: PubSubClientTests.credentials
      ) { stream in
        _ = await stream.send([Self.events[0]])
        _ = await stream.send([Self.events[1]])
        let answers = [try await stream.answer(), try await stream.answer()]
        return answers
      }
    }
    #expect(
      answers.map(\.results) == [[.published(replayID: [1])], [.published(replayID: [2])]])
  }

  @Test("The error for a refused stream gives the reason and says that nothing was answered")
  func refusedStream() async throws {
    let transport = ScriptedTransport { call in
      _ = await call.nextMetadata()
      _ = await call.nextMessage()
      call.end(
        .unauthenticated, "An authentication exception occurred. rpcId: 5",
        trailers: ["error-code": "sfdc.platform.eventbus.grpc.service.auth.error"])
    }
    let failure = await #expect(throws: PubSubError.self) {
      try await withGRPCClient(transport: transport) { grpc in
        // Whoever waits for an answer hears of the end at once, not when the time is over.
        let client = PubSubClient(grpc, unaryTimeout: .seconds(3600))
        try await client.withPublishStream(
          topic: Self.topic, credentials: PubSubClientTests.credentials
        ) { stream in
          _ = await stream.send(Self.events)
          _ = try await stream.answer()
        }
      }
    }
    #expect(failure?.serviceCode == .authError)
    #expect(failure?.hasResponse == false)
  }

  @Test("Answers received before a call ended in the middle of a request are not lost")
  func endInRequest() async throws {
    let answers = Lock<[PublishAnswer]>([])
    let transport = ScriptedTransport(takenMessages: 1) { call in
      _ = await call.nextMetadata()
      let request = Self.request(await call.nextMessage())
      await call.waitUntilFull()
      call.sendHeaders()
      call.send(Self.answer(to: request ?? .init(), 1))
      call.end(.unauthenticated)
    }
    let failure = await #expect(throws: PubSubError.self) {
      try await withGRPCClient(transport: transport) { grpc in
        try await PubSubClient(grpc).withPublishStream(
          topic: Self.topic, credentials: PubSubClientTests.credentials
        ) { stream in
          for event in Self.events { #expect(await stream.send([event])) }
          while true {
            let answer = try await stream.answer()
            answers.withLock { $0.append(answer) }
          }
        }
      }
    }
    #expect(answers.withLock { $0.map(\.results) } == [[.published(replayID: [1])]])
    #expect(failure?.status == .unauthenticated)
    #expect(failure?.hasResponse == true)
  }

  @Test("A request that the service does not take in time ends the stream")
  func noRoom() async throws {
    let transport = ScriptedTransport(takenMessages: 0) { call in
      while await call.nextPart() != nil {}
    }
    let failure = await #expect(throws: PubSubError.self) {
      try await withGRPCClient(transport: transport) { grpc in
        try await PubSubClient(grpc, unaryTimeout: .milliseconds(1)).withPublishStream(
          topic: Self.topic, credentials: PubSubClientTests.credentials
        ) { stream in
          #expect(await stream.send(Self.events))
          #expect(await !stream.send(Self.events))
          _ = try await stream.answer()
        }
      }
    }
    #expect(failure?.code == .idle)
  }

  @Test("A stream that the service ends leaves requests without an answer")
  func endedStream() async throws {
    let wasSentAfterEnd = Lock(true)
    let failure = await #expect(throws: PubSubError.self) {
      try await PubSubClientTests.withClient { call in
        _ = await call.nextMetadata()
        let request = Self.request(await call.nextMessage())
        _ = await call.nextMessage()
        call.sendHeaders()
        call.send(Self.answer(to: request ?? .init(), 1))
        call.end(.ok)
      } _: {
        try await $0.withPublishStream(
          topic: Self.topic, credentials: PubSubClientTests.credentials
        ) { stream in
          _ = await stream.send([Self.events[0]])
          _ = await stream.send([Self.events[1]])
          _ = try await stream.answer()
          do {
            _ = try await stream.answer()
          } catch {
            // What comes after the end is certainly not sent.
            let isSent = await stream.send([Self.events[0]])
            wasSentAfterEnd.withLock { $0 = isSent }
            throw error
          }
        }
      }
    }
    #expect(failure?.code == .endOfStream)
    #expect(!wasSentAfterEnd.withLock { $0 })
  }

  @Test("An answer on a stream to the wrong request, or to none, is an error")
  func malformedStream() async throws {
    for keys in [["x"], ["k1", "k2"]] {
      let failure = await #expect(throws: PubSubError.self) {
        try await PubSubClientTests.withClient { call in
          _ = await call.nextMetadata()
          _ = await call.nextMessage()
          call.sendHeaders()
          let request = Eventbus_V1_PublishRequest(
            topic: "", events: keys.map { EventToPublish(id: $0, schemaID: "", payload: []) })
          call.send(Self.answer(to: request, 1))
          _ = await call.nextMessage()
        } _: {
          try await $0.withPublishStream(
            topic: Self.topic, credentials: PubSubClientTests.credentials
          ) { stream in
            _ = await stream.send([Self.events[0]])
            _ = try await stream.answer()
          }
        }
      }
      #expect(failure?.code == .malformedResponse)
    }
  }

  @Test("A request that is not answered in time is an error, whatever the stream does")
  func noAnswer() async throws {
    let transport = ScriptedTransport { call in
      _ = await call.nextMetadata()
      while await call.nextMessage() != nil {}
    }
    let failure = await #expect(throws: PubSubError.self) {
      try await withGRPCClient(transport: transport) { grpc in
        try await PubSubClient(grpc, unaryTimeout: .milliseconds(1)).withPublishStream(
          topic: Self.topic, credentials: PubSubClientTests.credentials
        ) { stream in
          _ = await stream.send(Self.events)
          _ = try await stream.answer()
        }
      }
    }
    #expect(failure?.code == .idle)
  }

  @Test("A response with more results than the limit is refused before they are read")
  func manyResults() throws {
    func deserialize(_ count: Int, prefix: [UInt8] = []) throws -> Int {
      let bytes = prefix + (0..<count).flatMap { _ in [0x0A, 0] as [UInt8] }
      return try PublishResponseDeserializer().deserialize(bytes).results.count
    }
    #expect(try deserialize(16_384) == 16_384)
    // Another field before them.
    for prefix in [[], [0x12, 1, 0x53], [0x20, 1]] as [[UInt8]] {
      let error = #expect(throws: RPCError.self) { try deserialize(16_385, prefix: prefix) }
      #expect(error?.code == .dataLoss)
    }
  }
}
