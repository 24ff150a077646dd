internal import PubSubAPI

/// Where a subscription resumes after it broke.
///
/// Several events in a row may have one replay ID, and a subscription that begins after an ID skips
/// all events that have it (TheService.md#replay-ids). So the position moves to an ID only when
/// something else has followed its events; until then, those that came are remembered and dropped when
/// they come again.
struct StreamPosition {
  /// Where the next call begins.
  private(set) var start: Subscription.Position
  /// The replay ID of the last event, and the IDs of the events that had it.
  private var group: (replayID: [UInt8], eventIDs: Set<[UInt8]>)?

  init(_ start: Subscription.Position) { self.start = start }

  /// Takes a response.
  ///
  /// - Returns: the events of it that have not come before.
  mutating func received(_ view: FetchResponseView) -> [FetchResponseView.Event] {
    if view.isKeepalive {
      self.keepalive(Array(view[view.latestReplayIDField]))
      return []
    }
    return view.events.filter { event in
      let replayID = Array(view[event.replayID])
      let eventID = Array(view[event.eventID])
      if self.group?.replayID == replayID {
        return self.group?.eventIDs.insert(eventID).inserted == true
      }
      if let group = self.group { self.start = .after(group.replayID) }
      self.group = (replayID, [eventID])
      return true
    }
  }

  /// Nothing else has the replay ID of the last events, unless the ID of the response is from before
  /// them.
  private mutating func keepalive(_ latest: [UInt8]) {
    if let group = self.group {
      if Self.isCertain(latest, before: group.replayID) { return }
      self.start = .after(group.replayID)
      self.group = nil
    }
    if case .after(let known) = self.start, Self.isCertain(latest, before: known) { return }
    if !latest.isEmpty { self.start = .after(latest) }
  }

  /// Whether both look like today's replay IDs, which begin with a number of 8 bytes, and the first
  /// number is lower. Only a veto, since the service says nothing about their order.
  private static func isCertain(_ replayID: [UInt8], before other: [UInt8]) -> Bool {
    replayID.count == other.count && replayID.count >= 8
      && replayID[..<8].lexicographicallyPrecedes(other[..<8])
  }

  /// The call has ended.
  mutating func interrupted() {
    // To begin at the tip again would lose what is published meanwhile.
    guard case .latest = self.start, let group = self.group else { return }
    self.start = .after(group.replayID)
    self.group = nil
  }
}
