/// A request to one URL.
///
/// `https` only, or `http` to a loopback address. Prints without headers, query and body, which
/// hold secrets.
public struct HTTPRequest: Sendable {
  public enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"
  }

  public var method: Method
  public var url: String
  public var headers: [(name: String, value: String)]
  /// Sent with `POST` and `PATCH` only.
  public var body: [UInt8]

  public init(
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
  public func checkURL() throws(HTTPError) { _ = try HTTPURL(checking: self) }

  /// `POST` of a form (`application/x-www-form-urlencoded`).
  public static func form(_ url: String, fields: [(name: String, value: String)]) -> HTTPRequest {
    var body: [UInt8] = []
    for (index, field) in fields.enumerated() {
      if index > 0 { body.append(UInt8(ascii: "&")) }
      Self.appendFormEncoded(field.name, to: &body)
      body.append(UInt8(ascii: "="))
      Self.appendFormEncoded(field.value, to: &body)
    }
    return HTTPRequest(
      .post, url, headers: [("Content-Type", "application/x-www-form-urlencoded")], body: body)
  }

  /// Everything but the unreserved characters of RFC 3986 as `%XX`, so blanks as `%20`.
  private static func appendFormEncoded(_ text: String, to body: inout [UInt8]) {
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        body.append(byte)
      default:
        body.append(UInt8(ascii: "%"))
        body.append(digits[Int(byte >> 4)])
        body.append(digits[Int(byte & 15)])
      }
    }
  }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String {
    "\(self.method.rawValue) \(HTTPURL.withoutQuery(self.url))"
  }
  public var debugDescription: String { self.description }
  public var customMirror: Mirror { Mirror(self, children: ["request": self.description]) }
}
