/// How often the records of an object without change events are read.
package struct PollSchedule: Sendable, Equatable {
  package typealias Instant = ContinuousClock.Instant

  /// A change gets its stamp when its statement runs and can be read only after its commit, so each
  /// read of changed records overlaps the one before. No transaction lasts longer.
  package static let overlap = Duration.seconds(15 * 60)

  /// The time from the beginning of a read to that of the next.
  package var every: Duration
  /// The time from the beginning of a read of all records to that of the next. Only such a read
  /// notices records that were deleted without a trace.
  package var fullEvery: Duration
  /// A read of all records that began earlier is out of date: the object had other fields then.
  package var fullSince: Instant?

  package init(every: Duration, fullEvery: Duration, fullSince: Instant? = nil) {
    self.every = every
    self.fullEvery = fullEvery
    self.fullSince = fullSince
  }

  /// When the last complete reads of an object into a store began.
  package struct LastReads: Sendable, Equatable {
    /// The last one of all records; nil if there is none.
    package var full: Instant?
    /// The last one of all or of changed records.
    package var any: Instant?

    package init(full: Instant? = nil, any: Instant? = nil) {
      self.full = full
      self.any = any
    }
  }

  /// What to read next.
  enum Next: Equatable {
    /// Nothing before this time.
    case wait(until: Instant)
    case all
    /// The records that have changed since a read began.
    case changes(since: Instant)
  }

  /// - Parameter reads: the last reads into each store.
  func next(after reads: [LastReads], at now: Instant) -> Next {
    var (full, any) = (now, now)
    for read in reads {
      guard let lastFull = read.full, let last = read.any else { return .all }
      (full, any) = (min(full, lastFull), min(any, last))
    }
    let due = any + self.every
    if let fullSince, full < fullSince { return .all }
    guard now >= due else { return .wait(until: due) }
    return now - full >= self.fullEvery ? .all : .changes(since: any)
  }
}
