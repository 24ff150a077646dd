internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import TLSStream

/// One HTTP/2 connection: its phases, its streams, its keepalive. Lives on the loop.
final class Connection: @unchecked Sendable {
  // Guard: everything is touched on the loop's thread only.

  /// Every stream's window at first; see `ReceiveWindows`.
  private static let initialWindowByteCount = 256 * 1024
  /// Reads in a row before others on the loop have their turn.
  private static let readsInARow = 4

  private enum Phase {
    case connecting(ConnectAttempt)
    /// Waiting for the peer's SETTINGS.
    case opening
    case ready
    case closed
  }

  let connections: Connections
  let configuration: HTTP2ClientTransport.Configuration
  private let loop: EventLoop
  private var phase = Phase.closed
  private var isDraining = false
  /// The server's GOAWAY, for messages.
  var farewell: String?
  private var wire: Wire?
  private var session: HTTP2Session?
  private var preface = PeerPreface()
  var streams: [Int32: ClientStream] = [:]
  var windows: ReceiveWindows
  private var touched: [ClientStream] = []
  /// Streams we are done with, unless the peer and the library are too.
  var finished: Set<Int32> = []
  private var isAdvanceScheduled = false
  var keepalive: Keepalive?
  private var timer: EventLoop.TimerID?

  init(connections: Connections) {
    self.connections = connections
    self.configuration = connections.configuration
    self.loop = connections.loop
    self.windows = ReceiveWindows(
      initialStreamBytes: min(Self.initialWindowByteCount, self.configuration.streamWindowBytes),
      maxStreamBytes: self.configuration.streamWindowBytes,
      connectionBytes: self.configuration.connectionWindowBytes)
  }

  // MARK: Connecting

  func start() {
    let deadline = self.loop.clock.now + self.configuration.connectTimeout
    let attempt = ConnectAttempt(
      loop: self.loop, configuration: self.configuration, tls: self.connections.tls,
      deadline: deadline
    ) { [weak self] result in
      switch result {
      case .success(let stream): self?.begin(on: stream, deadline: deadline)
      case .failure(let error): self?.end(error)
      }
    }
    self.phase = .connecting(attempt)
    attempt.start()
  }

  private func begin(on stream: any ByteStream, deadline: ContinuousClock.Instant) {
    self.wire = Wire(stream)
    self.phase = .opening
    self.timer = self.loop.schedule(at: deadline) { [weak self] in
      self?.end(
        TLSError(.timedOut, "the server accepted the connection but sent no HTTP/2 frame in time"))
    }
    do {
      self.session = try HTTP2Session(
        settings: HTTP2Session.Settings(
          initialWindowBytes: min(
            Self.initialWindowByteCount, self.configuration.streamWindowBytes),
          connectionWindowBytes: self.configuration.connectionWindowBytes,
          maxHeaderListBytes: self.configuration.maxHeaderListBytes))
      try self.loop.register(stream.descriptor, interest: .readable) { [weak self] readiness in
        guard let self else { return }
        if readiness.contains(.writable) { self.advance() }
        if readiness.contains(.readable) { self.readAvailable() }
      }
    } catch {
      self.end(TLSError(endingConnection: error))
      return
    }
    self.advance()
  }

  func becameReady() {
    guard case .opening = self.phase else { return }
    self.phase = .ready
    if let timer = self.timer { self.loop.cancel(timer) }
    let keepalive = Keepalive(
      interval: self.connections.keepalivePace.interval,
      timeout: self.configuration.keepalive.timeout,
      now: self.loop.clock.now, jitter: .random(in: 0...1))
    self.keepalive = keepalive
    self.checkKeepalive(at: keepalive.firstCheck)
    self.connections.connected(self)
  }

  private func checkKeepalive(at deadline: ContinuousClock.Instant) {
    self.timer = self.loop.schedule(at: deadline) { [weak self] in self?.keepaliveFired() }
  }

