internal import EventLoop
internal import SimulatedOrg
internal import TLSStream

/// Takes TLS off connections and forwards their bytes to a port on loopback. Confined to the event loop.
final class TLSFront {
  private let loop: EventLoop
  private let context: TLSContext
  private let backend: SocketAddress
  private var listeners: [Listener] = []
  private var tunnels: [ObjectIdentifier: Tunnel] = [:]

  init(loop: EventLoop, context: TLSContext, backendPort: UInt16) throws {
    self.loop = loop
    self.context = context
    guard
      let backend = try SocketAddress.resolve(host: "127.0.0.1", port: backendPort).first
    else { throw SimulatorError(.system, "127.0.0.1 cannot be resolved") }
    self.backend = backend
  }

  /// Returns the port.
  func listen(port: UInt16) throws -> UInt16 {
    let accept = { [unowned self] (socket: consuming Socket) in self.accept(socket) }
    let first = try Socket.listen(host: "127.0.0.1", port: port)
    let bound = try first.localAddress.port
    self.listeners.append(try Listener(socket: first, loop: self.loop, accept: accept))
    if let second = try? Socket.listen(host: "::1", port: bound) {
      self.listeners.append(try Listener(socket: second, loop: self.loop, accept: accept))
    }
    return bound
  }

  func close() {
    for listener in self.listeners { listener.close() }
    self.listeners.removeAll()
    for tunnel in Array(self.tunnels.values) { tunnel.close() }
  }

  private func accept(_ socket: consuming Socket) {
    do {
      let tunnel = try Tunnel(
        outside: TLSConnection.server(context: self.context, socket: socket),
        inside: PlaintextConnection(socket: Socket.connect(to: self.backend)), loop: self.loop
      ) { [unowned self] in self.tunnels[ObjectIdentifier($0)] = nil }
      self.tunnels[ObjectIdentifier(tunnel)] = tunnel
      tunnel.pump()
    } catch {
      // the client sees a closed connection
      return
    }
  }
}

/// Two streams whose bytes go into each other, each direction with one bounded buffer.
final class Tunnel {
  private struct Direction {
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    var filled = 0
    var sent = 0
    var isEnded = false
    var isShutDown = false
  }

  private let outside: any ByteStream
  private let inside: any ByteStream
  private let loop: EventLoop
  private let onClose: (Tunnel) -> Void
  private var inward = Direction()
  private var outward = Direction()
  private var isHandshaking = true
  private var isClosed = false

  init(
    outside: any ByteStream, inside: any ByteStream, loop: EventLoop,
    onClose: @escaping (Tunnel) -> Void
  ) throws {
    self.outside = outside
    self.inside = inside
    self.loop = loop
    self.onClose = onClose
    try loop.register(outside.descriptor, interest: .readable) { [weak self] _ in self?.pump() }
    // writable first: that is when the connection stands
    try loop.register(inside.descriptor, interest: .writable) { [weak self] _ in self?.pump() }
  }

  func close() {
    guard !self.isClosed else { return }
    self.isClosed = true
    self.loop.deregister(self.outside.descriptor)
    self.loop.deregister(self.inside.descriptor)
    self.onClose(self)
  }

  /// Moves what can be moved now.
  func pump() {
    guard !self.isClosed else { return }
    do {
      if self.isHandshaking {
        switch try self.outside.handshake() {
        case .done: self.isHandshaking = false
        case .wantsRead: return try self.loop.update(self.outside.descriptor, interest: .readable)
        case .wantsWrite: return try self.loop.update(self.outside.descriptor, interest: .writable)
        case .closed: return self.close()
        }
      }
      var outsideInterest: EventLoop.Readiness = []
      var insideInterest: EventLoop.Readiness = []
      try Self.move(
        &self.inward, from: self.outside, to: self.inside, &outsideInterest, &insideInterest)
      try Self.move(
        &self.outward, from: self.inside, to: self.outside, &insideInterest, &outsideInterest)
      if self.outward.isShutDown || (self.inward.isShutDown && self.outward.isEnded) {
        return self.close()
      }
      try self.loop.update(self.outside.descriptor, interest: outsideInterest)
      try self.loop.update(self.inside.descriptor, interest: insideInterest)
    } catch {
      self.close()
    }
  }

  private static func move(
    _ direction: inout Direction, from source: any ByteStream, to target: any ByteStream,
    _ sourceInterest: inout EventLoop.Readiness, _ targetInterest: inout EventLoop.Readiness
  ) throws {
    while true {
      while direction.sent < direction.filled {
        let step = try direction.buffer.withUnsafeBytes {
          try target.write(
            UnsafeRawBufferPointer(rebasing: $0[direction.sent..<direction.filled]))
        }
        switch step {
        case .done(let count): direction.sent += count
        case .wantsRead: return targetInterest.formUnion(.readable)
        case .wantsWrite: return targetInterest.formUnion(.writable)
        case .closed: throw SimulatorError(.system, "the other side is gone")
        }
      }
      direction.sent = 0
      direction.filled = 0
      if direction.isEnded {
        if !direction.isShutDown {
          direction.isShutDown = true
          _ = try target.shutdown()
        }
        return
      }
      switch try direction.buffer.withUnsafeMutableBytes({ try source.read(into: $0) }) {
      case .done(let count): direction.filled = count
      case .wantsRead: return sourceInterest.formUnion(.readable)
      case .wantsWrite: return sourceInterest.formUnion(.writable)
      case .closed: direction.isEnded = true
      }
    }
  }
}
