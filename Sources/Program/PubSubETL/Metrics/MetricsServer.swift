import Clocks
import EventLoop
import Glibc
import TLSStream

/// Answers requests over HTTP/1.1 on a thread of its own, one for each connection.
///
/// Clients are hostile: the number of connections, the bytes of a request and the time of both are
/// limited, and nothing is allocated for a client that neither asks nor reads but its connection. With
/// all connections in use, the oldest one makes room for a new one, so that slow clients do not keep
/// others out.
///
/// libmicrohttpd, which the simulator serves with, would be one more package to install, and closes new
/// connections when it has enough: a few slow clients would keep every scrape out.
final class MetricsServer: Sendable {
  struct Limits: Sendable {
    var connectionCount = 32
    /// From the connection until its response has been sent.
    var time = Duration.seconds(10)
  }

  /// Where it listens: `127.0.0.1:9464`.
  let address: String
  private let loop: EventLoop
  private let listener: MetricsListener

  /// Begins to listen.
  ///
  /// - Parameters:
  ///   - onFailure: receives why nothing more is accepted. On the server's thread.
  ///   - answer: makes the responses. On the server's thread.
  init(
    _ address: MetricsAddress, clock: ProcessClock, limits: Limits = Limits(),
    onFailure: @escaping @Sendable (any Error) -> Void,
    answer: @escaping @Sendable (MetricsRequest) -> MetricsResponse
  ) throws {
    let socket = try Socket.listen(host: address.host, port: address.port)
    self.address = try socket.localAddress.description
    self.loop = try EventLoop(name: "metrics", clock: clock)
    self.listener = MetricsListener(socket, loop: self.loop, limits: limits, answer: answer)
    self.loop.execute { [listener] in
      do { try listener.begin() } catch { onFailure(error) }
    }
  }

  /// Closes everything, responses that are being sent included.
  func stop() {
    self.loop.execute { [listener] in listener.end() }
  }
}

/// The listening socket and its connections.
private final class MetricsListener: @unchecked Sendable {
  // Guard: everything happens on the loop's thread.

  private let socket: Socket
  /// Its handlers and timers do not refer back.
  private let loop: EventLoop
  private let limits: MetricsServer.Limits
  private let answer: @Sendable (MetricsRequest) -> MetricsResponse
  /// In the order in which they came.
  private var connections: [MetricsConnection] = []
  private var hasEnded = false

  init(
    _ socket: consuming Socket, loop: EventLoop, limits: MetricsServer.Limits,
    answer: @escaping @Sendable (MetricsRequest) -> MetricsResponse
  ) {
    self.socket = socket
    self.loop = loop
    self.limits = limits
    self.answer = answer
  }

  func begin() throws(SystemCallError) {
    try self.loop.register(self.socket.descriptor, interest: .readable) { [weak self] _ in
      self?.accept()
    }
  }

  func end() {
    self.hasEnded = true
    self.loop.deregister(self.socket.descriptor)
    // Clients that were not accepted yet are turned away, and the port is free at once.
    shutdown(self.socket.descriptor, Int32(SHUT_RDWR))
    for connection in self.connections { self.close(connection) }
  }

  private func accept() {
    do {
      guard let socket = try self.socket.accept() else { return }
      let connection = MetricsConnection(socket)
      if self.connections.count >= self.limits.connectionCount { self.close(self.connections[0]) }
      try self.loop.register(connection.socket.descriptor, interest: .readable) {
        [weak self, weak connection] _ in
        if let self, let connection { self.advance(connection) }
      }
      connection.timer = self.loop.schedule(at: self.loop.clock.now + self.limits.time) {
        [weak self, weak connection] in
        if let self, let connection { self.close(connection) }
      }
      self.connections.append(connection)
    } catch {
      self.pause()
    }
  }

  /// The system lacks descriptors or memory: without a pause, the waiting connection would keep the
  /// thread busy.
  private func pause() {
    // A registration that cannot be changed is ready again at once, which only costs time.
    try? self.loop.update(self.socket.descriptor, interest: [])
    self.loop.schedule(at: self.loop.clock.now + .seconds(1)) { [weak self] in
      guard let self, !self.hasEnded else { return }
      try? self.loop.update(self.socket.descriptor, interest: .readable)
    }
  }

  private func advance(_ connection: MetricsConnection) {
    do {
      if try connection.advance(self.answer) == .over { return self.close(connection) }
      try self.loop.update(connection.socket.descriptor, interest: connection.interest)
    } catch {
      // The client is gone, and nobody else is concerned.
      self.close(connection)
    }
  }

  private func close(_ connection: MetricsConnection) {
    if let timer = connection.timer { self.loop.cancel(timer) }
    self.loop.deregister(connection.socket.descriptor)
    self.connections.removeAll { $0 === connection }
  }
}

/// One request and its response.
private final class MetricsConnection {
  enum Progress { case goesOn, over }

  let socket: Socket
  var timer: EventLoop.TimerID?
  private var request: [UInt8] = []
  /// What remains to be sent: the head and the body of the response; empty before there is one.
  /// Bodies are shared between connections.
  private var response: [ArraySlice<UInt8>] = []

  init(_ socket: consuming Socket) { self.socket = socket }

  var interest: EventLoop.Readiness { self.response.isEmpty ? .readable : .writable }

  /// Receives or sends as much as possible without waiting.
  func advance(_ answer: (MetricsRequest) -> MetricsResponse) throws -> Progress {
    if self.response.isEmpty {
      guard try self.receive() else { return .over }
      let found: MetricsResponse
      switch MetricsRequest.read(self.request) {
      case .incomplete: return .goesOn
      case .request(let request): found = answer(request)
      case .refused(let status): found = MetricsResponse(status, text: "\(status.rawValue)\n")
      }
      self.request = []
      self.response = [found.head[...], found.body[...]]
    }
    while let part = self.response.first {
      guard !part.isEmpty else {
        self.response.removeFirst()
        continue
      }
      switch try part.withUnsafeBytes({ try self.socket.send($0) }) {
      case .done(let count): self.response[0].removeFirst(count)
      case .wantsRead, .wantsWrite: return .goesOn
      case .closed: return .over
      }
    }
    return .over
  }

  /// - Returns: false if the client has closed.
  private func receive() throws -> Bool {
    var chunk = [UInt8](repeating: 0, count: 4096)
    let step = try chunk.withUnsafeMutableBytes { try self.socket.receive(into: $0) }
    switch step {
    case .done(let count):
      self.request += chunk[..<count]
      return true
    case .wantsRead, .wantsWrite: return true
    case .closed: return false
    }
  }
}
