internal import EventLoop
internal import TLSStream

/// Carries a `ProxyTunnel` over its socket. Lives on the loop; calls `completion` exactly once,
/// unless cancelled. Only the proxy's bytes are taken from the socket: what follows is the server's.
final class TunnelAttempt: @unchecked Sendable {
  // Guard: everything is touched on the loop's thread only.
  private let loop: EventLoop
  private let descriptor: Int32
  private var socket: Socket?
  private var tunnel: ProxyTunnel
  private var sentByteCount = 0
  private var completion: ((Result<Void, TLSError>) -> Void)?

  init(loop: EventLoop, socket: consuming Socket, tunnel: ProxyTunnel) {
    self.loop = loop
    self.descriptor = socket.descriptor
    self.socket = consume socket
    self.tunnel = tunnel
  }

  func start(_ completion: @escaping (Result<Void, TLSError>) -> Void) {
    self.completion = completion
    do {
      try self.loop.register(self.descriptor, interest: .writable) { [weak self] _ in
        self?.advance()
      }
    } catch {
      self.end(.failure(TLSError(endingConnection: error)))
    }
  }

  /// The socket of a tunnel that is open; once.
  func takeSocket() -> Socket? { self.socket.take() }

  func cancel() {
    self.completion = nil
    self.loop.deregister(self.descriptor)
    self.socket = nil
  }

  private func advance() {
    do {
      while self.sentByteCount < self.tunnel.request.count {
        let rest = Array(self.tunnel.request[self.sentByteCount...])
        guard case .done(let count) = try self.send(rest) else { return }
        self.sentByteCount += count
      }
      try self.loop.update(self.descriptor, interest: .readable)
      if try self.receiveHead() { self.end(.success(())) }
    } catch {
      self.end(.failure(TLSError(endingConnection: error)))
    }
  }

  private func send(_ bytes: [UInt8]) throws(TLSError) -> StreamStep {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(TLSError) in try self.socket?.send(bytes) ?? .closed }
    }
    return try result.get()
  }

  /// Whether the tunnel is open.
  private func receiveHead() throws(TLSError) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let result = buffer.withUnsafeMutableBytes { buffer in
        Result { () throws(TLSError) -> ProxyTunnel.OnBytes? in try self.receive(buffer) }
      }
      switch try result.get() {
      case nil: return false
      case .needsMore: continue
      case .open: return true
      case .refused(407, let reason):
        throw TLSError(
          .proxyRefused,
          "it requires another user and password (status 407 \(reason)); put them into the "
            + "proxy's URL"
        )
      case .refused(let status, let reason) where (500..<600).contains(status):
        throw TLSError(
          .connectFailed, "it cannot reach the server (status \(status) \(reason))")
      case .refused(let status, let reason):
        throw TLSError(
          .proxyRefused, "it refuses to reach the server (status \(status) \(reason))")
      case .malformed(let problem): throw TLSError(.connectFailed, problem)
      }
    }
  }

  /// Takes what is there of the proxy's answer; nil when nothing is.
  private func receive(
    _ buffer: UnsafeMutableRawBufferPointer
  ) throws(TLSError) -> ProxyTunnel.OnBytes? {
    guard let step = try self.socket?.receive(into: buffer, peeking: true) else { return nil }
    switch step {
    case .wantsRead, .wantsWrite: return nil
    case .closed:
      throw TLSError(.connectFailed, "it closed the connection instead of answering CONNECT")
    case .done(let count):
      let (consumed, outcome) = self.tunnel.receive(
        UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      if consumed > 0 {
        // These bytes were seen above, so they are there.
        _ = try self.socket?.receive(
          into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<consumed]))
      }
      return outcome
    }
  }

  private func end(_ result: Result<Void, TLSError>) {
    guard let completion = self.completion else { return }
    self.completion = nil
    self.loop.deregister(self.descriptor)
    completion(result)
  }
}