  private func keepaliveFired() {
    guard case .ready = self.phase else { return }
    switch self.keepalive?.timerFired(now: self.loop.clock.now, hasStreams: !self.streams.isEmpty) {
    case .wait(let deadline): self.checkKeepalive(at: deadline)
    case .ping(let nextCheck):
      self.checkKeepalive(at: nextCheck)
      self.attempt { try $0.ping() }
      self.advance()
    case .dead:
      self.end(
        TLSError(
          .timedOut, "no answer to a keepalive PING within \(self.configuration.keepalive.timeout)")
      )
    case nil: break
    }
  }

  // MARK: Closing

  /// Sends GOAWAY and closes; streams must be gone.
  func close() {
    self.attempt { try $0.goAway() }
    self.writeAvailable()
    self.tearDown()
  }

  /// Closes at once; streams fail with `error`.
  func kill(_ error: RPCError) {
    let streams = self.takeStreams()
    self.tearDown()
    for stream in streams { stream.fail(error, parts: stream.undelivered) }
  }

  /// The connection, or the attempt to make it, is over.
  private func end(_ error: TLSError) {
    let isReady = if case .ready = self.phase { true } else { false }
    if case .closed = self.phase { return }
    let streams = self.takeStreams()
    self.tearDown()
    guard isReady else {
      self.connections.connectFailed(self, error)
      return
    }
    self.connections.closed(self)
    var error = error
    if let farewell = self.farewell { error.message = "\(farewell); \(error.message)" }
    let failure = RPCError.connectionLost(self.configuration.endpoint, error)
    for stream in streams {
      if stream.isSent {
        switch stream.machine.closed(failure) {
        case .fail(let error): stream.fail(error, parts: stream.undelivered)
        case .none, .metadata, .status: break
        }
        stream.undelivered.removeAll()
      } else {
        self.connections.replay(stream, error: failure)
      }
    }
  }

  private func takeStreams() -> [ClientStream] {
    defer { self.streams.removeAll() }
    return self.streams.values.sorted { $0.key < $1.key }
  }

  private func tearDown() {
    if case .connecting(let attempt) = self.phase { attempt.cancel() }
    self.phase = .closed
    if let timer = self.timer { self.loop.cancel(timer) }
    self.timer = nil
    if let wire = self.wire {
      self.loop.deregister(wire.descriptor)
      wire.shutdown()
    }
    self.wire = nil
    self.session = nil
    self.touched.removeAll()
  }

  func drain() {
    guard !self.isDraining else { return }
    guard case .ready = self.phase else {
      self.end(TLSError(.connectionLost, self.farewell ?? "the server accepts no streams"))
      return
    }
    self.isDraining = true
    self.connections.isDraining(self)
  }

  // MARK: Streams

  /// Sends the request of a stream.
  func open(_ stream: ClientStream) {
    let isTLS = self.connections.tls != nil
    let fields =
      [
        HeaderField(name: ":method", value: "POST"),
        HeaderField(name: ":scheme", value: isTLS ? "https" : "http"),
        HeaderField(name: ":path", value: stream.path),
        HeaderField(name: ":authority", value: self.configuration.endpoint),
        HeaderField(name: "te", value: "trailers"),
        HeaderField(name: "content-type", value: "application/grpc"),
        HeaderField(name: "grpc-accept-encoding", value: MessageInflater.acceptedEncodings),
        HeaderField(name: "user-agent", value: self.configuration.userAgent),
      ] + stream.requestFields
    guard let session = self.session else { return }
    do {
      let id = try session.submitRequest(fields, body: stream)
      stream.id = id
      stream.connection = self
      self.streams[id] = stream
      self.windows.open(stream.key)
      self.scheduleAdvance()
    } catch {
      // No identifier is left on this connection.
      self.drain()
      self.connections.replay(
        stream, error: RPCError(code: .unavailable, message: error.message))
    }
  }

  /// A stream has something to send.
  func resume(_ stream: ClientStream) {
    guard let id = stream.id else { return }
    self.session?.resume(id)
    self.scheduleAdvance()
  }

  func taken(_ byteCount: Int, by stream: ClientStream) {
    self.windows.taken(byteCount, on: stream.key)
    self.touch(stream)
    self.scheduleAdvance()
  }

