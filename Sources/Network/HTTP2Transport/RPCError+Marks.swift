public import GRPCCore

/// What this transport knows of a failed RPC beyond its status, as marks in the metadata of the error.
///
/// No server can send them: HTTP/2 allows no name that begins with a colon in trailers (RFC 9113
/// section 8.1).
extension RPCError {
  private static let unprocessedKey = ":unprocessed"
  private static let refusalKey = ":refusal"

  /// Whether the server has certainly not looked at the request, so that sending it again does nothing
  /// twice: the connection attempt failed, nothing of the request's messages has left, or the server
  /// refused it (REFUSED_STREAM, or GOAWAY with a lower last stream).
  public var isUnprocessed: Bool { self.has(Self.unprocessedKey) }

  /// Whether the server itself ended the RPC with this status (`grpc-status`) and had sent no byte of a
  /// message before. False for a status that the transport has concluded from something else, such as
  /// an HTTP status or a reset.
  public var isRefusal: Bool { self.has(Self.refusalKey) }

  private func has(_ key: String) -> Bool {
    self.metadata[stringValues: key].contains { _ in true }
  }

  /// The same error of a request that the server has certainly not looked at.
  func unprocessed() -> RPCError {
    var error = self
    error.metadata.replaceOrAddString("", forKey: Self.unprocessedKey)
    return error
  }

  /// The trailers of a status that is the server's whole answer.
  static func marking(refusal trailers: Metadata) -> Metadata {
    var trailers = trailers
    trailers.addString("", forKey: Self.refusalKey)
    return trailers
  }
}
