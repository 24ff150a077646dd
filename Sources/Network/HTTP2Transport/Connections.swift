internal import Clocks
internal import EventLoop
internal import GRPCCore
internal import TLSStream

/// The streams of a transport and its connections: gives every stream a connection, makes new ones
/// when needed, and ends. Lives on the loop.
final class Connections: @unchecked Sendable {
  // Guard: apart from the constants, everything is touched on the loop's thread only.
  /// How often a request that the server did not look at is sent again: once (gRFC A6, "Transparent
  /// Retries"), since a server that refuses again and again must not be asked without a pause.
  private static let maxReplays = 1

  let loop: EventLoop
  let configuration: HTTP2ClientTransport.Configuration
  let tls: TLSContext?

  private var machine: ConnectionStateMachine
  var keepalivePace: KeepalivePace
  /// Takes new streams, or is being made.
  private var current: Connection?
  /// Finish their streams and take no new ones.
  private var draining: [Connection] = []
  /// Streams without a connection, served in order of their keys.
  private var waiting: [ReceiveWindows.Key: ClientStream] = [:]
  private var backoffTimer: EventLoop.TimerID?
  private var streamCount = 0
  private var isShuttingDown = false
  private var isKilled = false
  private var runner: CheckedContinuation<Void, Never>?

  init(configuration: HTTP2ClientTransport.Configuration) throws {
    try configuration.check()
    self.configuration = configuration
    switch configuration.security {
    case .plaintext: self.tls = nil
    case .tls(let caFile, let certificate):
      self.tls = try TLSContext.client(
        trust: caFile.map { .file($0) } ?? .system,
        identity: certificate.map {
          .files(certificateChain: $0.certificateFile, privateKey: $0.keyFile)
        }, applicationProtocols: ["h2"])
    }
    self.keepalivePace = KeepalivePace(interval: configuration.keepalive.interval)
    self.machine = ConnectionStateMachine(backoff: configuration.backoff)
    self.loop = try EventLoop(name: "http2", clock: configuration.clock)
  }

  /// Runs `work` on the loop. From any thread.
  func post(_ work: @escaping @Sendable (Connections) -> Void) {
    self.loop.execute { work(self) }
  }

  // MARK: Life

  func run(_ runner: CheckedContinuation<Void, Never>) {
    self.machine.run()
    self.runner = runner
    self.serveWaiting()
    self.endIfDone()
  }

  /// Ends once the application has left all streams.
  func shutDown() {
    self.isShuttingDown = true
    self.endIfDone()
  }

  /// Ends now: open streams fail.
  func kill() {
    self.isShuttingDown = true
    self.isKilled = true
    let error = RPCError(
      code: .cancelled, message: "The transport was stopped while the RPC was under way.")
    for stream in self.takeWaiting() { stream.fail(error.unprocessed()) }
    let connections = self.draining + (self.current.map { [$0] } ?? [])
    self.draining.removeAll()
    self.current = nil
    for connection in connections { connection.kill(error) }
    self.endIfDone()
  }

  private func endIfDone() {
    guard self.isShuttingDown, self.isKilled || self.streamCount == 0, let runner = self.runner
    else { return }
    let connections = self.draining + (self.current.map { [$0] } ?? [])
    self.draining.removeAll()
    self.current = nil
    for connection in connections { connection.close() }
    if let timer = self.backoffTimer { self.loop.cancel(timer) }
    self.backoffTimer = nil
    self.runner = nil
    self.loop.stop()
    runner.resume()
  }

  // MARK: Streams

  func streamBegan() { self.streamCount += 1 }

  /// Does what the task of a stream asked for since the last time.
  func attend(to stream: ClientStream) {
    let signals = stream.takeSignals()
    if let fields = signals.open {
      stream.requestFields = fields
      if self.isKilled {
        stream.fail(.shutDown().unprocessed())
      } else if !signals.isCancelled, !signals.isReleased {
        self.waiting[stream.key] = stream
        self.serveWaiting()
      }
    }
    if signals.takenByteCount > 0 {
      stream.connection?.taken(signals.takenByteCount, by: stream)
    }
    if signals.hasOutput { stream.connection?.resume(stream) }
    if signals.isCancelled || signals.isReleased {
      self.waiting[stream.key] = nil
      stream.connection?.cancel(stream)
    }
    if signals.isReleased {
      stream.connection?.forget(stream)
      stream.connection = nil
      self.streamCount -= 1
      self.endIfDone()
    }
  }

  /// A stream whose request the peer has certainly not looked at wants another connection.
  /// - Parameter error: what it gets, marked as `unprocessed`, when that cannot be done.
  func replay(_ stream: ClientStream, error: RPCError) {
    let previous = stream.connection
    stream.replays += 1
    guard stream.replays <= Self.maxReplays, !self.isKilled, stream.rewind() else {
      stream.fail(error.unprocessed())
      return
    }
    previous?.forget(stream)
    self.waiting[stream.key] = stream
    // Not at once: the connection may be about to tell that it takes no more streams.
    self.post { $0.serveWaiting() }
  }

  private func takeWaiting() -> [ClientStream] {
    defer { self.waiting.removeAll() }
    return self.waiting.values.sorted { $0.key < $1.key }
  }

  private func serveWaiting() {
    guard !self.waiting.isEmpty, !self.isKilled else { return }
    switch self.machine.streamWanted(now: self.loop.clock.now) {
    case .wait: return
    case .waitUntil(let deadline):
      guard self.backoffTimer == nil else { return }
      self.backoffTimer = self.loop.schedule(at: deadline) { [weak self] in
        self?.backoffTimer = nil
        self?.serveWaiting()
      }
    case .connect:
      let connection = Connection(connections: self)
      self.current = connection
      connection.start()
    case .use:
      guard let connection = self.current else { preconditionFailure("ready without connection") }
      for stream in self.takeWaiting() { connection.open(stream) }
    }
  }

  // MARK: Events of connections

  func connected(_ connection: Connection) {
    guard connection === self.current else { return }
    self.machine.connected()
    self.serveWaiting()
  }

  func answered(_ connection: Connection) {
    self.machine.answered()
    guard connection !== self.current else { return }
    if let timer = self.backoffTimer { self.loop.cancel(timer) }
    self.backoffTimer = nil
    self.serveWaiting()
  }

  /// The connection attempt failed. Streams that can wait do, unless waiting cannot help.
  func connectFailed(_ connection: Connection, _ error: TLSError) {
    guard connection === self.current else { return }
    self.current = nil
    self.machine.connectFailed(now: self.loop.clock.now, jitter: .random(in: -1...1))
    let failure = RPCError.connectFailed(self.configuration.endpoint, error)
    for stream in self.takeWaiting() {
      if stream.waitsForReady, !error.needsIntervention {
        self.waiting[stream.key] = stream
      } else {
        stream.fail(failure.unprocessed())
      }
    }
    self.serveWaiting()
  }

  /// The connection finishes what it has and takes no new streams.
  func isDraining(_ connection: Connection) {
    guard connection === self.current else { return }
    self.current = nil
    self.draining.append(connection)
    self.machine.connectionGone(now: self.loop.clock.now, jitter: .random(in: -1...1))
    self.serveWaiting()
  }

  func closed(_ connection: Connection) {
    self.draining.removeAll { $0 === connection }
    guard connection === self.current else { return }
    self.current = nil
    self.machine.connectionGone(now: self.loop.clock.now, jitter: .random(in: -1...1))
    self.serveWaiting()
  }
}
