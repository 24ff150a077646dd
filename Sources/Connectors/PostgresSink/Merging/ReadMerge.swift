/// Merges a record that was read over REST with its change events
/// (RESTAndBulk.md#records-and-events, rules 3 to 6).
///
/// A record's state is its newest read, followed by its events in stream order from the first that
/// the read may not contain. Events before that are contained in the read. Times are milliseconds
/// since 1970.
///
/// This is correct because changes to one record have the same order by stamp, by commit and in the
/// stream. So a read that contains an event contains all earlier ones, and applying a contained
/// event again is harmless as long as all later ones follow. Clocks of stamps and commits differ by
/// less than `clockTolerance`, and a commit can be seen by readers within `visibilityWait`.
package struct ReadMerge {
  /// A record as read by one request.
  package struct Read: Sendable, Equatable {
    /// `SystemModstamp`.
    package var stamp: Int64
    /// When the request was sent, by the database's clock.
    package var readAt: Int64

    package init(stamp: Int64, readAt: Int64) {
      self.stamp = stamp
      self.readAt = readAt
    }

    /// Reads may come from servers that lag, so a stamp older than the known one usually adds
    /// nothing. But a read that was requested long after the other's stamp has seen that change, or
    /// the stamp was wrong: the org was restored, or its clock was ahead.
    package func isNewer(than other: Read) -> Bool {
      if self.readAt > other.readAt, self.hasSeen(other) { return true }
      if other.readAt > self.readAt, other.hasSeen(self) { return false }
      return (self.stamp, self.readAt) > (other.stamp, other.readAt)
    }

    /// Whether every reader could see the other read's newest change when this read was requested.
    func hasSeen(_ other: Read, visibilityWait: Int64 = ReadMerge.visibilityWait) -> Bool {
      self.readAt - other.stamp >= visibilityWait + ReadMerge.clockTolerance
    }
  }

  /// The properties of an event that decide whether it is applied.
  package struct Event: Sendable, Equatable {
    /// `commitTimestamp`; nil for one without a usable time, which counts as later than any read.
    package var commit: Int64?
    /// When the event was received, by the database's clock.
    package var arrivedAt: Int64
    /// The event reports a change without its values: a gap event, a refused event, an unknown
    /// change type, or the end of a missing range.
    package var isGap: Bool
    /// The event creates the record, so every read of the record contains it, however the clocks
    /// differ. Its schema may lack fields that the read has.
    package var isCreation: Bool

    package init(commit: Int64?, arrivedAt: Int64, isGap: Bool, isCreation: Bool = false) {
      self.commit = commit
      self.arrivedAt = arrivedAt
      self.isGap = isGap
      self.isCreation = isCreation
    }
  }

  /// Stamps and commit times are whole seconds of several clocks.
  static let clockTolerance: Int64 = 5000
  /// The time after which every reader sees a commit, whatever its stamp.
  package static let visibilityWait: Int64 = 60_000

  /// Whether the read certainly contains the event, and all events before it.
  package static func contains(_ read: Read, _ event: Event) -> Bool {
    guard let commit = event.commit else { return false }
    return commit < read.stamp + (event.isCreation ? Self.clockTolerance : -Self.clockTolerance)
  }

  /// Whether the read certainly includes the event's change and all earlier ones, either by its
  /// stamp or because every reader could see the event's commit at the time of the read.
  ///
  /// A stamp that is only slightly later is not enough, because it may belong to an earlier change.
  package static func settles(_ read: Read, _ event: Event) -> Bool {
    Self.contains(read, event) || read.readAt - event.arrivedAt >= Self.visibilityWait
  }

  /// The index of the first event to apply to the read, or the number of events if there is none.
  /// No earlier event is applied, and no later one is skipped.
  ///
  /// Events before a settled gap are not applied even if their time allows it: the read has their
  /// values, and the gap may have changed them. Events that every reader could see at the time of
  /// the read are not applied either. This preserves changes between them and the read that have no
  /// event (a missing range, an overflow, a text whose diff was lost).
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

extension ReadMerge {
  /// SQL: the time that decides whether a read contains an event (`contains`).
  static func time(of event: String) -> String {
    "CASE WHEN \(event)._change_type = 'CREATE' "
      + "THEN \(event)._commit_timestamp - interval '\(2 * self.clockTolerance) ms' "
      + "ELSE \(event)._commit_timestamp END"
  }
}

extension RowBuffer.Row {
  /// The properties that decide whether a read contains the event by its time.
  var mergedEvent: ReadMerge.Event {
    ReadMerge.Event(
      commit: self.commitTimestamp, arrivedAt: 0, isGap: false, isCreation: self.change == .create)
  }
}

/// The rule for a row that receives events one by one: the state that it keeps of its last read.
package struct ReadProgress: Sendable, Equatable {
  /// Nil once an event was applied on top, or for a row that was never read.
  package private(set) var read: ReadMerge.Read?

  package init(after read: ReadMerge.Read?) { self.read = read }

  /// Whether to apply the event. Once one is applied, all later ones are.
  package mutating func takes(_ event: ReadMerge.Event) -> Bool {
    if let read, ReadMerge.contains(read, event) { return false }
    self.read = nil
    return true
  }
}
