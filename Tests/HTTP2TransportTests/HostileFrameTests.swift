import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// Peers that know HTTP/2 and abuse it: a clear error, or the right answer in spite of it, within
/// bounded memory.
@Suite("Hostile frames", .serialized)
struct HostileFrameTests {
  /// Above what a connection with the limits below may hold, and far below what the peers send.
  static let maxGrowth = 64 << 20

  func peer(_ scenario: String) throws -> PythonServer {
    try PythonServer("raw_peer.py", [scenario])
  }

  func configuration(_ peer: PythonServer) -> HTTP2ClientTransport.Configuration {
    HTTP2TransportTests.configuration(port: peer.port) {
      $0.maxMessageBytes = 1 << 20
      $0.backoff.initial = .milliseconds(1)
      $0.backoff.maximum = .milliseconds(1)
    }
  }

  /// What one call gets: a text, or the error.
  func outcome(
    _ scenario: String, timeout: Duration? = nil
  ) async throws -> Result<String, RPCError> {
    let peer = try self.peer(scenario)
    var options = CallOptions.defaults
    options.timeout = timeout
    let call = options
    var outcome: Result<String, RPCError>?
    let growth = try await PeakMemory.growth {
      outcome = try await withClient(self.configuration(peer)) { client in
        do {
          let message = try await client.call("Any", options: call).message
          return .success(String(decoding: message, as: UTF8.self))
        } catch let error as RPCError {
          return .failure(error)
        }
      }
    }
    #expect(growth < Self.maxGrowth, "\(scenario): \(growth >> 20) MiB")
    return try #require(outcome)
  }

  @Test(
    "Unusual frames that RFC 9113 permits are accepted",
    arguments: [
      "drip", "unknown_frames", "interim", "data_after_end", "trailers_after_end",
    ])
  func tolerated(scenario: String) async throws {
    #expect(try await self.outcome(scenario).get() == "fine")
  }

  @Test(
    "Frames that RFC 9113 forbids are an error",
    arguments: [
      ("open_trailers", RPCError.Code.internalError, "PROTOCOL_ERROR"),
      ("data_after_trailers", .internalError, "PROTOCOL_ERROR"),
      ("oversized_frame", .unavailable, "lost"), ("push", .unavailable, "lost"),
      ("idle_stream", .unavailable, "lost"), ("even_stream", .unavailable, "lost"),
      ("no_increment", .unavailable, "lost"), ("too_much_window", .unavailable, "lost"),
      ("bad_setting", .unavailable, "lost"), ("many_settings", .unavailable, "lost"),
      ("bad_padding", .unavailable, "lost"), ("bad_block", .unavailable, "lost"),
      ("upper_case", .internalError, "PROTOCOL_ERROR"),
      ("no_status", .internalError, "PROTOCOL_ERROR"),
      ("hpack_bomb", .resourceExhausted, "65536"),
      ("gzip_damaged", .internalError, "damaged"), ("gzip_empty", .internalError, "damaged"),
      ("snappy", .internalError, "snappy"), ("gzip_bomb:1048577", .resourceExhausted, "1048576"),
      ("gzip_bomb:1000000000", .resourceExhausted, "1048576"),
    ])
  func forbidden(scenario: String, code: RPCError.Code, text: String) async throws {
    let outcome = try await self.outcome(scenario)
    let error = try #require(throws: RPCError.self) { try outcome.get() }
    #expect(error.code == code, "\(error)")
    #expect(error.message.contains(text), "\(error)")
  }

  /// Without end: the peer goes on until the connection breaks. What keeps every rule is ended by
  /// the deadline of the call.
  @Test(
    "A flood of frames ends the connection",
    arguments: [
      ("settings_flood", [RPCError.Code.unavailable, .deadlineExceeded]),
      ("ping_flood", [.unavailable, .deadlineExceeded]),
      ("continuation_flood", [.unavailable, .resourceExhausted]),
      ("empty_continuation_flood", [.unavailable, .deadlineExceeded]),
      ("endless_message", [.resourceExhausted]), ("empty_data_flood", [.deadlineExceeded]),
      ("interim_flood", [.deadlineExceeded]),
      ("stalled", [.deadlineExceeded]), ("mute", [.deadlineExceeded]),
    ])
  func floods(scenario: String, codes: [RPCError.Code]) async throws {
    let outcome = try await self.outcome(scenario, timeout: .milliseconds(500))
    let error = try #require(throws: RPCError.self) { try outcome.get() }
    #expect(codes.contains(error.code), "\(error)")
  }

  /// The peer sends more than the windows allow, on a stream that nobody reads.
  @Test("Data beyond the flow-control window ends the stream") func windowOverrun() async throws {
    let peer = try self.peer("window_overrun")
    let growth = try await PeakMemory.growth {
      try await withClient(self.configuration(peer)) { client in
        try await client.stream("Any") { response in
          var messages = response.messages.makeAsyncIterator()
          _ = try await messages.next()
          // Meanwhile the peer goes on.
          var options = CallOptions.defaults
          options.timeout = .milliseconds(500)
          let call = options
          let other = try await rpcError { try await client.call("Any", options: call).message }
          #expect(other.code == .deadlineExceeded)
          let error = await #expect(throws: RPCError.self) {
            while try await messages.next() != nil {}
          }
          #expect(error?.message.contains("FLOW_CONTROL_ERROR") == true)
        }
      }
    }
    #expect(growth < Self.maxGrowth, "\(growth >> 20) MiB")
  }

  /// A hundred messages that each grow a thousandfold lie there unread: they grow when taken.
  @Test("Many unread compressed messages take the memory of one inflated message")
  func compressedMessages() async throws {
    let peer = try self.peer("gzip_bombs:\(16 << 20)")
    let growth = try await PeakMemory.growth {
      try await withClient(
        HTTP2TransportTests.configuration(port: peer.port) { $0.maxMessageBytes = 16 << 20 }
      ) { client in
        let sizes = try await client.stream("Any") { response in
          var sizes: Set<Int> = []
          var count = 0
          for try await message in response.messages {
            sizes.insert(message.count)
            count += 1
          }
          #expect(count == 100)
          return sizes
        }
        #expect(sizes == [16 << 20])
      }
    }
    #expect(growth < 3 * Self.maxGrowth, "\(growth >> 20) MiB")
  }

  @Test("A connection that ends at any byte is an error") func cutConnection() async throws {
    let peer = try self.peer("cut")
    try await withClient(self.configuration(peer)) { client in
      var failures = 0
      while failures < 1000 {
        do {
          let text = try await client.text("Any")
          #expect(text == "fine")
          break
        } catch let error as RPCError {
          #expect([.unavailable, .internalError].contains(error.code), "\(error)")
          failures += 1
        }
      }
      // 9 bytes of SETTINGS, 9 of its acknowledgement, 17 of a PING, 95 of an answer: each but the
      // last is followed by an end at least once. Requests not answered are sent again by themselves.
      #expect((50..<1000).contains(failures))
    }
  }

  /// A PING too many ends a connection, not the call.
  @Test("A call succeeds on a new connection after ENHANCE_YOUR_CALM") func enhanceYourCalm()
    async throws
  {
    let peer = try self.peer("calm")
    try await withClient(self.configuration(peer)) { client in
      var options = CallOptions.defaults
      options.waitForReady = true
      let message = try await client.call("Any", options: options).message
      #expect(message == Array("fine".utf8))
    }
  }
}
