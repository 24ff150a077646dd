import TestSupport
import Testing

@testable import HTTPClient

/// Gives a few bytes at a time, and fails at an offset.
private struct PatternSource: HTTPBodySource {
  struct Failure: Error {}

  var byteCount: Int
  var failsAt = Int.max

  func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    if offset >= self.failsAt { throw Failure() }
    let count = min(bytes.count, 1000)
    for index in 0..<count { bytes[index] = UInt8(97 + (offset + index) % 26) }
    return count
  }
}

@Suite("Uploads by HTTP")
struct HTTPUploadTests {
  let peer: PythonServer
  init() throws { self.peer = try PythonServer("http_peer.py") }

  private func request(
    _ method: HTTPRequest.Method, _ path: String = "/object", source: PatternSource? = nil
  ) -> HTTPRequest {
    var request = HTTPRequest(
      method, "http://127.0.0.1:\(self.peer.port)\(path)",
      headers: [("Content-Type", "text/plain")])
    request.source = source
    return request
  }

  private func text(_ request: HTTPRequest) async throws -> String {
    let response = try await HTTPClient().send(request)
    #expect(response.status == 200)
    return String(decoding: response.body, as: UTF8.self)
  }

  @Test("PUT sends its body") func bytes() async throws {
    var request = self.request(.put)
    request.body = Array("a body".utf8)
    let text = try await self.text(request)
    #expect(text.contains(#""method": "PUT""#))
    #expect(text.contains(#""body": "a body""#))
    #expect(text.contains(#""content-type": "text/plain""#))
    #expect(!text.contains(#""expect""#))
  }

  @Test("A body comes from a source in pieces", arguments: [0, 1, 999, 1000, 3_000_000])
  func source(byteCount: Int) async throws {
    let text = try await self.text(
      self.request(.put, source: PatternSource(byteCount: byteCount)))
    #expect(text.contains(#""method": "PUT""#))
    #expect(text.contains(#""content-length": "\#(byteCount)""#))
    let pattern = (0..<byteCount).map { UInt8(97 + $0 % 26) }
    #expect(text.contains("\"body\": \"\(String(decoding: pattern, as: UTF8.self))\""))
  }

  @Test("The error of a source ends the request", arguments: [0, 1000, 500_000])
  func failingSource(offset: Int) async throws {
    await #expect(throws: PatternSource.Failure.self) {
      _ = try await HTTPClient().send(
        self.request(.put, source: PatternSource(byteCount: 1_000_000, failsAt: offset)))
    }
  }

  @Test("An upload that does not proceed is a timeout, however long others take")
  func stalledUpload() async throws {
    let configuration = HTTPClient.Configuration(
      timeout: .milliseconds(1), stallTimeout: .milliseconds(200))
    let stalled = self.request(.put, "/hang", source: PatternSource(byteCount: 100_000_000))
    let error = try await #require(throws: HTTPError.self) {
      _ = try await HTTPClient(configuration).send(stalled)
    }
    #expect(error.code == .timeout)
    #expect(error.message.contains("the server took and sent less than"))
    let response = try await HTTPClient(configuration).send(
      self.request(.put, source: PatternSource(byteCount: 3_000_000)))
    #expect(response.status == 200)
  }

  @Test("HEAD receives headers without a body") func head() async throws {
    let response = try await HTTPClient().send(self.request(.head))
    #expect(response.status == 200)
    #expect(response.header("x-method") == "HEAD")
    #expect(response.header("content-length") == "12345")
    #expect(response.body.isEmpty)
  }

  @Test("A path arrives as it was written") func path() async throws {
    let text = try await self.text(self.request(.get, "/a/../b/./c%2F%3D?q"))
    #expect(text.contains(#""path": "/a/../b/./c%2F%3D?q""#))
  }

  @Test("Compression is not asked for where the stored bytes are wanted")
  func compression() async throws {
    var request = self.request(.get, "/object")
    request.allowsCompression = false
    #expect(try await !self.text(request).contains("accept-encoding"))
  }

  @Test("Plain http leaves the machine only where the request says so") func plaintext()
    async throws
  {
    var request = self.request(.get)
    // An address of this machine, too, but not a loopback address.
    request.url = "http://0.0.0.0:\(self.peer.port)/object"
    let error = try await #require(throws: HTTPError.self) {
      _ = try await HTTPClient().send(request)
    }
    #expect(error.code == .invalidRequest)
    request.allowsPlaintext = true
    #expect(try await self.text(request).contains(#""method": "GET""#))
  }

  @Test("The size limit of one request") func limit() async throws {
    let request = self.request(.get, "/bytes/1000")
    #expect(try await HTTPClient().send(request, maxBodyBytes: 1000).body.count == 1000)
    let error = try await #require(throws: HTTPError.self) {
      _ = try await HTTPClient().send(request, maxBodyBytes: 999)
    }
    #expect(error.code == .limitExceeded)
  }
}
