import Foundation
import TestSupport
import Testing

@testable import HTTPClient

/// One at a time: threads are counted.
@Suite("Streamed response bodies", .serialized) struct HTTPBodyStreamTests {
  let peer: PythonServer
  init() throws { self.peer = try PythonServer("http_peer.py") }

  func stream(
    _ path: String, _ configuration: HTTPClient.Configuration = .init()
  ) async throws -> HTTPBodyStream {
    try await HTTPClient(configuration).stream(
      HTTPRequest(.get, "http://127.0.0.1:\(self.peer.port)\(path)"))
  }

  func answer(_ path: String) async throws -> String {
    let response = try await HTTPClient().send(
      HTTPRequest(.get, "http://127.0.0.1:\(self.peer.port)\(path)"))
    return String(decoding: response.body, as: UTF8.self)
  }

  /// Bytes of patterns that the server has got rid of.
  func sent() async throws -> Int { try #require(Int(try await self.answer("/sent"))) }

  /// Returns, when the server waits until its client takes more, the bytes that it has got rid of.
  func whenTheServerWaits() async throws -> Int {
    try #require(Int(try await self.answer("/waits")))
  }

  func text(_ stream: HTTPBodyStream) async throws -> String {
    var body: [UInt8] = []
    while let piece = try await stream.next() { body += piece }
    return String(decoding: body, as: UTF8.self)
  }

  /// The bytes up to the end, each checked.
  func countPattern(_ stream: HTTPBodyStream, from start: Int = 0) async throws -> Int {
    let pattern = (0..<BodyQueue.maxPieceBytes + 251).map { UInt8($0 % 251) }
    var count = start
    while let piece = try await stream.next() {
      try #require((1...BodyQueue.maxPieceBytes).contains(piece.count))
      let isRight = pattern.withUnsafeBytes { pattern in
        piece.withUnsafeBytes { piece in
          // The pattern is longer than any piece by one period.
          memcmp(piece.baseAddress!, pattern.baseAddress! + count % 251, piece.count) == 0
        }
      }
      try #require(isRight, "another byte after \(count)")
      count += piece.count
    }
    return count
  }

  func threadCount() throws -> Int {
    let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
    return tasks.filter {
      // A thread may have ended meanwhile.
      (try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8))
        == HTTPBodyStream.threadName + "\n"
    }.count
  }

  func expectThreadsEnd() async throws {
    for _ in 0..<200 {
      if try self.threadCount() == 0 { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("a transfer's thread still runs")
  }

  @Test("A body of any size is received complete", arguments: [0, 1, 100_000, 5_000_000])
  func sizes(count: Int) async throws {
    let stream = try await self.stream("/pattern/\(count)")
    #expect(stream.response.status == 200)
    #expect(stream.response.header("content-length") == "\(count)")
    #expect(stream.response.body.isEmpty)
    #expect(try await self.countPattern(stream) == count)
    #expect(try await stream.next() == nil)
    try await self.expectThreadsEnd()
  }

  @Test("A response with any status is returned", arguments: [204, 302, 401, 503])
  func statuses(status: Int) async throws {
    let stream = try await self.stream("/status/\(status)")
    #expect(stream.response.status == status)
    #expect(try await stream.next() == nil)
  }

  @Test("Even a small body is streamed") func smallBody() async throws {
    let stream = try await self.stream("/?x=1")
    #expect(try await self.text(stream).contains(#""path": "/?x=1""#))
    #expect(stream.response.header("x-padded") == "padded")
  }

  @Test("A slow consumer slows the server down") func slowConsumer() async throws {
    let size = 200_000_000
    let queue = BodyQueue()
    let request = HTTPRequest(.get, "http://127.0.0.1:\(self.peer.port)/pattern/\(size)")
    let stream = try await HTTPClient().stream(request, through: queue)
    let first = try #require(try await stream.next())
    // A server that is only faster waits, too.
    while queue.waiting.count < BodyQueue.maxPieces { _ = try await self.whenTheServerWaits() }
    #expect(try await self.whenTheServerWaits() < size / 4)
    let waiting = queue.waiting
    #expect(waiting.count == BodyQueue.maxPieces)
    #expect(waiting.allSatisfy { $0 <= BodyQueue.maxPieceBytes })
    #expect(try await self.countPattern(stream, from: first.count) == size)
    #expect(try await self.sent() == size)
  }

  @Test("A pause of the consumer does not count as a stall") func waitingConsumer()
    async throws
  {
    let stream = try await self.stream(
      "/pattern/50000000", .init(stallTimeout: .milliseconds(500)))
    _ = try await self.whenTheServerWaits()
    // Time is the subject: four times as long as a stall may be.
    try await Task.sleep(for: .seconds(2))
    #expect(try await self.countPattern(stream) == 50_000_000)
  }

  @Test(
    "A truncated body is an error after the bytes that arrived", arguments: ["/cut", "/cut-chunks"])
  func truncatedBody(path: String) async throws {
    let stream = try await self.stream(path + "?token=hidden")
    var received = ""
    let error = try await #require(throws: HTTPError.self) {
      while let piece = try await stream.next() {
        received += String(decoding: piece, as: UTF8.self)
      }
    }
    #expect(["12345", "12345678"].contains(received))
    #expect(error.code == .connection)
    #expect(error.isTransient)
    #expect(error.message.hasPrefix("GET http://127.0.0.1:\(self.peer.port)\(path): "))
    await #expect(throws: HTTPError.self) { _ = try await stream.next() }
    try await self.expectThreadsEnd()
  }

  @Test("A stalled body is a timeout") func stalledBody() async throws {
    let stream = try await self.stream("/stall", .init(stallTimeout: .milliseconds(300)))
    #expect(try await stream.next() == Array("12345".utf8))
    let error = try await #require(throws: HTTPError.self) { try await stream.next() }
    #expect(error.code == .timeout)
    #expect(error.isTransient)
  }

  @Test("A silent server is a timeout before the response head") func silentServer() async throws {
    let error = try await #require(throws: HTTPError.self) {
      _ = try await self.stream("/hang", .init(stallTimeout: .milliseconds(300)))
    }
    #expect(error.code == .timeout)
  }

