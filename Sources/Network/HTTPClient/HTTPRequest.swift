internal import Bytes

/// A request to one URL.
///
/// `https`, or `http` to a loopback address, unless `allowsPlaintext` says otherwise. Prints without
/// headers, query and body, which hold secrets.
package struct HTTPRequest: Sendable {
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"
  }

  package var method: Method
  package var url: String
  package var headers: [(name: String, value: String)]
  /// Sent with `PUT`, `POST` and `PATCH` only.
  package var body: [UInt8]
  /// Sent with `PUT` instead of `body`.
  package var source: (any HTTPBodySource)?
  /// Whether plain `http` may go to another machine.
  package var allowsPlaintext = false
  /// Whether the server may compress the body of its response. Without it, the body is received as
  /// it is stored.
  package var allowsCompression = true

  package init(
    _ method: Method, _ url: String, headers: [(name: String, value: String)] = [],
    body: [UInt8] = []
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }

  /// Throws the `HTTPError` of code `invalidRequest` with which `HTTPClient` would refuse the URL:
  /// no URL, one with a password, or plain `http` to another machine.
  package func checkURL() throws(HTTPError) { _ = try HTTPURL(checking: self) }

  /// `POST` of a form (`application/x-www-form-urlencoded`).
  package static func form(_ url: String, fields: [(name: String, value: String)]) -> HTTPRequest {
    let pairs = fields.map {
      "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))"
    }
    return HTTPRequest(
      .post, url, headers: [("Content-Type", "application/x-www-form-urlencoded")],
      body: Array(pairs.joined(separator: "&").utf8))
  }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String {
    "\(self.method.rawValue) \(HTTPURL.withoutQuery(self.url))"
  }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: ["request": self.description]) }
}
