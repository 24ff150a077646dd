/// Where a subscription begins.
public enum StartPoint: Sendable, Hashable {
  /// The oldest event retained.
  case earliest
  /// The tip: events published from now on.
  case latest
  /// Where the service says, which keeps a position of its own for the subscription.
  case managed
  /// Strictly after this ID (TheService.md#replay-ids).
  case after(ReplayID)
}
