internal import TLSStream

/// Makes the byte stream of a connection: name, TCP to one address after the other, TLS. Lives on
/// the loop; calls `completion` exactly once, unless cancelled.
final class ConnectAttempt: @unchecked Sendable {
  // Guard: everything is touched on the loop's thread only.
  private final class PendingSocket {
    var socket: Socket?
    let descriptor: Int32

    init(_ socket: consuming Socket) {
      self.descriptor = socket.descriptor
      self.socket = consume socket
    }
  }

  private let loop: EventLoop
  private let configuration: HTTP2ClientTransport.Configuration
  private let tls: TLSContext?
  private let deadline: ContinuousClock.Instant
  private var completion: ((Result<any ByteStream, TLSError>) -> Void)?
  private var addresses: [SocketAddress] = []
  private var errors: [TLSError] = []
  private var socket: PendingSocket?
  private var stream: (any ByteStream)?
  private var timer: EventLoop.TimerID?

  init(
    loop: EventLoop, configuration: HTTP2ClientTransport.Configuration, tls: TLSContext?,
    deadline: ContinuousClock.Instant,
    completion: @escaping (Result<any ByteStream, TLSError>) -> Void
  ) {
    self.loop = loop
    self.configuration = configuration
    self.tls = tls
    self.deadline = deadline
    self.completion = completion
  }

  func start() {
    self.setTimer(at: self.deadline) {
      $0.complete(.failure(TLSError(.timedOut, "name service did not answer in time")))
    }
    SocketAddress.resolve(
      host: self.configuration.host, port: self.configuration.port, on: self.loop
    ) { result in
      guard self.completion != nil else { return }
      switch result {
      case .success(let addresses):
        self.addresses = addresses
        self.tryNextAddress()
      case .failure(let error): self.complete(.failure(error))
      }
    }
  }

  func cancel() {
    self.completion = nil
    self.cleanUp()
  }

  private func tryNextAddress() {
    guard !self.addresses.isEmpty else {
      // `tryNextAddress` runs again only after an error was noted.
      let message = self.errors.map(\.message).joined(separator: "; ")
      let code = self.errors.last?.code ?? .connectFailed
      self.complete(.failure(TLSError(code, message)))
      return
    }
    let address = self.addresses.removeFirst()
    do {
      let pending = PendingSocket(try Socket.connect(to: address))
      self.socket = pending
      try self.loop.register(pending.descriptor, interest: .writable) { [weak self] _ in
        self?.finishConnecting(to: address)
      }
      // The time that is left is shared evenly with the addresses after this one.
      let now = ContinuousClock.now
      let share = (self.deadline - now) / (self.addresses.count + 1)
      self.setTimer(at: now + share) {
        $0.addressFailed(TLSError(.timedOut, "connect to \(address): no answer in time"))
      }
    } catch {
      self.addressFailed(error)
    }
  }

  private func addressFailed(_ error: TLSError) {
    self.cleanUp()
    self.errors.append(error)
    self.tryNextAddress()
  }

  private func finishConnecting(to address: SocketAddress) {
    guard let pending = self.socket, let socket = pending.socket.take() else { return }
    self.loop.deregister(pending.descriptor)
    do {
      try socket.finishConnecting(to: address)
    } catch {
      self.addressFailed(error)
      return
    }
    self.socket = nil
    do throws(TLSError) {
      if let tls = self.tls {
        self.setTimer(at: self.deadline) {
          $0.complete(
            .failure(TLSError(.timedOut, "\(address): TLS handshake not finished in time")))
        }
        let stream = try TLSConnection.client(
          context: tls, socket: socket, hostName: self.configuration.host)
        self.stream = stream
        try self.loop.register(stream.descriptor, interest: .writable) { [weak self] _ in
          self?.handshake(stream)
        }
        self.handshake(stream)
      } else {
        self.complete(.success(PlaintextConnection(socket: socket)))
      }
    } catch {
      self.complete(.failure(error))
    }
  }

  private func handshake(_ stream: TLSConnection) {
    do throws(TLSError) {
      switch try stream.handshake() {
      case .done: self.complete(.success(stream))
      case .wantsRead: try self.loop.update(stream.descriptor, interest: .readable)
      case .wantsWrite: try self.loop.update(stream.descriptor, interest: .writable)
      case .closed:
        throw TLSError(.handshakeFailed, "the peer closed the connection during the TLS handshake")
      }
    } catch {
      self.complete(.failure(error))
    }
  }

  private func complete(_ result: Result<any ByteStream, TLSError>) {
    guard let completion = self.completion else { return }
    self.completion = nil
    self.cleanUp()
    completion(result)
  }

  private func cleanUp() {
    if let timer = self.timer { self.loop.cancel(timer) }
    self.timer = nil
    if let socket = self.socket { self.loop.deregister(socket.descriptor) }
    self.socket = nil
    if let stream = self.stream { self.loop.deregister(stream.descriptor) }
    self.stream = nil
  }

  private func setTimer(
    at deadline: ContinuousClock.Instant, _ body: @escaping (ConnectAttempt) -> Void
  ) {
    if let timer = self.timer { self.loop.cancel(timer) }
    self.timer = self.loop.schedule(at: deadline) { [weak self] in
      if let self { body(self) }
    }
  }
}
