/// How far an operation on a non-blocking stream came.
package enum StreamStep: Equatable, Sendable {
  /// Finished. `byteCount` is at least 1 for `read` and `write`, 0 for the others.
  case done(byteCount: Int)
  /// Call again when the socket is readable.
  case wantsRead
  /// Call again when the socket is writable.
  case wantsWrite
  /// The peer has ended its direction; nothing more will be read.
  case closed
}

/// Bytes in both directions over one socket, with TLS (`TLSConnection`) or without
/// (`PlaintextConnection`). Never blocks. Used by one thread at a time.
///
/// TLS reads ahead: input may be waiting in the stream while the socket is not readable. After a
/// readiness event, read until `wantsRead`, or look at `hasBufferedInput` before waiting again.
package protocol ByteStream: AnyObject {
  /// For `epoll`; owned by the stream.
  var descriptor: Int32 { get }
  /// The protocol that ALPN selected, such as `h2`; nil before the handshake, without ALPN and
  /// without TLS.
  var applicationProtocol: String? { get }
  /// The organization, or the name, that issued the server's certificate; nil before the handshake and without
  /// TLS.
  var peerIssuer: String? { get }
  /// Whether `read` may return bytes without the socket being readable.
  var hasBufferedInput: Bool { get }

  /// Takes the handshake one step further; `done` at once where there is none.
  func handshake() throws(TLSError) -> StreamStep
  /// Reads at most `buffer.count` bytes; the buffer must not be empty.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> StreamStep
  /// Writes a leading part of `bytes`, which must not be empty.
  func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep
  /// Tells the peer that nothing more will be written. The socket closes with the object.
  func shutdown() throws(TLSError) -> StreamStep
}
