internal import Clocks

/// The wait for a managed subscription that another client holds, or that the service still reserves
/// for a client that has disconnected. A value type without I/O.
struct SubscriptionWait: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// How long, approximately, the service reserves the subscription for a client that has disconnected
  /// (TheService.md#managed-subscriptions).
  static let holdTime = Duration.seconds(900)

  private var retries: Retries

  /// - Parameter schedule: the delays between attempts. An unlimited schedule stays unlimited.
  /// - Parameter patience: replaces the limit of a schedule that has one; nil keeps it.
  init(_ schedule: RetrySchedule, patience: Duration?) {
    var schedule = schedule
    if let patience, schedule.giveUpAfter != nil { schedule.giveUpAfter = patience }
    self.retries = Retries(schedule)
  }

  /// Call this when the service has said that the subscription is taken.
  ///
  /// - Returns: the pause before the next attempt; nil if it is time to give up.
  mutating func refused(at now: Instant, minimum: Duration, random: Double) -> Duration? {
    self.retries.failed(at: now, minimum: minimum, random: random)
  }

  /// What to add to the last error after giving up.
  func verdict(at now: Instant) -> String {
    let left = Self.holdTime - self.retries.elapsed(at: now)
    return self.retries.verdict(at: now)
      + (left > .zero
        ? "; if no other client is connected, the service frees it in "
          + "\(Self.minutes(left)) at the latest: run again then"
        : "; a run that was killed would have been forgotten by now, so another client is "
          + "connected: end it, or give each pipeline a managed subscription of its own")
  }

  private static func minutes(_ duration: Duration) -> String {
    let count = (duration.components.seconds + 59) / 60
    return count == 1 ? "1 minute" : "\(count) minutes"
  }
}
