/// A sealed commit on its way to being durable: everything that it consists of besides the rows, which
/// the stores have.
struct CommitInFlight<Response: SourceResponse> {
  typealias Instant = ContinuousClock.Instant

  /// What each store is asked for.
  var commits: [Commit]
  /// Its responses, for events that a store refuses.
  let retained: RetainedEvents<Response>
  /// Events of it that a store has refused already.
  var refused: Set<RefusedPlace> = []
  /// What each topic had taken when the commit was sealed.
  var tallies: [RunStatistics.Tally]
  /// Where each topic would be resumed when all stores have it.
  var resumes: [ReplayID?]
  /// Stores that hold it ready; all of them do before the first one commits.
  var prepared = StoreSet()
  var durable = StoreSet()
  /// Why it waits, and until when.
  var outage: StoreOutage?

  func isDue(at now: Instant) -> Bool { self.outage.map { $0.retryAt <= now } ?? true }

  /// The earliest of what has to be waited for.
  mutating func waits(for outage: StoreOutage) {
    guard let known = self.outage, known.retryAt <= outage.retryAt else {
      self.outage = outage
      return
    }
  }
}

/// How far the events of a response have been taken. Not generic: it is met at every event.
struct PlaceInResponse {
  let topic: Int
  let receivedAt: ContinuousClock.Instant
  var nextEvent = 0
  /// The stores that the next event is for, once that is known.
  var recipients: StoreSet?
  /// Why the next event has to wait, unless it is for the commit in flight.
  var outage: StoreOutage?
}

/// The place of an event that a store refused.
struct RefusedPlace: Hashable {
  var topic: Int
  var epoch: Int
  var ordinal: Int64

  func isAfter(_ other: RefusedPlace) -> Bool {
    (self.epoch, self.ordinal) > (other.epoch, other.ordinal)
  }
}
