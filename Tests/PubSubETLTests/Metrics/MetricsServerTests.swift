import Clocks
import EventLoop
import Glibc
import Pipeline
import Testing

@testable import PubSubETL

/// Over real sockets. Clients block, so nothing here waits for a time.
@Suite("Server of metrics") struct MetricsServerTests {
  /// A client that does what it is told.
  private final class Client {
    private let socket: Int32

    init(_ port: UInt16) throws {
      self.socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      let code = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(self.socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      try #require(code == 0)
    }

    deinit { close(self.socket) }

    /// - Returns: false if the server has closed.
    @discardableResult
    func send(_ text: String) -> Bool {
      let bytes = Array(text.utf8)
      return Glibc.send(self.socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Everything that comes until the server closes.
    func receiveAll() -> String {
      var all: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 65_536)
      while case let count = recv(self.socket, &chunk, chunk.count, 0), count > 0 {
        all += chunk[..<count]
      }
      return String(decoding: all, as: UTF8.self)
    }

    func get(_ path: String, _ headers: String = "") -> String {
      self.send("GET \(path) HTTP/1.1\r\n\(headers)\r\n")
      return self.receiveAll()
    }
  }

  private let endpoint: MetricsEndpoint
  private let reading: MetricReading

  init() {
    self.reading = MetricReading(pipeline: "p", statistics: RunStatistics(topics: ["/data/A"]))
    self.endpoint = MetricsEndpoint(self.reading)
  }

  /// A server, and the port that the system chose for it.
  private func serve(
    _ limits: MetricsServer.Limits = MetricsServer.Limits(),
    answer: (@Sendable (MetricsRequest) -> MetricsResponse)? = nil
  ) throws -> (MetricsServer, UInt16) {
    let server = try MetricsServer(
      MetricsAddress(host: "127.0.0.1", port: 0), clock: ProcessClock(), limits: limits,
      onFailure: { Issue.record("\($0)") }, answer: answer ?? self.endpoint.answer)
    return (server, try #require(server.address.split(separator: ":").last.flatMap { UInt16($0) }))
  }

  @Test("Metrics come in both formats, with their length, and the connection is closed")
  func metrics() throws {
    let (server, port) = try self.serve()
    let plain = try Client(port).get("/metrics")
    let parts = plain.split(separator: "\r\n\r\n", maxSplits: 1)
    #expect(parts[0].hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"))
    #expect(parts[0].contains("\r\nContent-Length: \(parts[1].utf8.count)\r\n"))
    #expect(parts[0].hasSuffix("\r\nConnection: close"))
    #expect(
      String(parts[1]) == MetricText(self.reading.samples, as: .prometheus, in: .endpoint).text)
    let open = try Client(port).get("/metrics", "Accept: application/openmetrics-text\r\n")
    #expect(open.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0;"))
    #expect(open.hasSuffix("# EOF\n"))
    server.stop()
  }

  @Test("A probe learns whether the run exports what arrives, and what keeps it from that")
  func probes() throws {
    let (server, port) = try self.serve()
    #expect(try Client(port).get("/healthz").hasSuffix("\r\n\r\nok\n"))
    let notReady = try Client(port).get("/readyz")
    #expect(notReady.hasPrefix("HTTP/1.1 503 "))
    #expect(notReady.hasSuffix("topic /data/A: no open stream\n"))
    var ready = self.reading
    ready.statistics = RunStatistics(topics: [])
    self.endpoint.publish(ready)
    #expect(try Client(port).get("/readyz").hasSuffix("\r\n\r\nok\n"))
    ready.retries.failed(.sink("files"), code: nil, "secret", delay: .seconds(1), at: 0)
    self.endpoint.publish(ready)
    let waiting = try Client(port).get("/readyz")
    #expect(waiting.hasSuffix("\r\n\r\nsink files: retried after a failure\n"))
    #expect(try Client(port).get("/metrics").contains("pubsub_etl_waiting{"))
    server.stop()
  }

  @Test("Other requests are refused with a status")
  func refused() throws {
    let (server, port) = try self.serve()
    #expect(try Client(port).get("/").hasPrefix("HTTP/1.1 404 "))
    for (text, status) in [
      ("POST /metrics HTTP/1.1\r\n\r\n", 405), ("HEAD /metrics HTTP/1.1\r\n\r\n", 405),
      ("nonsense\r\n\r\n", 400), (String(repeating: "a", count: 9000), 431),
    ] {
      let client = try Client(port)
      client.send(text)
      #expect(client.receiveAll().hasPrefix("HTTP/1.1 \(status) "), "\(text.prefix(20))")
    }
    server.stop()
  }

  @Test("A request that arrives byte by byte is answered")
  func dripFeed() throws {
    let (server, port) = try self.serve()
    let client = try Client(port)
    for byte in "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" { client.send(String(byte)) }
    #expect(client.receiveAll().hasSuffix("ok\n"))
    server.stop()
  }

  @Test("Clients that send nothing make room for others, the oldest first")
  func full() throws {
    let (server, port) = try self.serve(.init(connectionCount: 3, time: .seconds(3600)))
    let silent = try (0..<3).map { _ in try Client(port) }
    #expect(try Client(port).get("/healthz").hasSuffix("ok\n"))
    #expect(silent[0].receiveAll().isEmpty)
    #expect(silent[1].get("/healthz").hasSuffix("ok\n"))
    #expect(silent[2].get("/healthz").hasSuffix("ok\n"))
    server.stop()
  }

  @Test("A client is closed when its time is over, whether it sends too little or does not read")
  func slow() throws {
    let large = MetricsResponse(.ok, text: String(repeating: "x", count: 64 << 20))
    let (server, port) = try self.serve(.init(time: .milliseconds(20))) { request in
      request.path == "/large" ? large : self.endpoint.answer(request)
    }
    let idle = try Client(port)
    idle.send("GET /healthz HTTP/1.1\r\n")
    #expect(idle.receiveAll().isEmpty)
    let reluctant = try Client(port)
    reluctant.send("GET /large HTTP/1.1\r\n\r\n")
    // The next clients are closed by their timers, which are later than that of the first.
    for _ in 0..<2 { _ = try Client(port).receiveAll() }
    #expect(reluctant.receiveAll().utf8.count < 64 << 20)
    server.stop()
  }

  @Test("Many clients at a time all get complete answers")
  func many() async throws {
    let (server, port) = try self.serve()
    let expected = try Client(port).get("/metrics")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<50 {
            let page = try Client(port).get("/metrics")
            #expect(page == expected)
          }
        }
      }
      try await group.waitForAll()
    }
    server.stop()
  }

  @Test("A port that is taken is an error, and a stop turns clients away")
  func stopped() throws {
    let (server, port) = try self.serve()
    let waiting = try Client(port)
    #expect(throws: (any Error).self) {
      try MetricsServer(
        MetricsAddress(host: "127.0.0.1", port: port), clock: ProcessClock(), onFailure: { _ in },
        answer: self.endpoint.answer)
    }
    server.stop()
    #expect(waiting.receiveAll().isEmpty)
  }
}
