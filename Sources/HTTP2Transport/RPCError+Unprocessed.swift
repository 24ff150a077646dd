public import GRPCCore

extension RPCError {
  /// The mark of a request that the server has certainly not looked at, in the metadata of the error.
  ///
  /// No server can send it: HTTP/2 allows no name that begins with a colon in trailers
  /// (RFC 9113 section 8.1).
  static let unprocessedKey = ":unprocessed"

  /// Whether the server has certainly not looked at the request, so that sending it again does nothing
  /// twice: the connection attempt failed, the request never left, or the server refused it
  /// (REFUSED_STREAM, or GOAWAY with a lower last stream).
  public var isUnprocessed: Bool {
    self.metadata[stringValues: Self.unprocessedKey].contains { _ in true }
  }

  /// The same error of a request that the server has certainly not looked at.
  func unprocessed() -> RPCError {
    var error = self
    error.metadata.replaceOrAddString("", forKey: Self.unprocessedKey)
    return error
  }
}
