/// A failed call of the REST API. Its text never contains a secret or a record's value.
public struct RESTError: Error, Sendable, CustomStringConvertible {
  /// What to do about it (RESTAndBulk.md#all-calls).
  public enum Disposition: String, Sendable {
    /// The same call may succeed later.
    case retry
    /// An allowance is used up: wait for long.
    case quota
    /// The access token was refused, a new one as well.
    case login
    /// The query took too long: ask for less at once.
    case split
    /// A cursor, job or record is gone, or does not exist.
    case gone
    /// The object or query cannot be read by Bulk: read it by pages.
    case unsupportedByBulk
    /// The object or its fields are not what they were: describe it again, once.
    case describe
    /// Asking again gives the same answer.
    case stop
  }

  public var disposition: Disposition
  /// What failed, on which call, and the remedy.
  public var message: String
  /// Salesforce's own code, such as `INVALID_FIELD`; nil when the answer has none.
  public var errorCode: String?
  /// HTTP status; nil without an answer.
  public var status: Int?

  public var description: String { self.message }

  public init(
    _ disposition: Disposition, _ message: String, errorCode: String? = nil, status: Int? = nil
  ) {
    self.disposition = disposition
    self.message = message
    self.errorCode = errorCode
    self.status = status
  }
}
