import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// Against C-core, which nobody here wrote.
@Suite("Calls to a grpcio server")
struct GRPCIOTests {
  static let shared = Result { try PythonServer("grpcio_peer.py") }
  let peer: PythonServer

  init() throws { self.peer = try Self.shared.get() }

  func withPeer<Result: Sendable>(
    _ body: (TestClient) async throws -> Result
  ) async throws -> Result {
    try await withClient(port: self.peer.port) { try await body($0) }
  }

  @Test("A unary call returns the message and its metadata") func unary() async throws {
    let response = try await self.withPeer { client in
      try await client.call(
        "Unary", [1, 2, 3], metadata: ["x-text": "a b", "x-text": "c", "x-raw-bin": [0, 255, 44]])
    }
    #expect(try response.message == [1, 2, 3])
    #expect(Array(response.metadata[stringValues: "x-text"]) == ["a b", "c"])
    #expect(Array(response.metadata[binaryValues: "x-raw-bin"]) == [[0, 255, 44]])
    #expect(Array(response.trailingMetadata[stringValues: "x-trailer"]) == ["one", "two"])
    #expect(Array(response.trailingMetadata[binaryValues: "x-raw-bin"]) == [[0, 255, 44]])
  }

  @Test(
    "Messages of every size are returned unchanged",
    arguments: [0, 1, 16_379, 16_384, 65_535, 1 << 20, 15 << 20])
  func messageSizes(size: Int) async throws {
    let message = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let echoed = try await self.withPeer { try await $0.call("Unary", message).message }
    #expect(echoed == message)
  }

