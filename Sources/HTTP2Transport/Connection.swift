internal import EventLoop
internal import GRPCCore
internal import TLSStream

/// One HTTP/2 connection: the only place where bytes meet the network. Lives on the loop.
final class Connection: @unchecked Sendable {
  // Guard: everything is touched on the loop's thread only.

  /// Read from the socket, and given to the HTTP/2 session, at once.
  private static let receiveByteCount = 256 * 1024
  /// Gathered for one write.
  private static let sendByteCount = 64 * 1024
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

  private let connections: Connections
  private let configuration: HTTP2ClientTransport.Configuration
  private let loop: EventLoop
  private var phase = Phase.closed
  private var isDraining = false
  /// What the peer gave as its reason to leave.
  private var farewell: String?
  private var stream: (any ByteStream)?
  private var session: HTTP2Session?
  private var preface = PeerPreface()
  private var streams: [Int32: ClientStream] = [:]
  private var windows: ReceiveWindows
  private var touched: [ClientStream] = []
  /// Streams we are done with, unless the peer and the library are too.
  private var finished: Set<Int32> = []
  private var input: UnsafeMutableRawBufferPointer
  private var output: [UInt8] = []
  private var outputOffset = 0
  private var isAdvanceScheduled = false
  private var keepalive: Keepalive?
  private var timer: EventLoop.TimerID?

  init(connections: Connections) {
    self.connections = connections
    self.configuration = connections.configuration
    self.loop = connections.loop
    self.windows = ReceiveWindows(
      initialStreamBytes: min(Self.initialWindowByteCount, self.configuration.streamWindowBytes),
      maxStreamBytes: self.configuration.streamWindowBytes,
      connectionBytes: self.configuration.connectionWindowBytes)
    self.input = .allocate(byteCount: 0, alignment: 1)
  }

  deinit { self.input.deallocate() }

  // MARK: Coming about

