/// Merges a record that was read over REST with its change events
/// (RESTAndBulk.md#records-and-events, rules 3 to 6).
///
/// A record's state is its newest read, followed by its events in stream order from the first that
/// the read may not contain. Events before that are contained in the read. Times are milliseconds
/// since 1970.
///
/// What makes this right: changes to one record have the same order by stamp, by commit and in the
/// stream. So everything before a contained event is contained, and applying a contained event again
/// does no harm as long as all later ones follow. Clocks of stamps and commits differ by less than
/// `clockTolerance`, and a commit can be seen by readers within `visibilityWait`.
package struct ReadMerge {
  /// A record as one answer had it.
  package struct Read: Sendable, Equatable {
    /// `SystemModstamp`.
    package var stamp: Int64
    /// When the request was sent, by the database's clock.
    package var readAt: Int64

    package init(stamp: Int64, readAt: Int64) {
      self.stamp = stamp
      self.readAt = readAt
    }

    /// Reads may come from servers that lag: an older stamp than the one known says nothing new.
    package func isNewer(than other: Read) -> Bool {
      (self.stamp, self.readAt) > (other.stamp, other.readAt)
    }
  }

  /// What decides about an event of the record.
  package struct Event: Sendable, Equatable {
    /// `commitTimestamp`; nil for one without a usable time, which counts as later than any read.
    package var commit: Int64?
    /// When it was taken, by the database's clock.
    package var arrivedAt: Int64
    /// The event says that something changed, not what: a gap event, a refused event, a change type
    /// that is not known, the end of a missing range.
    package var isGap: Bool

    package init(commit: Int64?, arrivedAt: Int64, isGap: Bool) {
      self.commit = commit
      self.arrivedAt = arrivedAt
      self.isGap = isGap
    }
  }

  /// Stamps and commit times are whole seconds of several clocks.
  static let clockTolerance: Int64 = 5000
  /// After it every reader sees a commit, whatever its stamp.
  package static let visibilityWait: Int64 = 60_000

  /// Whether the read certainly contains the event, and all events before it.
  package static func contains(_ read: Read, _ event: Event) -> Bool {
    guard let commit = event.commit else { return false }
    return commit < read.stamp - Self.clockTolerance
  }

  /// Whether the read certainly has what the event stands for, and everything before it: by its stamp,
  /// or since it was made when every reader could see the event's commit.
  ///
  /// A stamp that is merely later is not enough: that of another change may be, which came before.
  package static func settles(_ read: Read, _ event: Event) -> Bool {
    Self.contains(read, event) || read.readAt - event.arrivedAt >= Self.visibilityWait
  }

  /// The index of the first event to apply on top of the read; the number of events when there is
  /// none. Of the events before it, none is applied; of those after it, none is skipped.
  ///
  /// What events before a settled gap set is in the read, and the gap may have changed it: they are
  /// not applied though their time would allow it. Nor are events that every reader could see when the
  /// read was made: what came between them and the read without an event (a missing range, an overflow,
  /// a text whose difference was lost) stays.
  package static func firstApplied(
    _ read: Read, _ events: [Event], visibilityWait: Int64 = Self.visibilityWait
  ) -> Int {
    let settled =
      events.lastIndex {
        $0.isGap && Self.contains(read, $0)
          || read.readAt - $0.arrivedAt >= visibilityWait
      }
      .map { $0 + 1 } ?? 0
    let notContained = events.firstIndex { !Self.contains(read, $0) } ?? events.count
    return max(settled, notContained)
  }
}

/// The same for a row to which events come one by one: what it has to remember of its last read.
package struct ReadProgress: Sendable, Equatable {
  /// Nil once an event was applied on top, or for a row that was never read.
  package private(set) var read: ReadMerge.Read?

  package init(after read: ReadMerge.Read?) { self.read = read }

  /// Whether the event is to be applied; from then on all are.
  package mutating func takes(_ event: ReadMerge.Event) -> Bool {
    if let read, ReadMerge.contains(read, event) { return false }
    self.read = nil
    return true
  }
}
