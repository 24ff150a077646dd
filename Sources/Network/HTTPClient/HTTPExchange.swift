/// A request that has ended, for a log: without query, headers and bodies, which hold secrets and
/// values.
package struct HTTPExchange: Sendable {
  package var method: HTTPRequest.Method
  /// Without user, password and query.
  package var url: String
  /// Nil when no response came.
  package var status: Int?
  /// Size of the response body after decompression.
  package var bodyByteCount: Int
  /// From the request to the end of the response.
  package var duration: Duration
  /// Why it did not end well: the transfer failed, or the caller has ended it.
  package var failure: String?
}
