import GRPCCore
import HTTP2Transport
import TestSupport
import Testing

/// A consumer that does not take messages stops the server; it does not fill our memory.
@Suite("Backpressure")
struct BackpressureTests {
  private struct Progress: Equatable {
    var sent: Int
    var cancelled: Bool
  }

  /// Messages the server has handed to its library, once it makes no more progress.
  private func settled(_ client: TestClient) async throws -> Int {
    var (last, same) = (-1, 0)
    while same < 20 {
      let text = try await client.text("Progress")
      let digits = text.drop { !$0.isNumber }.prefix { $0.isNumber }
      let sent = try #require(Int(digits))
      (last, same) = sent == last ? (last, same + 1) : (sent, 0)
    }
    return last
  }

  @Test("An unread stream stops its own server stream and no other") func unreadStream()
    async throws
  {
    let peer = try PythonServer("grpcio_peer.py")
    try await withClient(port: peer.port) { client in
      let count = try await client.stream("Blast", #"{"count": 5000, "size": 10000}"#) { response in
        var iterator = response.messages.makeAsyncIterator()
        _ = try await iterator.next()
        let sent = try await self.settled(client)
        // The window of 4 MiB, what C-core and the sockets hold, and far less than all.
        #expect(sent < 2500, "the server sent \(sent) of 5000")
        // Others still move, with messages larger than any window.
        let large = [UInt8](repeating: 1, count: 15 << 20)
        let echoed = try await client.call("Unary", large).message
        #expect(echoed.count == large.count)
        var count = 1
        while let message = try await iterator.next() {
          #expect(message.prefix(4) == [0, 0, UInt8(count >> 8), UInt8(count & 255)])
          count += 1
        }
        return count
      }
      #expect(count == 5000)
    }
  }

  @Test("A writer waits while the server does not read") func unreadingServer() async throws {
    // "Wait" never reads its request, so flow control stops us; then the stream is given up.
    let peer = try PythonServer("raw_peer.py", ["mute"])
    try await withClient(port: peer.port) { client in
      let task = Task {
        try await client.clientStreaming(
          request: StreamingClientRequest<[UInt8]> { writer in
            for index in 0..<10_000 {
              try await writer.write([UInt8](repeating: 1, count: 10_000))
              if index == 5 { withUnsafeCurrentTask { $0?.cancel() } }
            }
          }, descriptor: method("Any"), serializer: IdentitySerializer(),
          deserializer: IdentityDeserializer(), options: .defaults
        ) { try $0.message }
      }
      await #expect(throws: (any Error).self) { _ = try await task.value }
    }
  }

  @Test("A suspended writer resumes when its connection fails") func lostConnection() async throws {
    let peer = try PythonServer("raw_peer.py", ["mute"])
    try await withClient(
      configuration(port: peer.port) {
        $0.keepalive.interval = .milliseconds(20)
        $0.keepalive.timeout = .milliseconds(20)
      }
    ) { client in
      let error = try await rpcError {
        try await client.clientStreaming(
          request: StreamingClientRequest<[UInt8]> { writer in
            while true { try await writer.write([UInt8](repeating: 1, count: 10_000)) }
          }, descriptor: method("Any"), serializer: IdentitySerializer(),
          deserializer: IdentityDeserializer(), options: .defaults
        ) { try $0.message }
      }
      #expect(error.code == .unavailable)
    }
  }
}
