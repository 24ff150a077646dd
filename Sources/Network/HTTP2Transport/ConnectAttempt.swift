internal import Clocks
internal import EventLoop
internal import TLSStream

/// Makes the byte stream of a connection: name, TCP to the first address that answers, a tunnel
/// through a proxy, TLS. Lives on the loop; calls `completion` exactly once, unless cancelled.
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
  private var race = ConnectRace(families: [])
  /// Connecting, by index of the address.
  private var sockets: [Int: PendingSocket] = [:]
  private var errors: [TLSError] = []
  private var tunnel: TunnelAttempt?
  private var stream: (any ByteStream)?
  private var deadlineTimer: EventLoop.TimerID?
  private var raceTimer: EventLoop.TimerID?

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
    self.deadlineTimer = self.loop.schedule(at: self.deadline) { [weak self] in self?.timeOut() }
    let proxy = self.configuration.proxy
    SocketAddress.resolve(
      host: proxy?.host ?? self.configuration.host, port: proxy?.port ?? self.configuration.port,
      on: self.loop, with: self.configuration.resolver
    ) { result in
      guard self.completion != nil else { return }
      switch result {
      case .success(let addresses):
        self.addresses = addresses
        self.race = ConnectRace(families: addresses.map(\.family))
        self.continueRace()
      case .failure(let error): self.fail(error)
      }
    }
  }

  func cancel() {
    self.completion = nil
    self.cleanUp()
  }

  private func timeOut() {
    let pending = self.sockets.keys.sorted().map { "connect to \(self.addresses[$0])" }
    let what: String
    if self.stream != nil {
      what = "the TLS handshake did not finish in time"
    } else if self.tunnel != nil {
      what = "the proxy did not answer CONNECT in time"
    } else if self.addresses.isEmpty {
      what = "the name service did not answer in time"
    } else {
      what = (self.errors.map(\.message) + pending.map { "\($0): no answer in time" })
        .joined(separator: "; ")
    }
    self.fail(TLSError(.timedOut, what))
  }

  // MARK: TCP

  private func continueRace() {
    while self.completion != nil {
      switch self.race.step(now: self.loop.clock.now) {
      case .connect(let index): self.connect(index)
      case .waitUntil(let next):
        if let timer = self.raceTimer { self.loop.cancel(timer) }
        self.raceTimer = self.loop.schedule(at: next) { [weak self] in self?.continueRace() }
        return
      case .wait: return
      case .failed:
        let message = self.errors.map(\.message).joined(separator: "; ")
        self.fail(TLSError(self.errors.last?.code ?? .connectFailed, message))
      }
    }
  }

  /// Begins to connect; a failure at once is noted for the race's next step.
  private func connect(_ index: Int) {
    do {
      let pending = PendingSocket(try Socket.connect(to: self.addresses[index]))
      try self.loop.register(pending.descriptor, interest: .writable) { [weak self] _ in
        self?.finishConnecting(index)
      }
      self.sockets[index] = pending
    } catch {
      self.errors.append(TLSError(endingConnection: error))
      self.race.failed(index)
    }
  }

  private func finishConnecting(_ index: Int) {
    guard let pending = self.sockets.removeValue(forKey: index), let socket = pending.socket.take()
    else { return }
    self.loop.deregister(pending.descriptor)
    do {
      try socket.finishConnecting(to: self.addresses[index])
    } catch {
      self.errors.append(error)
      self.race.failed(index)
      self.continueRace()
      return
    }
    self.endRace()
    guard let proxy = self.configuration.proxy else { return self.secure(socket) }
    let tunnel = TunnelAttempt(
      loop: self.loop, socket: socket,
      tunnel: ProxyTunnel(
        target: self.configuration.endpoint, authorization: proxy.authorization,
        userAgent: self.configuration.userAgent))
    self.tunnel = tunnel
    tunnel.start { [weak self] result in self?.tunnelEnded(result) }
  }

  private func endRace() {
    if let timer = self.raceTimer { self.loop.cancel(timer) }
    self.raceTimer = nil
    for pending in self.sockets.values { self.loop.deregister(pending.descriptor) }
    self.sockets.removeAll()
  }

  // MARK: Proxy and TLS

  private func tunnelEnded(_ result: Result<Void, TLSError>) {
    guard let tunnel = self.tunnel else { return }
    self.tunnel = nil
    switch result {
    case .success:
      if let socket = tunnel.takeSocket() { self.secure(socket) }
    case .failure(let error): self.fail(error)
    }
  }

  private func secure(_ socket: consuming Socket) {
    guard let tls = self.tls else {
      self.complete(.success(PlaintextConnection(socket: socket)))
      return
    }
    do {
      let stream = try TLSConnection.client(
        context: tls, socket: socket, hostName: self.configuration.host)
      self.stream = stream
      try self.loop.register(stream.descriptor, interest: .writable) { [weak self] _ in
        self?.handshake(stream)
      }
      self.handshake(stream)
    } catch {
      self.fail(TLSError(endingConnection: error))
    }
  }

  private func handshake(_ stream: TLSConnection) {
    do {
      switch try stream.handshake() {
      case .done: self.complete(.success(stream))
      case .wantsRead: try self.loop.update(stream.descriptor, interest: .readable)
      case .wantsWrite: try self.loop.update(stream.descriptor, interest: .writable)
      case .closed:
        throw TLSError(
          .handshakeFailed,
          "the server closed the connection during the TLS handshake")
      }
    } catch {
      self.fail(TLSError(endingConnection: error))
    }
  }

  // MARK: End

  /// Names the proxy, if there is one, for failures that are its own.
  private func fail(_ error: TLSError) {
    var error = error
    if let proxy = self.configuration.proxy, self.stream == nil {
      error.message = "proxy \(proxy.endpoint): \(error.message)"
    }
    self.complete(.failure(error))
  }

  private func complete(_ result: Result<any ByteStream, TLSError>) {
    guard let completion = self.completion else { return }
    self.completion = nil
    self.cleanUp()
    completion(result)
  }

  private func cleanUp() {
    if let timer = self.deadlineTimer { self.loop.cancel(timer) }
    self.deadlineTimer = nil
    self.endRace()
    self.tunnel?.cancel()
    self.tunnel = nil
    if let stream = self.stream { self.loop.deregister(stream.descriptor) }
    self.stream = nil
  }
}
