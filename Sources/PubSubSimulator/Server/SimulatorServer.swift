internal import Glibc
internal import TLSStream

/// A fake Salesforce org with the Pub/Sub API: gRPC over HTTP/2, login, control.
public final class SimulatorServer: @unchecked Sendable {
  // Guard: `loop`, `clock` and `tokens` are immutable; everything else is touched only on the thread of
  // `loop`, once `start` has been called.

  public struct Addresses: Sendable {
    /// `https://localhost:PORT`, or `http://127.0.0.1:PORT` in plaintext.
    public var endpoint: String
  }

  let loop: EventLoop
  let clock: SimulatorClock
  let tokens: TokenRegistry
  private let org: Org
  private var listeners: [Listener] = []
  private var connections: [ObjectIdentifier: ServerConnection] = [:]
  private var livePublished = 0
  private var liveStart: Int64 = 0
  private var isNotifying = false

  private let onFailure: @Sendable (any Error) -> Void

  /// Makes the org and its first events; takes some seconds for a million.
  ///
  /// - Parameter onFailure: called, on the event loop, when events or the truth can no longer be written; the
  ///   program should end.
  public init(
    configuration: SimulatorConfiguration, onFailure: @escaping @Sendable (any Error) -> Void
  ) throws {
    self.onFailure = onFailure
    self.org = try Org(
      configuration: configuration, epoch: configuration.epoch ?? SimulatorClock.wallTime,
      onFailure: onFailure)
    self.loop = try EventLoop(name: "simulator")
    self.clock = self.org.clock
    self.tokens = self.org.tokens
  }

  /// Begins to serve gRPC.
  ///
  /// - Parameter tls: nil for plaintext.
  public func start() async throws -> Addresses {
    let port = try await self.onLoop { server in try server.listen(tls: nil) }
    return Addresses(endpoint: "http://127.0.0.1:\(port)")
  }

  /// Closes all connections.
  public func stop() async {
    try? await self.onLoop { server in
      for listener in server.listeners { listener.close() }
      server.listeners.removeAll()
      for connection in Array(server.connections.values) { connection.close() }
    }
    self.loop.stop()
  }

  private func listen(tls: TLSContext?) throws -> UInt16 {
    self.org.onPublish = { [unowned self] in self.notify() }
    let accept = { [unowned self] (socket: consuming Socket) in self.accept(socket, tls: tls) }
    let socket = try Socket.listen(host: "127.0.0.1", port: self.org.configuration.port)
    let port = try socket.localAddress.port
    self.listeners.append(try Listener(socket: socket, loop: self.loop, accept: accept))
    // for clients that try IPv6 first; a machine without it is served all the same
    if let socket = try? Socket.listen(host: "::1", port: port) {
      self.listeners.append(try Listener(socket: socket, loop: self.loop, accept: accept))
    }
    self.tick()
    self.liveStart = SimulatorClock.wallTime
    if self.org.configuration.liveRate > 0 { self.publishLive() }
    return port
  }

  private func accept(_ socket: consuming Socket, tls: TLSContext?) {
    do {
      let stream: any ByteStream =
        if let tls {
          try TLSConnection.server(context: tls, socket: socket)
        } else {
          PlaintextConnection(socket: socket)
        }
      let connection = try ServerConnection(stream: stream, loop: self.loop, org: self.org) {
        [unowned self] in self.connections[ObjectIdentifier($0)] = nil
      }
      self.connections[ObjectIdentifier(connection)] = connection
    } catch {
      // the client sees a closed connection; there is nobody else to tell
      return
    }
  }

  /// Looks after keepalives and credit.
  private func tick() {
    for connection in Array(self.connections.values) { connection.tick(at: self.clock.now) }
    self.loop.schedule(at: .now + .milliseconds(200)) { [weak self] in self?.tick() }
  }

  /// Once per turn of the loop, however many events were published.
  private func notify() {
    guard !self.isNotifying else { return }
    self.isNotifying = true
    self.loop.schedule(at: .now) { [weak self] in
      guard let self else { return }
      self.isNotifying = false
      for connection in Array(self.connections.values) { connection.eventsArrived() }
    }
  }

  private func publishLive() {
    let configuration = self.org.configuration
    let passed = Double(SimulatorClock.wallTime - self.liveStart) / 1000
    var due = Int(passed * configuration.liveRate)
    if let most = configuration.liveCount { due = min(due, most) }
    let count = min(due - self.livePublished, Self.slice)
    if count > 0 {
      do {
        try self.org.publish(count, topic: nil)
      } catch {
        self.onFailure(error)
        return
      }
      self.livePublished += count
    }
    if let most = configuration.liveCount, self.livePublished >= most { return }
    let pause = count == Self.slice ? 0 : max(5, min(1000, Int(1000 / configuration.liveRate)))
    self.loop.schedule(at: .now + .milliseconds(pause)) { [weak self] in self?.publishLive() }
  }

  /// Events that are published in one turn of the loop.
  private static let slice = 1000

  // MARK: Control

  /// Runs `body` on the loop.
  func onLoop<Result: Sendable>(
    _ body: @escaping @Sendable (SimulatorServer) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      self.loop.execute {
        continuation.resume(with: Swift.Result { try body(self) })
      }
    }
  }

  /// Publishes generated events now, in slices, and returns when all are in the log and the truth.
  ///
  /// - Parameter topic: only for objects of this topic.
  public func publish(_ count: Int, topic: String? = nil) async throws {
    var left = count
    while left > 0 {
      let slice = min(left, Self.slice)
      try await self.onLoop { server in
        if let topic, server.org.log.topics[topic] == nil {
          throw SimulatorError(.configuration, "unknown topic '\(topic)'")
        }
        try server.org.publish(slice, topic: topic)
      }
      left -= slice
    }
  }

  /// Moves the clock; keepalives, the 60 s rule and retention see it at once.
  public func advanceClock(byMilliseconds milliseconds: Int64) async throws {
    try await self.onLoop { server in
      server.clock.advance(byMilliseconds: milliseconds)
      for connection in Array(server.connections.values) { connection.tick(at: server.clock.now) }
    }
  }

  public func add(_ fault: Fault) async throws {
    try await self.onLoop { $0.org.faults.add(fault) }
  }

  /// From now on, new events use the newest versions of the schemas.
  public func changeSchemas() async throws {
    try await self.onLoop { $0.org.publisher.useNewSchemas(share: 1) }
  }

  /// `{"total":N,"clients":[…]}`, see README.
  public func deliveredJSON() async throws -> String {
    try await self.onLoop { $0.org.deliveries.json }
  }

  public var organizationID: String { self.tokens.organizationID }

  /// A token for clients that do not log in.
  public func issueToken() -> String { self.tokens.issue(at: self.clock.now) }
}
