import GRPCCore
import Glibc
import HTTP2Transport
import TestSupport
import Testing

/// A client that connects again and again does not grow.
@Suite("Many connections", .serialized)
struct SoakTests {
  /// `HTTP2_SOAK_RECONNECTS=1000` for the long run.
  static let reconnects =
    getenv("HTTP2_SOAK_RECONNECTS").flatMap { Int(String(cString: $0)) } ?? 100

  struct Footprint {
    /// Bytes.
    var resident: Int
    var threads: Int
    var descriptors: Int
  }

  func footprint() throws -> Footprint {
    Footprint(
      resident: try PeakMemory.resident(), threads: try PeakMemory.threads(),
      descriptors: try PeakMemory.descriptors())
  }

  func soak(_ configuration: HTTP2ClientTransport.Configuration) async throws {
    try await withClient(configuration) { client in
      for _ in 0..<20 { _ = try await client.text("Any") }
      let before = try self.footprint()
      for _ in 0..<Self.reconnects { _ = try await client.text("Any") }
      let after = try self.footprint()
      let last = try await client.text("Any")
      #expect(last == "connection \(20 + Self.reconnects + 1)")
      #expect(after.resident - before.resident < 8 << 20, "\(before) \(after)")
      // A name service thread may be about to end, a connection about to be closed.
      #expect(after.threads - before.threads <= 2, "\(before) \(after)")
      #expect(after.descriptors - before.descriptors <= 2, "\(before) \(after)")
    }
  }

  @Test("Connections that peers ended leave no descriptor or memory behind") func endedByPeer()
    async throws
  {
    let peer = try PythonServer("raw_peer.py", ["one_call"])
    try await self.soak(configuration(port: peer.port))
  }

  @Test("TLS connections through a proxy leave no descriptor or memory behind")
  func tlsThroughProxy() async throws {
    let authority = try TestAuthority()
    let identity = try authority.issue()
    let peer = try PythonServer(
      "raw_peer.py", ["one_call", identity.certificateFile, identity.keyFile])
    let proxy = try PythonServer("proxy_peer.py", ["\(peer.port)"])
    let configuration = configuration(
      port: peer.port, host: "localhost", security: .tls(caFile: authority.certificateFile)
    ) { $0.proxy = .init(host: "127.0.0.1", port: proxy.port) }
    try await self.soak(configuration)
  }
}
