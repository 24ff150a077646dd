internal import CNGHTTP2
internal import Clocks
internal import EventLoop
internal import SimulatedOrg
internal import TLSStream

/// One client connection: socket, TLS, HTTP/2 and the calls on it. Confined to the event loop.
final class ServerConnection {
  /// Unsent bytes are gathered up to this.
  private static let outputLimit = 64 << 10
  /// Writes in a row before other connections get their turn.
  private static let writesPerTurn = 32
  /// The first bytes of a client, RFC 9113 section 3.4.
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private struct OpenCall {
    var call: any Call
    var deframer = MessageDeframer()
  }

  private let org: Org
  private let loop: EventLoop
  private let stream: any ByteStream
  private let session: HTTP2ServerSession
  private var calls: [Int32: OpenCall] = [:]
  private var output: [UInt8] = []
  private var outputStart = 0
  private var isHandshaking = true
  private var isProtocolKnown = false
  private var isClosed = false
  private var isFlushScheduled = false
  private var isReceiving = false
  private let onClose: (ServerConnection) -> Void

  init(
    stream: any ByteStream, loop: EventLoop, org: Org, maxConcurrentStreams: UInt32,
    onClose: @escaping (ServerConnection) -> Void
  ) throws {
    self.stream = stream
    self.loop = loop
    self.org = org
    self.onClose = onClose
    self.session = try HTTP2ServerSession(
      maxConcurrentStreams: maxConcurrentStreams)
  }

  /// Begins to serve.
  func start() throws {
    try self.loop.register(self.stream.descriptor, interest: .readable) { [weak self] readiness in
      self?.ready(readiness)
    }
  }

  // MARK: Socket

  private func ready(_ readiness: EventLoop.Readiness) {
    guard !self.isClosed else { return }
    do {
      if self.isHandshaking, try !self.handshake() { return }
      if readiness.contains(.readable) { try self.readAll() }
      try self.flush()
    } catch {
      self.close()
    }
  }

  private func handshake() throws -> Bool {
    switch try self.stream.handshake() {
    case .done:
      self.isHandshaking = false
      return true
    case .wantsRead: try self.loop.update(self.stream.descriptor, interest: .readable)
    case .wantsWrite: try self.loop.update(self.stream.descriptor, interest: .writable)
    case .closed: self.close()
    }
    return false
  }