  /// The application gives a stream up.
  func cancel(_ stream: ClientStream) {
    guard let id = stream.id else { return }
    self.remove(stream, id)
    self.finished.insert(id)
    self.scheduleAdvance()
  }

  /// Nothing of a stream will be taken any more.
  func forget(_ stream: ClientStream) {
    self.windows.close(stream.key)
    self.scheduleAdvance()
  }

  func remove(_ stream: ClientStream, _ id: Int32) {
    self.streams[id] = nil
    stream.id = nil
  }

  func touch(_ stream: ClientStream) {
    guard !stream.isTouched else { return }
    stream.isTouched = true
    self.touched.append(stream)
  }

  // MARK: Bytes

  private func scheduleAdvance() {
    guard !self.isAdvanceScheduled else { return }
    self.isAdvanceScheduled = true
    // After what else waits on the loop, so that one write serves many changes.
    self.loop.execute { self.advance() }
  }

  private func readAvailable() {
    for _ in 0..<Self.readsInARow {
      guard let wire = self.wire else { return }
      let input: Wire.Input
      do { input = try wire.read { self.received($0) } } catch {
        self.end(error)
        return
      }
      if input.isClosed {
        self.end(TLSError(.connectionLost, "the server closed it"))
        return
      }
      guard input.isFull else { return }
    }
    if self.wire?.hasBufferedInput == true { self.loop.execute { self.readAvailable() } }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    self.keepalive?.received(now: self.loop.clock.now)
    if let problem = self.preface.receive(bytes) {
      self.end(
        self.connections.tls == nil
          ? TLSError(.applicationProtocolMissing, "\(problem), so it is not a gRPC endpoint")
          : .withoutHTTP2(problem, issuer: self.wire?.peerIssuer))
      return
    }
    self.attempt { try $0.receive(bytes) }
    self.advance()
  }

  /// Handles what happened, tells the applications, and sends what is to be sent.
  private func advance() {
    self.isAdvanceScheduled = false
    repeat {
      guard let session = self.session else { return }
      for event in session.takeEvents() { self.handle(event) }
      self.settleTouched()
      self.writeAvailable()
    } while self.session?.hasEvents == true
    guard let session = self.session else { return }
    if session.isOver {
      self.end(
        TLSError(
          .connectionLost, self.farewell == nil ? "HTTP/2 protocol error" : "the server closed it"))
    } else if self.isDraining, self.streams.isEmpty {
      self.close()
      self.connections.closed(self)
    }
  }

  /// Delivers parts, gives windows back, resets what we are done with and the peer is not.
  private func settleTouched() {
    let touched = self.touched
    self.touched.removeAll(keepingCapacity: true)
    for stream in touched {
      stream.isTouched = false
      if !stream.undelivered.isEmpty {
        var parts: [ResponsePart] = []
        swap(&parts, &stream.undelivered)
        stream.deliver(parts)
      }
      if let id = stream.id {
        let increment = self.windows.updateForStream(stream.key)
        if increment > 0 { self.attempt { try $0.allow(increment, on: id) } }
      }
    }
    for id in self.finished { self.attempt { try $0.reset(id, errorCode: .cancel) } }
    self.finished.removeAll()
    let increment = self.windows.updateForConnection()
    if increment > 0 { self.attempt { try $0.allow(increment, on: 0) } }
  }

  private func writeAvailable() {
    guard let wire = self.wire, let session = self.session else { return }
    do {
      let isDone = try wire.write(from: session)
      try self.loop.update(
        wire.descriptor, interest: isDone ? .readable : [.readable, .writable])
    } catch {
      // The server may have sent its reason before it closed: that is read first.
      self.loop.execute {
        self.readAvailable()
        self.end(TLSError(endingConnection: error))
      }
    }
  }

  /// Runs a call of the session whose failure ends the connection.
  private func attempt(_ body: (HTTP2Session) throws -> Void) {
    guard let session = self.session else { return }
    do { try body(session) } catch { self.end(TLSError(endingConnection: error)) }
  }
}
