import Glibc

/// A byte stream straight over its socket.
public final class PlaintextConnection: ByteStream {
  private let socket: Socket

  public init(socket: consuming Socket) { self.socket = socket }

  public var descriptor: Int32 { self.socket.descriptor }
  public var applicationProtocol: String? { nil }
  public var peerIssuer: String? { nil }
  public var hasBufferedInput: Bool { false }

  public func handshake() throws(TLSError) -> StreamStep { .done(byteCount: 0) }

  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> StreamStep {
    try self.socket.receive(into: buffer)
  }

  public func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep {
    try self.socket.send(bytes)
  }

  public func shutdown() throws(TLSError) -> StreamStep {
    // A peer that is gone already needs no telling.
    _ = Glibc.shutdown(self.descriptor, Int32(SHUT_WR))
    return .done(byteCount: 0)
  }
}
