/// A sealed commit that is becoming durable: everything except the rows, which the stores hold.
///
/// Decides the runner's next step from the stores' answers. Every store prepares before the
/// first one commits. The store that keeps the dead letters prepares last, because the refusals of
/// the others become letters of the commit, and commits first, so that after a crash the others
/// take these events again.
struct CommitInFlight {
  typealias Instant = ContinuousClock.Instant

  enum Step: Equatable {
    case prepare(store: Int)
    case commit(store: Int)
    /// Every store has committed.
    case finish
  }

  /// The commit for each store.
  var commits: [Commit]
  /// The number of the store that keeps the dead letters.
  let keeper: Int
  /// Events of the commit that a store has already refused.
  var refused: Set<RefusedPlace> = []
  /// What each topic had taken when the commit was sealed.
  var tallies: [RunStatistics.Tally]
  /// Where each topic would resume once all stores have the commit.
  let resumes: [ReplayID?]
  /// Why the commit waits, and until when.
  var outage: StoreOutage?
  private(set) var prepared = StoreSet()
  private var durable = StoreSet()
  /// Stores that could not commit when they were last asked.
  private var unavailable = StoreSet()

  init(
    commits: [Commit], keeper: Int, tallies: [RunStatistics.Tally], resumes: [ReplayID?]
  ) {
    self.commits = commits
    self.keeper = keeper
    self.tallies = tallies
    self.resumes = resumes
  }

  func isDue(at now: Instant) -> Bool { self.outage.map { $0.retryAt <= now } ?? true }

  private var others: [Int] { self.commits.indices.filter { $0 != self.keeper } }

  /// What to do next; nil while a store is unavailable.
  var next: Step? {
    if let store = (self.others + [self.keeper]).first(where: { !self.prepared.contains($0) }) {
      return self.outage == nil ? .prepare(store: store) : nil
    }
    let store = ([self.keeper] + self.others).first {
      !self.durable.contains($0) && !self.unavailable.contains($0)
    }
    if let store { return .commit(store: store) }
    return self.outage == nil ? .finish : nil
  }

  /// Asks the stores that were unavailable once more.
  mutating func retry() {
    self.outage = nil
    self.unavailable = StoreSet()
  }

  mutating func prepared(by store: Int) { self.prepared.insert(store) }

  /// - Returns: stores that have prepared and have to give that up, because they must not hold locks
  ///   while the run waits for another one.
  mutating func cannotPrepare(_ outage: StoreOutage) -> [Int] {
    self.waits(for: outage)
    defer { self.prepared = StoreSet() }
    return (self.others + [self.keeper]).filter { self.prepared.contains($0) }
  }

  mutating func committed(by store: Int) { self.durable.insert(store) }

  mutating func cannotCommit(_ store: Int, _ outage: StoreOutage) {
    self.waits(for: outage)
    self.unavailable.insert(store)
  }

  /// Notes an outage; the one with the earliest retry counts.
  private mutating func waits(for outage: StoreOutage) {
    guard let known = self.outage, known.retryAt <= outage.retryAt else {
      self.outage = outage
      return
    }
  }

  /// Adds an event that a store has refused to the dead letters, once.
  ///
  /// - Parameters:
  ///   - store: a store that has not received the event, because its own stages refused it.
  ///   - durable: events before this place have their letters already.
  /// - Returns: whether the letter is new.
  mutating func refuse(
    _ letter: DeadLetter, of topic: Int, missingIn store: Int?, after durable: RefusedPlace?
  ) -> Bool {
    if let store, store != self.keeper { self.commits[store].letters.append(letter) }
    let place = RefusedPlace(topic: topic, epoch: letter.epoch, ordinal: letter.ordinal)
    guard self.refused.insert(place).inserted else {
      Self.note(letter.refusal?.sink, of: letter, in: &self.commits[self.keeper].letters)
      return false
    }
    if let durable, durable.isAfter(place) { return false }
    self.commits[self.keeper].letters.append(letter)
    // The event was taken before the commit in flight was sealed.
    self.tallies[topic].deadLetters += 1
    self.tallies[topic].refused += 1
    return true
  }

  /// Adds a sink to the letter of an event that another sink has refused as well.
  private static func note(_ sink: String?, of letter: DeadLetter, in letters: inout [DeadLetter]) {
    guard let sink,
      let index = letters.firstIndex(where: {
        ($0.topic, $0.epoch, $0.ordinal) == (letter.topic, letter.epoch, letter.ordinal)
      }), letters[index].refusal?.sinks.contains(sink) == false
    else { return }
    letters[index].refusal?.otherSinks.append(sink)
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