  @Test("A message above the limit is refused, and the connection stays usable") func messageLimit()
    async throws
  {
    try await withClient(configuration(port: self.peer.port) { $0.maxMessageBytes = 1000 }) {
      client in
      let error = try await rpcError {
        try await client.call("Unary", [UInt8](repeating: 1, count: 1001)).message
      }
      #expect(error.code == .resourceExhausted)
      #expect(error.message.contains("1001"))
      #expect(
        try await client.call("Unary", [UInt8](repeating: 1, count: 1000)).message.count == 1000)
    }
  }

  @Test("Each response arrives before the next request is sent") func pingPong() async throws {
    let echoed = try await self.withPeer { client in
      let (answers, gate) = AsyncStream<[UInt8]>.makeStream()
      return try await client.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          var iterator = answers.makeAsyncIterator()
          for index: UInt8 in 0..<100 {
            try await writer.write([index])
            let answer = await iterator.next()
            #expect(answer == [index])
          }
        }, descriptor: method("Bidi"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        var count = 0
        for try await message in response.messages {
          gate.yield(message)
          count += 1
        }
        return count
      }
    }
    #expect(echoed == 100)
  }

  @Test("Messages larger than the window pass in both directions") func largeMessages() async throws
  {
    let sizes = [15 << 20, 1, 15 << 20, 6 << 20]
    let received = try await self.withPeer { client in
      try await client.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          for size in sizes { try await writer.write([UInt8](repeating: 7, count: size)) }
        }, descriptor: method("Bidi"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { response in
        var received: [Int] = []
        for try await message in response.messages { received.append(message.count) }
        return received
      }
    }
    #expect(received == sizes)
  }

  @Test("A stream of requests gets one response") func clientStreaming() async throws {
    let answer = try await self.withPeer { client in
      try await client.clientStreaming(
        request: StreamingClientRequest { writer in
          for _ in 0..<2000 { try await writer.write([UInt8](repeating: 1, count: 1000)) }
        }, descriptor: method("Collect"), serializer: IdentitySerializer(),
        deserializer: IdentityDeserializer(), options: .defaults
      ) { String(decoding: try $0.message, as: UTF8.self) }
    }
    #expect(answer == #"{"count": 2000, "total": 2000000}"#)
  }

  @Test("A status is received with its message and metadata") func status() async throws {
    let message = "größer 100% – \u{1F600}\n\"x\""
    let order = #"{"code": 9, "message": "größer 100% – \#u{1F600}\n\"x\""}"#
    try await self.withPeer { client in
      let error = try await rpcError { try await client.call("Abort", Array(order.utf8)).message }
      #expect(error.code == .failedPrecondition)
      #expect(error.message == message)
      #expect(Array(error.metadata[stringValues: "x-reason"]) == ["because"])
      #expect(Array(error.metadata[binaryValues: "x-detail-bin"]) == [[1, 2, 3]])
    }
  }

  @Test("Every status code is mapped", arguments: 1...16) func statusCodes(code: Int) async throws {
    try await self.withPeer { client in
      let error = try await rpcError {
        try await client.text("Abort", #"{"code": \#(code), "message": "m"}"#)
      }
      #expect(error.code.rawValue == code)
    }
  }

  @Test("Messages that precede an error are delivered first") func messagesBeforeError()
    async throws
  {
    try await self.withPeer { client in
      try await client.stream("AbortLater", #"{"code": 14, "message": "later"}"#) { response in
        var iterator = response.messages.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first == Array("first".utf8))
        let error = await #expect(throws: RPCError.self) { _ = try await iterator.next() }
        #expect(error?.code == .unavailable)
      }
    }
  }

  @Test("An unknown method is reported as unimplemented") func unknownMethod() async throws {
    try await self.withPeer { client in
      let error = try await rpcError { try await client.text("Missing") }
      #expect(error.code == .unimplemented)
    }
  }

  @Test("The deadline is sent to the server and enforced by the client") func deadline()
    async throws
  {
    try await self.withPeer { client in
      var options = CallOptions.defaults
      options.timeout = .seconds(100)
      let answer = try await client.call("Deadline", options: options).message
      let remaining = String(decoding: answer, as: UTF8.self)
      #expect(remaining.contains(": 99.") || remaining.contains(": 100."))

      options.timeout = .milliseconds(50)
      let error = try await rpcError {
        try await client.stream("Wait", options: options) { response in
          for try await _ in response.messages {}
        }
      }
      #expect(error.code == .deadlineExceeded)
      #expect(try await client.text("WaitCancelled") == "yes")
    }
  }

  @Test("A cancelled stream leaves the connection usable") func cancelledStream() async throws {
    try await self.withPeer { client in
      let task = Task {
        try await client.stream("Wait") { response in
          for try await _ in response.messages { withUnsafeCurrentTask { $0?.cancel() } }
        }
      }
      await #expect(throws: (any Error).self) { try await task.value }
      let (seen, echoed) = try await (client.text("WaitCancelled"), client.text("Unary", "x"))
      #expect((seen, echoed) == ("yes", "x"))
    }
  }

  @Test("Leaving a response early cancels the call") func leavingEarly() async throws {
    try await self.withPeer { client in
      let first = try await client.stream("Wait") { response in
        try await response.messages.first { _ in true }
      }
      #expect(first == Array("begun".utf8))
      #expect(try await client.text("WaitCancelled") == "yes")
    }
  }

  @Test("Many streams share one connection") func manyStreams() async throws {
    try await self.withPeer { client in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<200 {
          group.addTask {
            let echoed = try await client.text("Unary", "call \(index)")
            #expect(echoed == "call \(index)")
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("A task on the event loop can read a response") func taskOnLoop() async throws {
    let transport = try HTTP2ClientTransport(
      configuration: .init(host: "127.0.0.1", port: self.peer.port, security: .plaintext))
    try await withGRPCClient(transport: transport) { client in
      try await withTaskExecutorPreference(transport.executor) {
        let order = #"{"count": 500, "size": 40000}"#
        let count = try await client.stream("Blast", order) { response in
          try await response.messages.reduce(into: 0) { count, _ in count += 1 }
        }
        #expect(count == 500)
      }
    }
  }
}
