import Glibc

/// A byte stream straight over its socket.
package final class PlaintextConnection: ByteStream {
  private let socket: Socket

  package init(socket: consuming Socket) { self.socket = socket }

  package var descriptor: Int32 { self.socket.descriptor }
  package var applicationProtocol: String? { nil }
  package var peerIssuer: String? { nil }
  package var hasBufferedInput: Bool { false }

  package func handshake() throws(TLSError) -> StreamStep { .done(byteCount: 0) }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> StreamStep {
    try self.socket.receive(into: buffer)
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep {
    try self.socket.send(bytes)
  }

  package func shutdown() throws(TLSError) -> StreamStep {
    // A peer that is gone already needs no telling.
    _ = Glibc.shutdown(self.descriptor, Int32(SHUT_WR))
    return .done(byteCount: 0)
  }
}
