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
      let latest = Array(view[view.latestReplayIDField])
      if let id = latest.isEmpty ? self.group?.replayID : latest { self.start = .after(id) }
      self.group = nil
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

  /// The call has ended.
  mutating func interrupted() {
    // To begin at the tip again would lose what is published meanwhile.
    guard case .latest = self.start, let group = self.group else { return }
    self.start = .after(group.replayID)
    self.group = nil
  }
}
