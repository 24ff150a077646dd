/// A failed call of the REST API. Its text never contains a secret or a record's value.
package struct RESTError: Error, Sendable, CustomStringConvertible {
  /// What to do about it (RESTAndBulk.md#answers).
  package enum Disposition: String, Sendable {
    /// The same call may succeed later.
    case retry
    /// An allowance is used up: wait for a long time.
    case quota
    /// The access token was refused, and so was a new one.
    case login
    /// The query took too long: ask for less at once.
    case split
    /// A cursor, job or record does not exist, or no longer does.
    case gone
    /// Bulk cannot read the object or query: read it by pages.
    case unsupportedByBulk
    /// The object or its fields have changed: describe the object again, once.
    case describe
    /// The statement or its URI is too long for Salesforce: ask for fewer fields at once.
    case tooWide
    /// Rights, edition or org: repeating the call gives the same response.
    case stop
    /// Something other than the org answers, or the org is elsewhere: repeating the call gives the
    /// same response.
    case configuration
    /// Salesforce does not accept what we sent: repeating the call gives the same response.
    case bug
  }

  package var disposition: Disposition
  /// What failed, in which call, and the remedy.
  package var message: String
  /// Salesforce's own code, such as `INVALID_FIELD`; nil if the response has none.
  package var errorCode: String?
  /// HTTP status; nil without a response.
  package var status: Int?

  package var description: String { self.message }

  package init(
    _ disposition: Disposition, _ message: String, errorCode: String? = nil, status: Int? = nil
  ) {
    self.disposition = disposition
    self.message = message
    self.errorCode = errorCode
    self.status = status
  }
}
