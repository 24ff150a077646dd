import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

/// Whatever a call waits for, its cancellation ends it, and the transport afterwards.
@Suite("Cancellation")
struct CancellationTests {
  /// A call that would never end, cancelled sooner or later after its beginning.
  func cancelAtSeveralTimes(_ configuration: HTTP2ClientTransport.Configuration) async throws {
    for yields in [0, 1, 3, 10, 30, 100, 300, 1000] {
      try await withClient(configuration) { client in
        var options = CallOptions.defaults
        options.waitForReady = true
        let call = options
        let task = Task { try await client.call("Any", [1], options: call).message }
        for _ in 0..<yields { await Task.yield() }
        task.cancel()
        let error = await #expect(throws: (any Error).self) { _ = try await task.value }
        #expect((error as? RPCError)?.code == .cancelled || error is CancellationError, "\(yields)")
      }
    }
  }

  @Test(
    "Cancellation ends a call whose peer does not answer",
    arguments: ["silent", "mute", "stalled", "empty_data_flood"])
  func unansweredCall(scenario: String) async throws {
    let peer = try PythonServer("raw_peer.py", [scenario])
    try await self.cancelAtSeveralTimes(configuration(port: peer.port))
  }

  @Test("Cancellation ends a call that waits for the next connection attempt") func backOff()
    async throws
  {
    let port = try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
    try await self.cancelAtSeveralTimes(configuration(port: port))
  }

  @Test("Cancellation ends a call whose proxy does not answer") func silentProxy() async throws {
    let proxy = try PythonServer("proxy_peer.py", ["1", "silent"])
    try await self.cancelAtSeveralTimes(
      configuration(port: 1, host: "service.invalid") {
        $0.proxy = .init(host: "127.0.0.1", port: proxy.port)
      })
  }

  @Test("Cancellation ends a call during the TLS handshake") func handshake() async throws {
    let (peer, authority) = (try PythonServer("raw_peer.py", ["silent"]), try TestAuthority())
    try await self.cancelAtSeveralTimes(
      configuration(port: peer.port, security: .tls(caFile: authority.certificateFile)))
  }

  @Test("Cancellation ends a call made before the transport connects") func beforeConnect()
    async throws
  {
    let transport = try HTTP2ClientTransport(configuration: configuration(port: 1))
    let task = Task {
      try await transport.withStream(descriptor: method("Any"), options: .defaults) { stream, _ in
        try await stream.outbound.write(.metadata([:]))
        var parts = stream.inbound.makeAsyncIterator()
        _ = try await parts.next()
      }
    }
    task.cancel()
    let error = await #expect(throws: RPCError.self) { try await task.value }
    #expect(error?.code == .cancelled)
  }
}
