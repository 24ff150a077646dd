import GRPCCore
import HTTP2Transport
import PubSubAPI
import TestSupport
import Testing

/// What the transport knows of a request reaches those who decide whether it is sent again.
@Suite("Publishing without a connection") struct UnsentRequestTests {
  private static let credentials = Credentials(
    accessToken: "t", instanceURL: "https://org.example", tenantID: "00D000000000001")
  private static let events = [EventToPublish(id: "k1", schemaID: "S", payload: [1, 2])]

  /// The error of publishing to a peer of `raw_peer.py`, by a call of `Publish` and by a stream.
  private static func failures(
    scenario: String, timeout: Duration
  ) async throws -> [PubSubError?] {
    let peer = try PythonServer("raw_peer.py", [scenario])
    let transport = try HTTP2ClientTransport(
      configuration: .init(host: "127.0.0.1", port: peer.port, security: .plaintext))
    return try await withGRPCClient(transport: transport) { grpc in
      let client = PubSubClient(grpc, unaryTimeout: timeout)
      let unary = await #expect(throws: PubSubError.self) {
        try await client.publish(
          topic: "/event/A__e", events: Self.events, credentials: Self.credentials)
      }
      let stream = await #expect(throws: PubSubError.self) {
        try await client.withPublishStream(topic: "/event/A__e", credentials: Self.credentials) {
          stream in
          _ = await stream.send(Self.events)
          _ = try await stream.answer()
        }
      }
      return [unary, stream]
    }
  }

  @Test(
    "A request that waits too long for a connection or a stream is unprocessed",
    arguments: ["silent", "no_streams"])
  func waiting(scenario: String) async throws {
    let failures = try await Self.failures(scenario: scenario, timeout: .milliseconds(50))
    for failure in failures {
      #expect(failure?.isUnprocessed == true)
      #expect(failure?.status == .deadlineExceeded)
    }
  }

  @Test(
    "A request that has been sent is not unprocessed, and only the service's own status is a refusal",
    arguments: [
      ("refused:at_once", true), ("refused:after_headers", true),
      ("refused:inside_message", false), ("http_status:401", false), ("http_status:403", false),
      ("rst:8", false), ("inside_message", false), ("die", false),
    ])
  func sent(scenario: String, isRefusal: Bool) async throws {
    for failure in try await Self.failures(scenario: scenario, timeout: .seconds(60)) {
      #expect(failure?.isUnprocessed == false)
      #expect(failure?.isRefusal == isRefusal)
    }
  }
}
