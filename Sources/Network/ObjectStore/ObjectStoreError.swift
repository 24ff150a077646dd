/// A failed call of an object store. Its text never contains a secret or the content of an object.
package struct ObjectStoreError: Error, Sendable, CustomStringConvertible {
  /// What to do about it.
  package enum Disposition: String, Sendable {
    /// The same call may succeed later.
    case retry
    /// Threads or descriptors have run out: the same call may succeed later.
    case exhausted
    /// The credentials have expired, or are no longer accepted: the call may succeed with others.
    case credentials
    /// There is no such object or upload.
    case missing
    /// The condition of the call does not hold: another writer was there.
    case preconditionFailed
    /// Credentials or permissions: repeating the call gives the same response.
    case denied
    /// Bucket, region, endpoint or certificate: repeating the call gives the same response.
    case configuration
    /// The store cannot do what was asked, for anyone.
    case unsupported
    /// The store has no room, or takes no object of that size.
    case full
    /// The object is not what was stored there.
    case damaged
    /// The store does not accept what we sent: repeating the call gives the same response.
    case bug
  }

  package var disposition: Disposition
  /// What failed, in which call, and the remedy.
  package var message: String
  /// The store's own code, such as `SlowDown`; nil if the response has none.
  package var code: String?
  /// HTTP status; nil without a response.
  package var status: Int?
  /// The pause that the store asks for.
  package var retryAfter: Duration?

  package var description: String { self.message }

  /// The same call may succeed later.
  package var isTransient: Bool { [.retry, .exhausted].contains(self.disposition) }

  init(
    _ disposition: Disposition, _ message: String, code: String? = nil, status: Int? = nil,
    retryAfter: Duration? = nil
  ) {
    self.disposition = disposition
    self.message = message
    self.code = code
    self.status = status
    self.retryAfter = retryAfter
  }
}
