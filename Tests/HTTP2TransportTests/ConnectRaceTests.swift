import GRPCCore
import Glibc
import TLSStream
import TestSupport
import Testing

@testable import HTTP2Transport

@Suite("Racing connection attempts")
struct ConnectRaceTests {
  let start = ContinuousClock.now

  /// The order in which addresses are tried when each fails at once.
  func order(_ families: [Int32]) -> [Int] {
    var race = ConnectRace(families: families)
    var order: [Int] = []
    while case .connect(let index) = race.step(now: self.start) {
      order.append(index)
      race.failed(index)
    }
    #expect(race.step(now: self.start) == .failed)
    return order
  }

  @Test("Address families alternate, beginning with the preferred one") func families() {
    let (four, six) = (AF_INET, AF_INET6)
    #expect(self.order([]) == [])
    #expect(self.order([four]) == [0])
    #expect(self.order([six, six, six, four, four]) == [0, 3, 1, 4, 2])
    #expect(self.order([four, six, six]) == [0, 1, 2])
    #expect(self.order([six, six]) == [0, 1])
  }

  @Test("Each address has a head start on the next") func headStart() {
    var race = ConnectRace(families: [AF_INET6, AF_INET, AF_INET6])
    let at = { (milliseconds: Int) in self.start + .milliseconds(milliseconds) }
    #expect(race.step(now: at(0)) == .connect(0))
    #expect(race.step(now: at(0)) == .waitUntil(at(250)))
    #expect(race.step(now: at(249)) == .waitUntil(at(250)))
    #expect(race.step(now: at(250)) == .connect(1))
    #expect(race.step(now: at(251)) == .waitUntil(at(500)))
    #expect(race.step(now: at(600)) == .connect(2))
    #expect(race.step(now: at(600)) == .wait)
    race.failed(1)
    race.failed(0)
    #expect(race.step(now: at(700)) == .wait)
    race.failed(2)
    #expect(race.step(now: at(701)) == .failed)
  }

  @Test("A failed attempt starts the next one at once") func failure() {
    var race = ConnectRace(families: [AF_INET, AF_INET, AF_INET])
    #expect(race.step(now: self.start) == .connect(0))
    race.failed(0)
    #expect(race.step(now: self.start) == .connect(1))
    #expect(race.step(now: self.start) == .waitUntil(self.start + .milliseconds(250)))
    race.failed(1)
    #expect(race.step(now: self.start) == .connect(2))
    #expect(race.step(now: self.start) == .wait)
  }

  /// An address that swallows every attempt: a listener that accepts nothing, its queue full.
  final class BlackHole {
    let address: SocketAddress
    private let listener: Int32
    private var connections: [Int32] = []

    init() throws {
      self.listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let descriptor = self.listener
      let port = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
          bind(descriptor, pointer, length)
          listen(descriptor, 0)
          getsockname(descriptor, pointer, &length)
          return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
            UInt16(bigEndian: $0.pointee.sin_port)
          }
        }
      }
      self.address = try #require(try SocketAddress.resolve(host: "127.0.0.1", port: port).first)
      for _ in 0..<4 {
        let connection = socket(
          AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(connection, $0, length)
          }
        }
        self.connections.append(connection)
      }
    }

    deinit { for descriptor in self.connections + [self.listener] { close(descriptor) } }
  }

  @Test("The next address overtakes one that does not answer") func silentAddress() async throws {
    let (hole, peer) = (try BlackHole(), try PythonServer("grpcio_peer.py"))
    let unused = try Socket.listen(host: "127.0.0.1", port: 0).localAddress
    let addresses =
      [hole.address, unused, hole.address]
      + (try SocketAddress.resolve(host: "127.0.0.1", port: peer.port))
    var configuration = configuration(port: 1, host: "several.invalid")
    configuration.resolver = { _, _ throws(TLSError) in addresses }
    let echoed = try await withClient(configuration) { try await $0.text("Unary", "x") }
    #expect(echoed == "x")
  }

  @Test("The error names every address that failed") func failedAddresses() async throws {
    let hole = try BlackHole()
    let unused = try Socket.listen(host: "127.0.0.1", port: 0).localAddress
    var configuration = configuration(port: 1, host: "several.invalid")
    configuration.connectTimeout = .milliseconds(400)
    let addresses = [hole.address, unused]
    configuration.resolver = { _, _ throws(TLSError) in addresses }
    try await withClient(configuration) { client in
      let error = try await rpcError { try await client.text("Unary") }
      #expect(error.message.contains("connect to \(hole.address): no answer in time"), "\(error)")
      #expect(error.message.contains("connect to \(unused): Connection refused"), "\(error)")
    }
  }
}
