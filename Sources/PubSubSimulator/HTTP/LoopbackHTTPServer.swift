internal import FlyingFox
internal import FlyingSocks
internal import Foundation
internal import SimulatedOrg

/// An HTTP/1.1 server on 127.0.0.1, running until `stop`.
final class LoopbackHTTPServer: Sendable {
  private let server: HTTPServer
  private let task: Task<Void, any Error>
  let port: UInt16

  /// - Parameter port: 0: chosen by the system.
  init(
    port: UInt16, handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) async throws {
    let server = HTTPServer(
      address: try .inet(ip4: "127.0.0.1", port: port), logger: .disabled,
      handler: ClosureHTTPHandler(handler))
    let task = Task { try await server.run() }
    do {
      try await server.waitUntilListening(timeout: 10)
    } catch {
      task.cancel()
      throw SimulatorError(.system, "HTTP on 127.0.0.1:\(port): \(error)")
    }
    guard case .ip4(_, let bound) = await server.listeningAddress else {
      task.cancel()
      throw SimulatorError(.system, "HTTP on 127.0.0.1:\(port): no address")
    }
    self.server = server
    self.task = task
    self.port = bound
  }

  func stop() async {
    await self.server.stop(timeout: 1)
    self.task.cancel()
    _ = await self.task.result
  }
}

extension HTTPResponse {
  static func json(_ text: String, status: HTTPStatusCode = .ok, date: Int64? = nil) -> HTTPResponse
  {
    var headers: HTTPHeaders = [.contentType: "application/json;charset=UTF-8"]
    headers[HTTPHeader("Cache-Control")] = "no-cache,must-revalidate,max-age=0,no-store,private"
    if let date { headers[HTTPHeader("Date")] = Self.httpDate(date) }
    return HTTPResponse(statusCode: status, headers: headers, body: Data(text.utf8))
  }

  static func text(_ text: String, status: HTTPStatusCode) -> HTTPResponse {
    HTTPResponse(
      statusCode: status, headers: [.contentType: "text/html;charset=UTF-8"],
      body: Data(text.utf8))
  }

  /// RFC 9110 section 5.6.7.
  private static func httpDate(_ milliseconds: Int64) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
  }
}