  private func readAll() throws {
    self.isReceiving = true
    defer { self.isReceiving = false }
    while !self.isClosed {
      let step = try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) {
        buffer -> StreamStep in
        let step = try self.stream.read(into: buffer)
        if case .done(let count) = step {
          self.received(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        return step
      }
      switch step {
      case .done: continue
      case .wantsRead, .wantsWrite: return
      case .closed: self.close()
      }
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    if !self.isProtocolKnown {
      self.isProtocolKnown = true
      guard bytes.prefix(Self.preface.count).elementsEqual(Self.preface.prefix(bytes.count)) else {
        // what the service answers to a probe by plain HTTP
        self.output +=
          ("HTTP/1.1 415 Unsupported Media Type\r\ncontent-length: 0\r\n"
          + "connection: close\r\n\r\n").utf8
        _ = try? self.write()
        self.close()
        return
      }
    }
    guard let events = self.session.receive(bytes) else {
      self.close()
      return
    }
    self.handle(events)
  }

  private func scheduleFlush() {
    guard !self.isFlushScheduled, !self.isReceiving, !self.isClosed else { return }
    self.isFlushScheduled = true
    self.loop.schedule(at: self.loop.clock.now) { [weak self] in
      guard let self else { return }
      self.isFlushScheduled = false
      if !self.isClosed, !self.isHandshaking {
        do { try self.flush() } catch { self.close() }
      }
    }
  }

  private func flush() throws {
    for _ in 0..<Self.writesPerTurn {
      guard !self.isClosed else { return }
      if self.outputStart == self.output.count {
        self.output.removeAll(keepingCapacity: true)
        self.outputStart = 0
        self.handle(self.session.send(into: &self.output, limit: Self.outputLimit))
        if self.output.isEmpty {
          if !self.session.isAlive {
            self.close()
          } else {
            try self.loop.update(self.stream.descriptor, interest: .readable)
          }
          return
        }
      }
      if try !self.write() {
        try self.loop.update(self.stream.descriptor, interest: [.readable, .writable])
        return
      }
    }
    self.scheduleFlush()
  }

  /// Returns false when the socket takes no more now.
  @discardableResult
  private func write() throws -> Bool {
    while self.outputStart < self.output.count {
      let step = try self.output.withUnsafeBytes {
        try self.stream.write(UnsafeRawBufferPointer(rebasing: $0[self.outputStart...]))
      }
      switch step {
      case .done(let count): self.outputStart += count
      case .wantsRead, .wantsWrite: return false
      case .closed:
        self.close()
        return true
      }
    }
    return true
  }

  /// Closes the TCP connection.
  func close() {
    guard !self.isClosed else { return }
    self.isClosed = true
    for open in self.calls.values { open.call.closed() }
    self.calls.removeAll()
    self.session.removeSources()
    self.loop.deregister(self.stream.descriptor)
    _ = try? self.stream.shutdown()
    self.onClose(self)
  }

  // MARK: Calls

  private func handle(_ events: [HTTP2ServerSession.Event]) {
    for event in events where !self.isClosed {
      switch event {
      case .request(let stream, let headers): self.begin(stream, headers)
      case .data(let stream, let bytes): self.received(bytes, on: stream)
      case .endOfInput(let stream): self.calls[stream]?.call.inputEnded()
      case .closed(let stream): self.calls.removeValue(forKey: stream)?.call.closed()
      }
    }
  }

  private func begin(_ stream: Int32, _ list: [HTTP2Header]) {
    let headers = Dictionary(list.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
    guard headers[":method"] == "POST",
      headers["content-type", default: ""].hasPrefix("application/grpc")
    else {
      self.session.respond(
        stream, headers: [HTTP2Header(":status", "415"), HTTP2Header("content-length", "0")])
      return
    }
    let path = headers[":path", default: ""]
    let service = "/eventbus.v1.PubSub/"
    let method = path.hasPrefix(service) ? String(path.dropFirst(service.count)) : ""
    let context = CallContext(
      stream: stream, rpcID: self.org.newRPCID(), method: method,
      client: headers["user-agent", default: "unknown"], connection: self, org: self.org)
    do throws(ServiceFault) {
      guard let make = Self.methods[method] else { throw .unimplemented(path) }
      if headers["grpc-encoding", default: "identity"] != "identity" {
        throw ServiceFault(
          status: .unimplemented, code: nil, message: "Compressed requests are not supported.")
      }
      try self.org.tokens.authenticate(
        token: headers["accesstoken"], instanceURL: headers["instanceurl"],
        tenantID: headers["tenantid"], at: context.now)
      self.calls[stream] = OpenCall(call: make(context))
    } catch {
      self.respondWithTrailersOnly(stream, context.trailers(of: error))
    }
  }

  private static let methods: [String: @Sendable (CallContext) -> any Call] = [
    "GetTopic": { UnaryCall(context: $0, answer: UnaryMethods.getTopic) },
    "GetSchema": { UnaryCall(context: $0, answer: UnaryMethods.getSchema) },
    "Publish": { UnaryCall(context: $0, answer: UnaryMethods.publish) },
    "PublishStream": { PublishStreamCall(context: $0) },
    "ManagedSubscribe": { ManagedSubscribeCall(context: $0) },
    "Subscribe": { SubscribeCall(context: $0) },
  ]

  private func received(_ bytes: [UInt8], on stream: Int32) {
    self.calls[stream]?.deframer.append(bytes)
    do throws(MessageDeframer.Failure) {
      while let message = try self.calls[stream]?.deframer.next() {
        self.calls[stream]?.call.received(message)
      }
    } catch {
      // a request that is too large ends at transport level, as does one that pretends to be compressed
      self.reset(
        stream,
        code: UInt32(error == .tooLarge ? NGHTTP2_CANCEL.rawValue : NGHTTP2_PROTOCOL_ERROR.rawValue)
      )
    }
  }

  func tick(at now: Int64) {
    for open in Array(self.calls.values) { open.call.tick(at: now) }
  }

  /// When `tick` will have something to do; nil for never.
  var due: Int64? { self.calls.values.compactMap(\.call.due).min() }

  func eventsArrived() {
    for open in Array(self.calls.values) { open.call.eventsArrived() }
  }

  // MARK: For calls

  func respond(_ stream: Int32, headers: [HTTP2Header], source: any ResponseSource) {
    self.session.respond(stream, headers: headers, source: source)
    self.scheduleFlush()
  }

  func respondWithTrailersOnly(_ stream: Int32, _ trailers: [HTTP2Header]) {
    self.session.respond(stream, headers: CallContext.responseHeaders + trailers)
    self.scheduleFlush()
  }

  func resume(_ stream: Int32) {
    self.session.resume(stream)
    self.scheduleFlush()
  }

  func reset(_ stream: Int32, code: UInt32) {
    self.session.reset(stream, code: code)
    self.scheduleFlush()
  }

  func goAway() {
    self.session.goAway()
    self.scheduleFlush()
  }

  /// Half a message, then the end of the stream.
  func truncate(_ stream: Int32) {
    self.session.interrupt(stream, bytes: [0, 0, 0, 0, 200] + [UInt8](repeating: 0x0a, count: 100))
    self.scheduleFlush()
  }

  func after(milliseconds: Int, _ work: @escaping () -> Void) {
    self.loop.schedule(at: self.loop.clock.now + .milliseconds(milliseconds), work)
  }

  /// Not inside the library's callback.
  func soon(_ work: @escaping () -> Void) {
    self.loop.schedule(at: self.loop.clock.now, work)
  }
}
