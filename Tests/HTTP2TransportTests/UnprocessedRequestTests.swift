import GRPCCore
import HTTP2Transport
import TestSupport
import Testing

/// Whether a request that failed can be sent again without doing anything twice.
@Suite("Unprocessed requests")
struct UnprocessedRequestTests {
  @Test(
    "A request counts as unprocessed only if it was refused or never sent",
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
