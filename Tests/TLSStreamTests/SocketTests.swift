import EventLoop
import TLSStream
import Testing

@Suite("Sockets")
struct SocketTests {
  @Test("Sockets accept, connect and report readiness") func connects() async throws {
    let loop = try EventLoop(name: "test")
    let received: [UInt8] = try await withCheckedThrowingContinuation { continuation in
      loop.execute {
        let session = EchoOnce(loop: loop, continuation: continuation)
        do { try session.start() } catch { continuation.resume(throwing: error) }
      }
    }
    #expect(received == [1, 2, 3])
    loop.stop()
  }

  @Test("Host names are resolved off the event loop") func resolving() async throws {
    let loop = try EventLoop(name: "test")
    let result = await withCheckedContinuation { continuation in
      SocketAddress.resolve(
        host: "127.0.0.1", port: 80, on: loop,
        with: { host, port throws(TLSError) in try SocketAddress.resolve(host: host, port: port) }
      ) { result in
        continuation.resume(returning: result.map { "\($0[0]) \(loop.isCurrent)" })
      }
    }
    #expect(try result.get() == "127.0.0.1:80 true")
  }

  @Test("A refused connection is reported as refused") func refused() async throws {
    let port = try unusedPort()
    let loop = try EventLoop(name: "test")
    let error: (any Error)? = await withCheckedContinuation { continuation in
      loop.execute {
        do {
          let address = try SocketAddress.resolve(host: "127.0.0.1", port: port)[0]
          let attempt = Attempt(socket: try Socket.connect(to: address))
          try loop.register(attempt.socket.descriptor, interest: .writable) { _ in
            loop.deregister(attempt.socket.descriptor)
            do {
              try attempt.socket.finishConnecting(to: address)
              continuation.resume(returning: nil)
            } catch { continuation.resume(returning: error) }
          }
        } catch { continuation.resume(returning: error) }
      }
    }
    let refused = try #require(error as? TLSError)
    #expect(refused.code == .connectFailed)
    #expect(refused.message.contains("Connection refused"))
  }

  private func unusedPort() throws -> UInt16 {
    try Socket.listen(host: "127.0.0.1", port: 0).localAddress.port
  }
}

private final class Attempt {
  let socket: Socket
  init(socket: consuming Socket) { self.socket = socket }
}

/// A listener on loopback and a client that writes three bytes to it.
private final class EchoOnce {
  private let loop: EventLoop
  private var continuation: CheckedContinuation<[UInt8], any Error>?
  private var listener: Attempt?
  private var client: PlaintextConnection?
  private var server: PlaintextConnection?

  init(loop: EventLoop, continuation: CheckedContinuation<[UInt8], any Error>) {
    self.loop = loop
    self.continuation = continuation
  }

  func start() throws {
    let listener = Attempt(socket: try Socket.listen(host: "127.0.0.1", port: 0))
    self.listener = listener
    try self.loop.register(listener.socket.descriptor, interest: .readable) { _ in
      self.attempt { try self.accept() }
    }
    let client = PlaintextConnection(
      socket: try Socket.connect(to: try listener.socket.localAddress))
    self.client = client
    try self.loop.register(client.descriptor, interest: .writable) { _ in
      self.attempt {
        try self.loop.update(client.descriptor, interest: [])
        let bytes: [UInt8] = [1, 2, 3]
        _ = try bytes.withUnsafeBytes { try client.write($0) }
      }
    }
  }

  private func accept() throws {
    guard let accepted = try self.listener?.socket.accept() else { return }
    let server = PlaintextConnection(socket: accepted)
    self.server = server
    try self.loop.register(server.descriptor, interest: .readable) { _ in
      self.attempt {
        var buffer = [UInt8](repeating: 0, count: 16)
        let step = try buffer.withUnsafeMutableBytes { try server.read(into: $0) }
        guard case .done(let count) = step else { return }
        self.continuation?.resume(returning: Array(buffer.prefix(count)))
        self.continuation = nil
      }
    }
  }

  private func attempt(_ body: () throws -> Void) {
    do { try body() } catch {
      self.continuation?.resume(throwing: error)
      self.continuation = nil
    }
  }
}
