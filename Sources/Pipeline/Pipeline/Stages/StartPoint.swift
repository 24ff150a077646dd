/// Where a subscription begins.
package enum StartPoint: Sendable, Hashable {
  /// The oldest event retained.
  case earliest
  /// The tip: events published from now on.
  case latest
  /// The position that the service itself keeps for the subscription.
  case managed
  /// Strictly after this ID (TheService.md#replay-ids).
  case after(ReplayID)
}
