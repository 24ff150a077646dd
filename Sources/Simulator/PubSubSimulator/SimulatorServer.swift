internal import Clocks
internal import EventLoop
internal import Foundation
internal import Glibc
internal import RehearsalClock
internal import SimulatedOrg
internal import TLSStream

/// A fake Salesforce org with the Pub/Sub API: gRPC over HTTP/2, login, control.
package final class SimulatorServer: @unchecked Sendable {
  // Guard: `loop`, `configuration`, `clock`, `tokens`, `refreshTokens` and `assertions` are immutable; everything else is touched only on the thread of
  // `loop`, once `start` has been called.

  package struct Addresses: Sendable {
    /// `https://localhost:PORT`, or `http://127.0.0.1:PORT` in plaintext.
    package var endpoint: String
    /// PEM file of the authority to trust; nil in plaintext.
    package var caFile: String?
    /// `https://localhost:PORT`, or `http://127.0.0.1:PORT` in plaintext.
    package var loginURL: String
    /// `http://127.0.0.1:PORT`
    package var controlURL: String
    /// The value of the header `X-Simulator-Secret`, without which the control interface refuses a
    /// request.
    package var controlSecret: String
  }

  /// The clock of the loop if the time is served; nil: the machine's.
  let served: ServedClock?
  let loop: EventLoop
  let configuration: SimulatorConfiguration
  let clock: SimulatorClock
  let tokens: TokenRegistry
  let refreshTokens: RefreshTokenRegistry
  /// Nil: the JWT bearer flow is off.
  let assertions: AssertionVerifier?
  let org: Org
  private let httpServers = Lock<[LoopbackHTTPServer]>([])
  private var loginFront: TLSFront?
  /// Where the CA is.
  private let directory: String
  private let isDirectoryOurs: Bool
  private var listeners: [Listener] = []
  private var connections: [ObjectIdentifier: ServerConnection] = [:]
  /// Live events published before this start.
  private var liveBase = 0
  private var liveStart: Int64 = 0
  private var isNotifying = false

  private let onFailure: @Sendable (any Error) -> Void

  /// Makes the org and its first events; takes some seconds for a million.
  ///
  /// - Parameters:
  ///   - servesClock: whether `makeClock` will serve the time.
  ///   - onFailure: called, on the event loop, when events or the truth can no longer be written; the
  ///     program should end.
  package init(
    configuration: SimulatorConfiguration, servesClock: Bool = false,
    onFailure: @escaping @Sendable (any Error) -> Void
  ) throws {
    self.onFailure = onFailure
    self.configuration = configuration
    if let directory = configuration.org.stateDirectory {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
      // The CA's path goes into other programs' environments, which may run anywhere.
      self.directory =
        directory.utf8.first == UInt8(ascii: "/")
        ? directory : "\(FileManager.default.currentDirectoryPath)/\(directory)"
      self.isDirectoryOurs = false
    } else {
      self.directory = try Self.temporaryDirectory()
      self.isDirectoryOurs = true
    }
    self.org = try Org(
      configuration: configuration.org,
      epoch: try Self.epoch(configuration.org, directory: self.directory), onFailure: onFailure)
    self.served = servesClock ? ServedClock(wallShift: 0) : nil
    self.loop = try EventLoop(
      name: "simulator", clock: self.served.map { ProcessClock($0) } ?? ProcessClock())
    self.clock = self.org.clock
    self.tokens = self.org.tokens
    self.refreshTokens = self.org.refreshTokens
    self.assertions = try configuration.org.jwtCertificateFile.map(AssertionVerifier.init(file:))
  }

  /// Begins to serve gRPC, login and control.
  package func start() async throws -> Addresses {
    let configuration = self.configuration
    let authority =
      try configuration.isPlaintext
      ? nil : CertificateAuthority(directory: self.directory)
    func context(_ protocols: [String]) throws -> TLSContext? {
      try authority.map {
        try TLSContext.server(
          identity: .files(
            certificateChain: $0.serverCertificatePath, privateKey: $0.serverKeyPath),
          applicationProtocols: protocols)
      }
    }
    let controlSecret = ControlAccess.makeSecret()
    let control = ControlEndpoint(server: self, access: ControlAccess(secret: controlSecret))
    let controlServer = try LoopbackHTTPServer(port: configuration.controlPort) {
      await control.respond(to: $0)
    }
    let instanceURL = Lock("")
    let login = LoginEndpoint(server: self) { instanceURL.withLock { $0 } }
    let rest = RESTEndpoint(server: self)
    let loginServer = try LoopbackHTTPServer(
      port: authority == nil ? configuration.loginPort : 0
    ) { request in
      RESTEndpoint.handles(request.path)
        ? await rest.respond(to: request) : await login.respond(to: request)
    }
    self.httpServers.withLock { $0 = [controlServer, loginServer] }
    var loginURL = "http://127.0.0.1:\(loginServer.port)"
    if let tls = try context(["http/1.1"]) {
      let port = try await self.onLoop { server in
        let front = try TLSFront(
          loop: server.loop, context: tls, backendPort: loginServer.port)
        server.loginFront = front
        return try front.listen(port: configuration.loginPort)
      }
      loginURL = "https://localhost:\(port)"
    }
    instanceURL.withLock { [loginURL] in $0 = loginURL }
    let tls = try context(["h2"])
    let port = try await self.onLoop { server in try server.listen(tls: tls) }
    return Addresses(
      endpoint: tls == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)",
      caFile: authority?.certificatePath, loginURL: loginURL,
      controlURL: "http://127.0.0.1:\(controlServer.port)", controlSecret: controlSecret)
  }

  /// Closes all connections.
  package func stop() async {
    try? await self.onLoop { server in
      for listener in server.listeners { listener.close() }
      server.listeners.removeAll()
      for connection in Array(server.connections.values) { connection.close() }
      server.loginFront?.close()
    }
    for server in self.httpServers.withLock({ $0 }) { await server.stop() }
    self.loop.stop()
    if self.isDirectoryOurs { try? FileManager.default.removeItem(atPath: self.directory) }
  }

  private static func temporaryDirectory() throws -> String {
    var path = Array("/tmp/pubsub-simulator-XXXXXX".utf8CString)
    guard mkdtemp(&path) != nil else { throw SimulatorError.system("mkdtemp") }
    return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Where the control interface writes. Only this user can reach it, and nothing else is in it.
  func statesDirectory() throws -> String {
    let path = "\(self.directory)/states"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return path
  }

  /// Kept in the directory, so that a restart gives the same times.
  private static func epoch(
    _ configuration: SimulatedOrgConfiguration, directory: String
  ) throws -> Int64 {
    if let epoch = configuration.epoch { return epoch }
    let path = "\(directory)/epoch"
    if let text = try? String(contentsOfFile: path, encoding: .utf8) {
      guard let epoch = Int64(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
        throw SimulatorError(
          .configuration, "\(path) does not contain epoch milliseconds; remove it, or use --epoch")
      }
      return epoch
    }
    let epoch = SimulatorClock.wallTime
    try "\(epoch)\n".write(toFile: path, atomically: true, encoding: .utf8)
    return epoch
  }

  var connectionCount: Int { self.connections.count }

  func tickConnections() {
    for connection in Array(self.connections.values) { connection.tick(at: self.clock.now) }
  }

  private func listen(tls: TLSContext?) throws -> UInt16 {
    self.org.onPublish = { [unowned self] in self.notify() }
    let accept = { [unowned self] (socket: consuming Socket) in self.accept(socket, tls: tls) }
    let socket = try Socket.listen(host: "127.0.0.1", port: self.configuration.port)
    let port = try socket.localAddress.port
    self.listeners.append(try Listener(socket: socket, loop: self.loop, accept: accept))
    // for clients that try IPv6 first; a machine without it is served all the same
    if let socket = try? Socket.listen(host: "::1", port: port) {
      self.listeners.append(try Listener(socket: socket, loop: self.loop, accept: accept))
    }
    // A served clock is moved to what is due, and does it.
    if self.served == nil { self.tickAgainAndAgain() }
    self.liveStart = SimulatorClock.wallTime
    self.liveBase = self.org.livePublished
    if self.configuration.liveRate > 0 { self.publishLive() }
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
      let connection = try ServerConnection(
        stream: stream, loop: self.loop, org: self.org,
        maxConcurrentStreams: self.configuration.maxConcurrentStreams
      ) { [unowned self] in self.connections[ObjectIdentifier($0)] = nil
      }
      try connection.start()
      self.connections[ObjectIdentifier(connection)] = connection
    } catch {
      // the client sees a closed connection; there is nobody else to tell
      return
    }
  }

  /// Looks after keepalives, credit and Bulk jobs.
  /// Does what is due now. Returns when something is due next, epoch milliseconds; nil for never.
  func tickOnce() -> Int64? {
    do {
      try self.org.advanceDataAPI()
    } catch {
      self.onFailure(error)
    }
    self.tickConnections()
    return self.connections.values.compactMap(\.due).min()
  }

  private func tickAgainAndAgain() {
    _ = self.tickOnce()
    self.loop.schedule(at: self.loop.clock.now + .milliseconds(200)) { [weak self] in
      self?.tickAgainAndAgain()
    }
  }

  /// Once per turn of the loop, however many events were published.
  private func notify() {
    guard !self.isNotifying else { return }
    self.isNotifying = true
    self.loop.schedule(at: self.loop.clock.now) { [weak self] in
      guard let self else { return }
      self.isNotifying = false
      for connection in Array(self.connections.values) { connection.eventsArrived() }
    }
  }

  private func publishLive() {
    let configuration = self.configuration
    let passed = Double(SimulatorClock.wallTime - self.liveStart) / 1000
    var due = Int(passed * configuration.liveRate) + self.liveBase
    if let most = configuration.liveCount { due = min(due, most) }
    let count = min(due - self.org.livePublished, Self.slice)
    if count > 0 {
      do {
        try self.org.publish(count, topic: nil, isLive: true)
      } catch {
        self.onFailure(error)
        return
      }
    }
    if let most = configuration.liveCount, self.org.livePublished >= most { return }
    let pause = count == Self.slice ? 0 : max(5, min(1000, Int(1000 / configuration.liveRate)))
    self.loop.schedule(at: self.loop.clock.now + .milliseconds(pause)) { [weak self] in
      self?.publishLive()
    }
  }

  /// Events that are published in one turn of the loop.
  static let slice = 1000

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

  /// What can be served.
  package static var topicNames: [String] { Topic.all.map(\.name) }

  package var organizationID: String { self.tokens.organizationID }

  /// A token for clients that do not log in.
  package func issueToken() -> String { self.tokens.issue(at: self.clock.now) }
}
