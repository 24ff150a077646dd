// Sends texts to a server that echoes them, over HTTP/2 and TLS: grpc-over-tls HOST PORT CA-FILE TEXT…
import Foundation
import GRPCCore
import HTTP2Transport

/// Messages are plain UTF-8 here; generated stubs bring serializers of their own.
struct TextSerializer: MessageSerializer, MessageDeserializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ text: String) throws -> Bytes { Bytes(text.utf8) }
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> String {
    bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }
}

func fail(_ code: Int32, _ message: String) -> Never {
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(code)
}

let arguments = CommandLine.arguments
guard arguments.count > 4, let port = UInt16(arguments[2])
else { fail(64, "usage: grpc-over-tls HOST PORT CA-FILE TEXT…") }
let configuration = HTTP2ClientTransport.Configuration(
  host: arguments[1], port: port, security: .tls(caFile: arguments[3]))
let transport = try HTTP2ClientTransport(configuration: configuration)
do {
  try await withGRPCClient(transport: transport) { client in
    for text in arguments[4...] {
      let answer = try await client.unary(
        request: ClientRequest(message: text),
        descriptor: MethodDescriptor(fullyQualifiedService: "test.Peer", method: "Unary"),
        serializer: TextSerializer(), deserializer: TextSerializer(), options: .defaults
      ) { try $0.message }
      print(answer)
    }
  }
} catch let error as RPCError {
  fail(69, "grpc-over-tls: \(error.code): \(error.message)")
}
