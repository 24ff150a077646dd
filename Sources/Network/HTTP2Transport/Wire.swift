internal import TLSStream

/// The bytes of one connection, on their way from the socket to the HTTP/2 session and back. The
/// only place where they meet the network. Lives on the loop.
final class Wire {
  /// Read from the socket, and given to the HTTP/2 session, at once.
  private static let receiveByteCount = 256 * 1024
  /// Gathered for one write.
  private static let sendByteCount = 64 * 1024

  /// What one call of `read` found.
  struct Input {
    /// The socket may have more.
    var isFull: Bool
    /// The server has ended its direction.
    var isClosed: Bool
  }

  private let stream: any ByteStream
  private let input: UnsafeMutableRawBufferPointer
  private var output: [UInt8] = []
  private var sentByteCount = 0

  init(_ stream: any ByteStream) {
    self.stream = stream
    self.input = .allocate(byteCount: Self.receiveByteCount, alignment: 16)
  }

  deinit { self.input.deallocate() }

  var descriptor: Int32 { self.stream.descriptor }

  /// The issuer of the server's certificate; nil without TLS.
  var peerIssuer: String? { self.stream.peerIssuer }

  /// Bytes that TLS has read ahead, of which `epoll` does not know.
  var hasBufferedInput: Bool { self.stream.hasBufferedInput }

  /// Reads what the socket has, one buffer of it at most, and lends it to `receive` if it is not
  /// empty.
  func read(_ receive: (UnsafeRawBufferPointer) -> Void) throws(TLSError) -> Input {
    var count = 0
    var isClosed = false
    filling: while count < self.input.count {
      switch try self.stream.read(
        into: UnsafeMutableRawBufferPointer(rebasing: self.input[count...]))
      {
      case .done(let byteCount): count += byteCount
      case .wantsRead, .wantsWrite: break filling
      case .closed:
        isClosed = true
        break filling
      }
    }
    if count > 0 { receive(UnsafeRawBufferPointer(rebasing: self.input[..<count])) }
    return Input(isFull: count == self.input.count, isClosed: isClosed)
  }

  /// Writes what the session wants to send.
  ///
  /// - Returns: false when the socket takes no more for now; what is left goes first next time.
  func write(from session: HTTP2Session) throws -> Bool {
    while true {
      if self.sentByteCount == self.output.count {
        self.output.removeAll(keepingCapacity: true)
        self.sentByteCount = 0
        try session.send(into: &self.output, limit: Self.sendByteCount)
        if self.output.isEmpty { return true }
      }
      let step = try self.output.withUnsafeBytes {
        try self.stream.write(UnsafeRawBufferPointer(rebasing: $0[self.sentByteCount...]))
      }
      switch step {
      case .done(let count): self.sentByteCount += count
      case .wantsRead, .wantsWrite, .closed: return false
      }
    }
  }

  /// Tells the server that nothing more will be sent. A server that can no longer receive that does
  /// not miss it.
  func shutdown() { _ = try? self.stream.shutdown() }
}
