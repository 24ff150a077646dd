import Glibc

/// A byte stream straight over its socket.
public final class PlaintextConnection: ByteStream {
  private let socket: Socket

  public init(socket: consuming Socket) { self.socket = socket }

  public var descriptor: Int32 { self.socket.descriptor }
  public var applicationProtocol: String? { nil }
  public var hasBufferedInput: Bool { false }

  public func handshake() throws(TLSError) -> StreamStep { .done(byteCount: 0) }

  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> StreamStep {
    while true {
      let count = recv(self.descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .done(byteCount: count) }
      if count == 0 { return .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .wantsRead
      default: throw TLSError.system("receive", code: .connectionLost)
      }
    }
  }

  public func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep {
    while true {
      let count = send(self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return .done(byteCount: count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .wantsWrite
      default: throw TLSError.system("send", code: .connectionLost)
      }
    }
  }

  public func shutdown() throws(TLSError) -> StreamStep {
    // A peer that is gone already needs no telling.
    _ = Glibc.shutdown(self.descriptor, Int32(SHUT_WR))
    return .done(byteCount: 0)
  }
}
