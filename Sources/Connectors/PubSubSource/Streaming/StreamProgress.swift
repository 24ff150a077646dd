internal import Pipeline
internal import PubSubAPI

/// Decides whether responses bring anything new, as opposed to those that come again each time the
/// stream is opened. A value type without I/O.
struct StreamProgress: Sendable {
  private var start: StartPoint?
  /// The furthest known place of the stream.
  private var reached: ReplayID?

  /// Call this before the stream is opened.
  mutating func opened(at start: StartPoint) {
    if start == self.start { return }
    self.start = start
    self.reached = if case .after(let replayID) = start { replayID } else { nil }
  }

  /// - Returns: whether the response goes beyond the furthest known place.
  mutating func received(_ view: FetchResponseView) -> Bool {
    let place = ReplayID(Array(view[view.events.last?.replayID ?? view.latestReplayIDField]))
    if place.bytes.isEmpty { return false }
    if let reached = self.reached, place == reached || place.isCertainlyBefore(reached) {
      return false
    }
    self.reached = place
    return true
  }
}
