import CSystem
import Glibc

/// The one owner of a non-blocking TCP socket; it is closed when the value goes.
package struct Socket: ~Copyable, Sendable {
  /// Lent for `epoll` and TLS; never closed by others.
  package let descriptor: Int32

  /// - Parameter descriptor: an open, non-blocking stream socket that nobody else closes.
  init(takingOwnership descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(self.descriptor) }

  private static func open(family: Int32) throws(TLSError) -> Socket {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw TLSError.system("socket") }
    return Socket(takingOwnership: descriptor)
  }

  /// Starts to connect. The connection is established when the socket becomes writable and
  /// `finishConnecting` returns.
  /// - Throws: `connectFailed` when the address fails at once.
  package static func connect(to address: SocketAddress) throws(TLSError) -> Socket {
    let socket = try Socket.open(family: address.family)
    socket.disableDelay()
    let descriptor = socket.descriptor
    let code = address.withPointer { Glibc.connect(descriptor, $0, $1) }
    guard code == 0 || errno == EINPROGRESS || errno == EINTR else {
      throw TLSError.system("connect to \(address)", code: .connectFailed)
    }
    return socket
  }

  /// The outcome of `connect(to:)`, asked once the socket is writable.
  /// - Throws: `connectFailed` with the system's reason.
  package func finishConnecting(to address: SocketAddress) throws(TLSError) {
    var number: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(self.descriptor, SOL_SOCKET, SO_ERROR, &number, &length) == 0 else {
      throw TLSError.system("getsockopt")
    }
    guard number == 0 else {
      throw TLSError.system("connect to \(address)", number, code: .connectFailed)
    }
  }

  /// Receives at most `buffer.count` bytes; the buffer must not be empty.
  /// - Parameter peeking: leaves the bytes to be received again.
  package func receive(
    into buffer: UnsafeMutableRawBufferPointer, peeking: Bool = false
  ) throws(TLSError) -> StreamStep {
    while true {
      let flags = peeking ? Int32(MSG_PEEK) : 0
      let count = recv(self.descriptor, buffer.baseAddress, buffer.count, flags)
      if count > 0 { return .done(byteCount: count) }
      if count == 0 { return .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .wantsRead
      default: throw TLSError.system("receive", code: .connectionLost)
      }
    }
  }

  /// Sends a leading part of `bytes`, which must not be empty.
  package func send(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> StreamStep {
    while true {
      let count = Glibc.send(
        self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return .done(byteCount: count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .wantsWrite
      default: throw TLSError.system("send", code: .connectionLost)
      }
    }
  }

  /// A listening socket.
  /// - Parameters:
  ///   - host: a numeric address such as `127.0.0.1` or `::1`.
  ///   - port: 0 lets the system choose; see `localAddress`.
  package static func listen(
    host: String, port: UInt16, backlog: Int32 = 128
  ) throws(TLSError) -> Socket {
    let addresses = try SocketAddress.resolve(
      host: host, port: port, flags: AI_PASSIVE | AI_NUMERICHOST)
    let address = addresses[0]  // `resolve` never returns an empty list.
    let socket = try Socket.open(family: address.family)
    var yes: Int32 = 1
    setsockopt(
      socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    let descriptor = socket.descriptor
    guard address.withPointer({ bind(descriptor, $0, $1) }) == 0 else {
      throw TLSError.system("bind to \(address)")
    }
    guard Glibc.listen(descriptor, backlog) == 0 else {
      throw TLSError.system("listen on \(address)")
    }
    return socket
  }

  /// The next waiting connection, or nil when there is none now. A connection that its peer gave
  /// up before it was accepted is skipped.
  package func accept() throws(TLSError) -> Socket? {
    while true {
      let descriptor = c_accept4(
        self.descriptor, Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue))
      if descriptor >= 0 {
        let socket = Socket(takingOwnership: descriptor)
        socket.disableDelay()
        return socket
      }
      switch errno {
      case EAGAIN: return nil
      case EINTR, ECONNABORTED, EPROTO: continue
      default: throw TLSError.system("accept")
      }
    }
  }

  /// Where the socket is bound; holds the port that the system chose.
  package var localAddress: SocketAddress {
    get throws(TLSError) {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let descriptor = self.descriptor
      let code = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          getsockname(descriptor, $0, &length)
        }
      }
      guard code == 0 else { throw TLSError.system("getsockname") }
      return SocketAddress(storage: storage, length: length)
    }
  }

  /// Two sockets connected to each other, without any network.
  package static func pair() throws(TLSError) -> SocketPair {
    var descriptors: (Int32, Int32) = (-1, -1)
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let code = withUnsafeMutableBytes(of: &descriptors) { bytes in
      // The tuple of two is laid out as the array of two that the call fills.
      socketpair(
        AF_UNIX, type | Int32(SOCK_CLOEXEC.rawValue), 0,
        bytes.baseAddress?.assumingMemoryBound(to: Int32.self))
    }
    guard code == 0 else { throw TLSError.system("socketpair") }
    return SocketPair(
      first: Socket(takingOwnership: descriptors.0), second: Socket(takingOwnership: descriptors.1))
  }

  /// Sends small writes at once; whole frames are gathered above, so nothing is won by waiting.
  private func disableDelay() {
    var yes: Int32 = 1
    setsockopt(
      self.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes,
      socklen_t(MemoryLayout<Int32>.size))
  }
}

/// What `Socket.pair` returns: a tuple cannot hold values that are not copyable.
package struct SocketPair: ~Copyable, Sendable {
  private let first: Socket
  private let second: Socket

  init(first: consuming Socket, second: consuming Socket) {
    self.first = first
    self.second = second
  }

  /// Hands both sockets out.
  package consuming func take<Result>(
    _ body: (consuming Socket, consuming Socket) throws -> Result
  ) rethrows -> Result {
    try body(self.first, self.second)
  }
}
