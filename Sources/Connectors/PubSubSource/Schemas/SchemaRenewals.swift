/// Decides whether to fetch a schema again because a value proves that it is outdated.
///
/// A schema that was fetched after the event was received is up to date, so another fetch adds
/// nothing. The limits hold whatever a service sends.
struct SchemaRenewals {
  typealias Instant = ContinuousClock.Instant

  private struct Fetches {
    var last: Instant
    /// Moves forward by `interval` with each fetch.
    var paidUntil: Instant
  }

  /// Fetches of one schema that may follow each other immediately. An admin who converts several
  /// fields causes one for each.
  static let burst = 5
  /// In the long run, a schema is fetched once per interval.
  static let interval = Duration.seconds(60)
  private static let maxIDCount = 1000

  /// By schema ID.
  private var fetches: [String: Fetches] = [:]

  /// Notes a fetch if it returns true.
  ///
  /// - Parameter receivedAt: when the event was received.
  mutating func begin(_ id: String, receivedAt: Instant, now: Instant) -> Bool {
    let known = self.fetches[id]
    if let known {
      guard known.last < receivedAt,
        known.paidUntil <= now + Self.interval * (Self.burst - 1)
      else { return false }
    } else if self.fetches.count >= Self.maxIDCount {
      self.fetches = self.fetches.filter { $1.paidUntil > now }
    }
    self.fetches[id] = Fetches(
      last: now, paidUntil: max(known?.paidUntil ?? now, now) + Self.interval)
    return true
  }
}
