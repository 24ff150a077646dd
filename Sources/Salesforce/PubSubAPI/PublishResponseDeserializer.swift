internal import GRPCCore
internal import GRPCProtobuf
internal import PubSubMessages

/// Reads answers of `Publish` and `PublishStream`. A result may be two bytes long and takes fifty times as much in
/// memory, so their number is limited before they are read.
struct PublishResponseDeserializer: MessageDeserializer {
  /// A request has 200 events at most.
  private static let maxResults = 16_384

  func deserialize<Bytes: GRPCContiguousBytes>(
    _ serialized: Bytes
  ) throws -> Eventbus_V1_PublishResponse {
    let count = serialized.withUnsafeBytes { bytes in
      FetchResponseParser.messageCount(of: bytes.bindMemory(to: UInt8.self).span)
    }
    guard count <= Self.maxResults else {
      throw RPCError(
        code: .dataLoss, message: "more than \(Self.maxResults) results in one response")
    }
    return try ProtobufDeserializer<Eventbus_V1_PublishResponse>().deserialize(serialized)
  }
}
