/// Collects an answer as a whole.
final class ResponseCollector: ResponseReceiver, @unchecked Sendable {
  // Guard: the transfer's thread alone touches `response` while the transfer runs.
  private let request: HTTPRequest
  private let maxBodyBytes: Int
  private(set) var response = HTTPResponse(status: 0)

  init(_ request: HTTPRequest, maxBodyBytes: Int) {
    self.request = request
    self.maxBodyBytes = maxBodyBytes
  }

  func take(head: HTTPResponse) { self.response = head }

  func take(body bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count <= self.maxBodyBytes - self.response.body.count else {
      throw HTTPError(
        .limitExceeded, "\(self.request): the response has more than \(self.maxBodyBytes) bytes")
    }
    self.response.body.append(contentsOf: bytes)
  }
}
