internal import EventLoop
internal import SimulatedOrg
internal import TLSStream

/// Accepts connections on one listening socket. Confined to the event loop.
final class Listener {
  private let socket: Socket
  private let loop: EventLoop

  /// - Parameter accept: gets each connection's socket.
  init(
    socket: consuming Socket, loop: EventLoop, accept: @escaping (consuming Socket) -> Void
  )
    throws
  {
    self.socket = socket
    self.loop = loop
    try loop.register(self.socket.descriptor, interest: .readable) { [unowned self] _ in
      // without descriptors the connection waits; the next event tries again
      while let socket = try? self.socket.accept() { accept(socket) }
    }
  }

  func close() {
    self.loop.deregister(self.socket.descriptor)
  }
}
