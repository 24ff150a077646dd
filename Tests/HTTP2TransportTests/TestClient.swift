import GRPCCore
import HTTP2Transport
import TLSStream
import TestSupport
import Testing

struct IdentitySerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) throws -> Bytes { Bytes(message) }
}

struct IdentityDeserializer: MessageDeserializer {
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> [UInt8] {
    try #require(bytes as? [UInt8])
  }
}

typealias TestClient = GRPCClient<HTTP2ClientTransport>

func method(_ name: String) -> MethodDescriptor {
  MethodDescriptor(fullyQualifiedService: "test.Peer", method: name)
}

/// A client of a server on loopback, with a pause short enough for tests.
func configuration(
  port: UInt16, host: String = "127.0.0.1",
  security: HTTP2ClientTransport.Configuration.Security = .plaintext,
  _ change: (inout HTTP2ClientTransport.Configuration) -> Void = { _ in }
) -> HTTP2ClientTransport.Configuration {
  var configuration = HTTP2ClientTransport.Configuration(
    host: host, port: port, security: security)
  configuration.backoff.initial = .milliseconds(50)
  change(&configuration)
  return configuration
}

func withClient<Result: Sendable>(
  _ configuration: HTTP2ClientTransport.Configuration,
  _ body: (TestClient) async throws -> Result
) async throws -> Result {
  let transport = try HTTP2ClientTransport(configuration: configuration)
  return try await withGRPCClient(transport: transport) { try await body($0) }
}

func withClient<Result: Sendable>(
  port: UInt16, host: String = "127.0.0.1",
  security: HTTP2ClientTransport.Configuration.Security = .plaintext,
  _ body: (TestClient) async throws -> Result
) async throws -> Result {
  try await withClient(configuration(port: port, host: host, security: security), body)
}

extension GRPCClient {
  func call(
    _ name: String, _ message: [UInt8] = [], metadata: Metadata = [:],
    options: CallOptions = .defaults
  ) async throws -> ClientResponse<[UInt8]> {
    try await self.unary(
      request: ClientRequest(message: message, metadata: metadata), descriptor: method(name),
      serializer: IdentitySerializer(), deserializer: IdentityDeserializer(), options: options
    ) { $0 }
  }

  func text(_ name: String, _ message: String = "") async throws -> String {
    String(decoding: try await self.call(name, Array(message.utf8)).message, as: UTF8.self)
  }

  func stream<Result: Sendable>(
    _ name: String, _ message: String = "", options: CallOptions = .defaults,
    _ body: @Sendable @escaping (StreamingClientResponse<[UInt8]>) async throws -> Result
  ) async throws -> Result {
    try await self.serverStreaming(
      request: ClientRequest(message: Array(message.utf8)), descriptor: method(name),
      serializer: IdentitySerializer(), deserializer: IdentityDeserializer(), options: options,
      onResponse: body)
  }

  /// All messages of a response, or the error after them.
  func messages(_ name: String) async throws -> ([[UInt8]], RPCError?) {
    try await self.stream(name) { response in
      var messages: [[UInt8]] = []
      do {
        for try await message in response.messages { messages.append(message) }
        return (messages, nil)
      } catch let error as RPCError {
        return (messages, error)
      }
    }
  }
}

/// Runs `body`, which must fail with an `RPCError`.
func rpcError(_ body: () async throws -> some Sendable) async throws -> RPCError {
  do {
    _ = try await body()
  } catch let error as RPCError {
    return error
  }
  throw ProgramFailure(message: "the RPC did not fail")
}
