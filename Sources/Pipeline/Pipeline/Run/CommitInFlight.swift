/// A sealed commit that is becoming durable: everything except the rows, which the stores hold.
struct CommitInFlight<Response: SourceResponse> {
  typealias Instant = ContinuousClock.Instant

  /// The commit for each store.
  var commits: [Commit]
  /// The commit's responses, needed for events that a store refuses.
  let retained: RetainedEvents<Response>
  /// Events of the commit that a store has already refused.
  var refused: Set<RefusedPlace> = []
  /// What each topic had taken when the commit was sealed.
  var tallies: [RunStatistics.Tally]
  /// Where each topic would resume once all stores have the commit.
  var resumes: [ReplayID?]
  /// Stores that have prepared the commit. All of them prepare before the first one commits.
  var prepared = StoreSet()
  var durable = StoreSet()
  /// Why the commit waits, and until when.
  var outage: StoreOutage?

  func isDue(at now: Instant) -> Bool { self.outage.map { $0.retryAt <= now } ?? true }

  /// Notes an outage; the one with the earliest retry counts.
  mutating func waits(for outage: StoreOutage) {
    guard let known = self.outage, known.retryAt <= outage.retryAt else {
      self.outage = outage
      return
    }
  }
}

/// How many events of a response have been taken. Not generic, because it is used for every event.
struct PlaceInResponse {
  let topic: Int
  let receivedAt: ContinuousClock.Instant
  var nextEvent = 0
  /// The recipients of the next event, once known.
  var recipients: StoreSet?
  /// Why the next event has to wait, unless it is for the commit in flight.
  var outage: StoreOutage?
  var renewal = Renewal.none

  /// Whether the schema of the next event is outdated and has been fetched again.
  enum Renewal {
    case none, needed, done
  }
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
