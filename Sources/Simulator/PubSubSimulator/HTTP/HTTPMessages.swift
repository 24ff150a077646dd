internal import Foundation

struct HTTPRequest: Sendable {
  var method: String
  /// Without the query.
  var path: String
  /// Decoded; of a name that is there twice the last.
  var query: [String: String]
  /// Names in lower case.
  var headers: [String: String]
  var body: Data

  /// The length of path and query as they were sent, if everything else than letters, digits and
  /// `-._~` was percent-encoded.
  var uriByteCount: Int {
    func size(_ text: String) -> Int {
      text.utf8.reduce(0) { sum, byte in
        let isPlain =
          (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte)
          || "-._~".utf8.contains(byte)
        return sum + (isPlain ? 1 : 3)
      }
    }
    return self.query.reduce(self.path.utf8.count) { $0 + 2 + size($1.key) + size($1.value) }
  }
}

struct HTTPResponse: Sendable {
  var status: Int
  var headers: [(name: String, value: String)]
  var body: Data
  var delivery = Delivery.whole

  enum Delivery {
    case whole
    /// The connection closes in the middle of the body.
    case dropped
    /// A byte every two seconds.
    case dripping
  }

  static func json(_ text: String, status: Int = 200, date: Int64? = nil) -> HTTPResponse {
    var response = Self.text(text, status: status, type: "application/json", date: date)
    response.headers.append(
      ("Cache-Control", "no-cache,must-revalidate,max-age=0,no-store,private"))
    return response
  }

  static func text(
    _ text: String, status: Int, type: String = "text/html", date: Int64? = nil
  ) -> HTTPResponse {
    var response = HTTPResponse(
      status: status, headers: [("Content-Type", "\(type);charset=UTF-8")], body: Data(text.utf8))
    if let date { response.headers.append(("Date", Self.httpDate(date))) }
    return response
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