  func start() {
    let deadline = ContinuousClock.now + self.configuration.connectTimeout
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
    self.stream = stream
    self.phase = .opening
    self.input.deallocate()
    self.input = .allocate(byteCount: Self.receiveByteCount, alignment: 16)
    self.timer = self.loop.schedule(at: deadline) { [weak self] in
      self?.end(
        TLSError(.timedOut, "the server accepted the connection, but sent no HTTP/2 frame in time"))
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

  private func becameReady() {
    guard case .opening = self.phase else { return }
    self.phase = .ready
    if let timer = self.timer { self.loop.cancel(timer) }
    let keepalive = Keepalive(
      interval: self.connections.keepalivePace.interval,
      timeout: self.configuration.keepalive.timeout,
      now: .now, jitter: .random(in: 0...1))
    self.keepalive = keepalive
    self.checkKeepalive(at: keepalive.firstCheck)
    self.connections.connected(self)
  }

  private func checkKeepalive(at deadline: ContinuousClock.Instant) {
    self.timer = self.loop.schedule(at: deadline) { [weak self] in self?.keepaliveFired() }
  }

  private func keepaliveFired() {
    guard case .ready = self.phase else { return }
    switch self.keepalive?.timerFired(now: .now, hasStreams: !self.streams.isEmpty) {
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

  // MARK: Going

  /// Says goodbye and closes; streams must be gone.
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
    if let stream = self.stream {
      self.loop.deregister(stream.descriptor)
      // A farewell that the peer cannot receive any more is not missed.
      _ = try? stream.shutdown()
    }
    self.stream = nil
    self.session = nil
    self.touched.removeAll()
  }

  private func drain() {
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

  private func remove(_ stream: ClientStream, _ id: Int32) {
    self.streams[id] = nil
    stream.id = nil
  }

  private func touch(_ stream: ClientStream) {
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
      guard let stream = self.stream else { return }
      var filled = 0
      var isClosed = false
      do {
        filling: while filled < self.input.count {
          switch try stream.read(
            into: UnsafeMutableRawBufferPointer(rebasing: self.input[filled...]))
          {
          case .done(let count): filled += count
          case .wantsRead, .wantsWrite: break filling
          case .closed:
            isClosed = true
            break filling
          }
        }
      } catch {
        self.end(error)
        return
      }
      if filled > 0 {
        self.received(UnsafeRawBufferPointer(rebasing: self.input[..<filled]))
      }
      if isClosed {
        self.end(TLSError(.connectionLost, "the peer closed it"))
        return
      }
      guard filled == self.input.count else { return }
    }
    // epoll does not know of bytes that TLS has read ahead.
    if self.stream?.hasBufferedInput == true { self.loop.execute { self.readAvailable() } }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    self.keepalive?.received(now: .now)
    if let problem = self.preface.receive(bytes) {
      self.end(TLSError(.applicationProtocolMissing, problem))
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
    guard let stream = self.stream, let session = self.session else { return }
    do {
      var isBlocked = false
      while !isBlocked {
        if self.outputOffset == self.output.count {
          self.output.removeAll(keepingCapacity: true)
          self.outputOffset = 0
          try session.send(into: &self.output, limit: Self.sendByteCount)
          if self.output.isEmpty { break }
        }
        let step = try self.output.withUnsafeBytes {
          try stream.write(UnsafeRawBufferPointer(rebasing: $0[self.outputOffset...]))
        }
        switch step {
        case .done(let count): self.outputOffset += count
        case .wantsRead, .wantsWrite, .closed: isBlocked = true
        }
      }
      try self.loop.update(
        stream.descriptor, interest: isBlocked ? [.readable, .writable] : .readable)
    } catch {
      // The peer may have said why before it closed: that is read first.
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

// MARK: Events

extension Connection {
  private func handle(_ event: HTTP2Event) {
    switch event {
    case .headers(let id, let fields, let endsStream):
      guard let stream = self.streams[id] else { return }
      let hadResponded = stream.machine.hasResponded
      self.perform(stream.machine.receivedHeaders(fields, endsStream: endsStream), on: stream, id)
      if !hadResponded, stream.machine.hasResponded {
        self.connections.answered(self)
        stream.forgetSentMessages()
      }
    case .data(let id, let bytes): self.received(bytes, on: id)
    case .endOfStream(let id):
      guard let stream = self.streams[id] else { return }
      self.perform(stream.machine.receivedEndOfStream(), on: stream, id)
    case .headersTooLong(let id):
      guard let stream = self.streams[id] else { return }
      let error = RPCError(
        code: .resourceExhausted,
        message: "The server sent header fields of more than "
          + "\(self.configuration.maxHeaderListBytes) bytes.")
      self.perform(stream.machine.closed(error), on: stream, id)
    case .streamClosed(let id, let errorCode):
      self.finished.remove(id)
      if let stream = self.streams[id] { self.closed(stream, id, errorCode) }
    case .requestSent(let id): self.streams[id]?.isSent = true
    case .requestNotSent(let id):
      guard let stream = self.streams[id] else { return }
      self.remove(stream, id)
      let reason = self.farewell.map { ": \($0)" } ?? ""
      self.connections.replay(
        stream,
        error: RPCError(
          code: .unavailable,
          message: "\(self.configuration.endpoint) accepts no more streams\(reason)."))
    case .settings: self.becameReady()
    case .pingAcknowledged: self.keepalive?.pingAcknowledged(jitter: .random(in: 0...1))
    case .goAway(let errorCode, let debugText):
      let reason = debugText.isEmpty ? "" : ": '\(debugText)'"
      self.connections.keepalivePace.peerLeft(errorCode: errorCode)
      self.farewell = "the server sent GOAWAY (\(errorCode)\(reason))"
      self.drain()
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer, on id: Int32) {
    guard let stream = self.streams[id] else {
      self.windows.received(bytes.count, on: nil)
      return
    }
    self.windows.received(bytes.count, on: stream.key)
    self.touch(stream)
    let result = stream.machine.receivedData(bytes) { message in
      self.windows.completed(message.wireByteCount, on: stream.key)
      stream.undelivered.append(.message(message))
    }
    self.perform(result, on: stream, id)
  }

  private func closed(_ stream: ClientStream, _ id: Int32, _ errorCode: HTTP2ErrorCode) {
    let error = RPCError(streamResetWith: errorCode)
    if errorCode == .refusedStream, !stream.machine.hasResponded {
      self.remove(stream, id)
      self.connections.replay(stream, error: error)
    } else {
      self.perform(stream.machine.closed(error), on: stream, id)
      self.finished.remove(id)
    }
  }

  private func perform(
    _ result: StreamStateMachine.OnEvent, on stream: ClientStream, _ id: Int32
  ) {
    switch result {
    case .none: return
    case .metadata(let metadata):
      stream.undelivered.append(.metadata(metadata))
      self.windows.grow(stream.key)
      self.touch(stream)
      return
    case .status(let status, let metadata):
      stream.finish(stream.undelivered + [.status(status, metadata)])
    case .fail(let error): stream.fail(error, parts: stream.undelivered)
    }
    stream.undelivered.removeAll()
    self.remove(stream, id)
    // Until the event that the stream is closed: the request may still be under way.
    self.finished.insert(id)
  }
}
