public import Pipeline

/// What a run knows of its managed subscription.
public struct ManagedProgress: Sendable, Equatable {
  /// Developer name or record ID.
  public var subscription: String
  /// Where a run would resume; nil before any position.
  public var durable: ReplayID?
  /// The position that the service has stored, by its last answer to a commit of this run.
  public var stored: ReplayID?
  public var confirmedCount = 0
  /// Commits that were refused, or answered with another position.
  public var failedCount = 0
  /// How often the service's position was found not to continue ours, and `Subscribe` read on.
  public var detourCount = 0
}

/// A step of a managed subscription, for a log.
public enum ManagedNotice: Sendable, Equatable {
  /// The service has stored a position.
  case confirmed(ReplayID)
  /// It has not, and says why. The export goes on.
  case commitFailed(ReplayID, reason: String)
  /// It has stored another position than it was asked to. The export goes on.
  case misplaced(ReplayID, asked: ReplayID)
  /// Its stream does not go on at our position, so `Subscribe` reads on.
  case detour(reason: String)
}
