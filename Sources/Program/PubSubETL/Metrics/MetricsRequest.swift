/// The head of an HTTP/1.1 request, as far as the endpoint looks at it (RFC 9112, section 3).
struct MetricsRequest: Equatable {
  var method: String
  /// Without a query.
  var path: String
  var acceptsOpenMetrics = false

  enum Step: Equatable {
    /// The head has not ended.
    case incomplete
    case request(MetricsRequest)
    case refused(MetricsResponse.Status)
  }

  /// A request by Prometheus has less than 1 KiB.
  static let maxHeadByteCount = 8192

  /// What has arrived of a request. Hostile input.
  static func read(_ bytes: [UInt8]) -> Step {
    guard let end = bytes.firstRange(of: "\r\n\r\n".utf8)?.lowerBound else {
      return bytes.count > Self.maxHeadByteCount ? .refused(.tooLarge) : .incomplete
    }
    guard end <= Self.maxHeadByteCount else { return .refused(.tooLarge) }
    let lines = bytes[..<end].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
    let words = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 3, !words[0].isEmpty, words[1].hasPrefix("/"),
      words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0"
    else { return .refused(.badRequest) }
    let path = String(words[1].prefix { $0 != "?" })
    var request = MetricsRequest(method: words[0], path: path)
    for line in lines.dropFirst() {
      let text = String(decoding: line, as: UTF8.self).lowercased()
      if text.hasPrefix("accept:"), text.contains("application/openmetrics-text") {
        request.acceptsOpenMetrics = true
      }
    }
    return .request(request)
  }
}

/// A response after which the connection is closed.
struct MetricsResponse: Equatable {
  enum Status: String, Sendable {
    case ok = "200 OK"
    case badRequest = "400 Bad Request"
    case notFound = "404 Not Found"
    case methodNotAllowed = "405 Method Not Allowed"
    case tooLarge = "431 Request Header Fields Too Large"
    case unavailable = "503 Service Unavailable"
  }

  var status: Status
  var contentType: String
  var body: [UInt8]

  init(_ status: Status, contentType: String, body: [UInt8]) {
    (self.status, self.contentType, self.body) = (status, contentType, body)
  }

  init(_ status: Status, text: String) {
    self.init(status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
  }

  var head: [UInt8] {
    var text = "HTTP/1.1 \(self.status.rawValue)\r\nContent-Type: \(self.contentType)\r\n"
    text += "Content-Length: \(self.body.count)\r\nCache-Control: no-store\r\n"
    text += "X-Content-Type-Options: nosniff\r\n"
    if self.status == .methodNotAllowed { text += "Allow: GET\r\n" }
    return Array((text + "Connection: close\r\n\r\n").utf8)
  }
}
