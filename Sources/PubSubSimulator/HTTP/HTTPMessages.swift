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
