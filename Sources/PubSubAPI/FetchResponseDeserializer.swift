internal import GRPCCore

/// Reads the messages of `Subscribe` and `ManagedSubscribe` without SwiftProtobuf: about 30 times less work per event.
struct FetchResponseDeserializer: MessageDeserializer {
  /// For `ManagedSubscribe`.
  var isManaged = false

  func deserialize<Bytes: GRPCContiguousBytes>(_ serialized: Bytes) throws -> FetchResponseView {
    // A transport whose bytes are an array hands them over as they are.
    let bytes = serialized as? [UInt8] ?? serialized.withUnsafeBytes { [UInt8]($0) }
    do {
      let view = try FetchResponseView(parsing: bytes, isManaged: self.isManaged)
      try view.checkReplayIDs()
      return view
    } catch {
      throw RPCError(code: .dataLoss, message: "\(error)", cause: error)
    }
  }
}