  /// The whole takes longer than both limits, and its trailer is not taken for a header.
  @Test("A slow body does not count as a stall") func slowBody() async throws {
    var configuration = HTTPClient.Configuration(
      timeout: .seconds(1), stallTimeout: .seconds(2))
    configuration.minBytesPerSecond = 1
    let stream = try await self.stream("/drip/150", configuration)
    #expect(try await self.text(stream) == String(repeating: "x", count: 150))
    #expect(stream.response.header("x-trailer") == nil)
  }

  @Test("A gzip body is decompressed without a size limit") func gzip() async throws {
    let stream = try await self.stream("/bytes/30000000", .init(maxBodyBytes: 1))
    var count = 0
    while let piece = try await stream.next() {
      try #require(piece.count <= BodyQueue.maxPieceBytes)
      count += piece.count
    }
    #expect(count == 30_000_000)
  }

  @Test("A response without a final status is an error", arguments: ["/switch", "/garbage"])
  func noFinalStatus(path: String) async throws {
    let error = try await #require(throws: HTTPError.self) { _ = try await self.stream(path) }
    #expect(error.code == .connection)
    try await self.expectThreadsEnd()
  }

  @Test("A refused connection or URL is an error") func refused() async throws {
    let cases = [
      ("http://127.0.0.1:1/", HTTPError.Code.connection), ("http://10.0.0.1/", .invalidRequest),
    ]
    for (url, code) in cases {
      let error = try await #require(throws: HTTPError.self) {
        _ = try await HTTPClient().stream(HTTPRequest(.get, url))
      }
      #expect(error.code == code)
    }
  }

  @Test(
    "Cancelling the consumer ends the transfer", arguments: ["/stall", "/pattern/200000000000"])
  func cancelledConsumer(path: String) async throws {
    let stream = try await self.stream(path)
    let (pieces, received) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      while try await stream.next() != nil { received.yield() }
    }
    for await _ in pieces { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    await #expect(throws: CancellationError.self) { _ = try await stream.next() }
    try await self.expectThreadsEnd()
  }

  @Test("Cancelling the task before the response head ends the request") func cancelledEarly()
    async throws
  {
    let task = Task { _ = try await self.stream("/hang") }
    _ = try await self.answer("/hung")
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    try await self.expectThreadsEnd()
  }

  @Test("Dropping the stream ends its thread", arguments: ["/stall", "/pattern/200000000"])
  func droppedStream(path: String) async throws {
    do {
      let stream = try await self.stream(path)
      _ = try await stream.next()
      if path.hasPrefix("/pattern") { _ = try await self.whenTheServerWaits() }
    }
    try await self.expectThreadsEnd()
  }

  @Test("Concurrent streams do not hold each other up") func parallelStreams() async throws {
    let held = try await self.stream("/pattern/100000000")
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask { try await self.countPattern(self.stream("/pattern/3000000")) }
      }
      for try await count in group { #expect(count == 3_000_000) }
    }
    #expect(try await self.countPattern(held) == 100_000_000)
  }

  @Test("A body is streamed over TLS") func overTLS() async throws {
    let authority = try TestAuthority()
    let server = try authority.issue()
    let peer = try PythonServer("http_peer.py", [server.certificateFile, server.keyFile])
    let stream = try await HTTPClient(.init(caFile: authority.certificateFile)).stream(
      HTTPRequest(.get, "https://localhost:\(peer.port)/pattern/20000000"))
    #expect(try await self.countPattern(stream) == 20_000_000)
  }
}
