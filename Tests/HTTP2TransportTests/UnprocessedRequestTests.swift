import GRPCCore
import HTTP2Transport
import TestSupport
import Testing

/// Whether a request that failed can be sent again without doing anything twice.
@Suite("Unprocessed requests")
struct UnprocessedRequestTests {
  @Test(
    "A request is treated as unprocessed only if it was refused or never sent",
    arguments: [
      // Refused each time, or never sent.
      ("refuse_always", true), ("http1", true), ("hang_up", true), ("silent", true),
      // Sent on a connection that was up.
      ("garbage", false), ("rst:0", false), ("rst:2", false), ("rst:8", false), ("rst:11", false),
      ("rst:12", false), ("no_trailers", false), ("die", false), ("http_status:503", false),
      ("html", false), ("data_first", false), ("inside_message", false),
    ])
  func refusedOrUnsent(
    scenario: String, isUnprocessed: Bool
  ) async throws {
    let peer = try PythonServer("raw_peer.py", [scenario])
    try await withClient(configuration(port: peer.port) { $0.connectTimeout = .milliseconds(300) })
    { client in
      let error = try await rpcError { try await client.text("Any", "request") }
      #expect(error.isUnprocessed == isUnprocessed, "\(error)")
    }
  }

  @Test("A failed connection attempt leaves requests unprocessed") func noConnection() async throws
  {
    // Port 1 of loopback has no server.
    try await withClient(port: 1) { client in
      let error = try await rpcError { try await client.text("Any", "request") }
      #expect(error.isUnprocessed && error.code == .unavailable, "\(error)")
    }
  }

  @Test(
    "A call that is cancelled while it waits for a connection or a stream is unprocessed",
    arguments: ["silent", "no_streams"])
  func cancelledUnsent(scenario: String) async throws {
    let peer = try PythonServer("raw_peer.py", [scenario])
    for yields in [1, 10, 100, 1000, 10_000] {
      try await withClient(port: peer.port) { client in
        let task = Task { try await client.text("Any", "request") }
        for _ in 0..<yields { await Task.yield() }
        task.cancel()
        let error = try await rpcError { try await task.value }
        #expect(error.isUnprocessed && error.code == .cancelled, "\(yields): \(error)")
      }
    }
  }

  @Test(
    "A call that is cancelled after the server has begun to answer is not unprocessed",
    arguments: ["stalled", "mute"])
  func cancelledInResponse(scenario: String) async throws {
    let peer = try PythonServer("raw_peer.py", [scenario])
    try await withClient(port: peer.port) { client in
      let error = try await rpcError {
        try await client.stream("Any", "request") { response in
          withUnsafeCurrentTask { $0?.cancel() }
          for try await _ in response.messages {}
        }
      }
      #expect(!error.isUnprocessed && error.code == .cancelled, "\(error)")
    }
  }

  @Test(
    "Only the server's own status, before any byte of a message, is a refusal",
    arguments: [
      ("refused:at_once", true), ("refused:after_headers", true), ("trailers_only", true),
      ("refused:inside_message", false), ("http_status:401", false), ("http_status:403", false),
      ("http_status:404", false), ("html", false), ("rst:0", false), ("rst:8", false),
      ("refuse_always", false), ("die", false), ("no_trailers", false), ("silent", false),
    ])
  func refusals(scenario: String, isRefusal: Bool) async throws {
    let peer = try PythonServer("raw_peer.py", [scenario])
    try await withClient(configuration(port: peer.port) { $0.connectTimeout = .milliseconds(300) })
    { client in
      let error = try await rpcError { try await client.text("Any", "request") }
      #expect(error.isRefusal == isRefusal, "\(error)")
    }
  }

  /// Names with a colon or capitals are no names of HTTP/2 trailers.
  @Test(
    "A server's metadata cannot mark a request as unprocessed",
    arguments: [":unprocessed", ":Unprocessed"])
  func falseClaim(name: String) async throws {
    let peer = try PythonServer("raw_peer.py", ["forged_mark:\(name)"])
    try await withClient(port: peer.port) { client in
      let error = try await rpcError { try await client.text("Any", "request") }
      #expect(!error.isUnprocessed, "\(error)")
    }
  }
}
