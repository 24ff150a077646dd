/// A request that has ended, for a log: without query, headers and bodies, which hold secrets and
/// values.
public struct HTTPExchange: Sendable {
  public var method: HTTPRequest.Method
  /// Without user, password and query.
  public var url: String
  /// Nil when no response came.
  public var status: Int?
  /// Size of the response body after decompression.
  public var bodyByteCount: Int
  /// From the request to the end of the response.
  public var duration: Duration
  /// Why it did not end well: the transfer failed, or the caller has ended it.
  public var failure: String?
}
