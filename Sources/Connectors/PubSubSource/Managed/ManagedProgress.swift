package import Pipeline

/// The state of a run's managed subscription.
package struct ManagedProgress: Sendable, Equatable {
  /// Developer name or record ID.
  package var subscription: String
  /// Where a run would resume; nil before any position.
  package var durable: ReplayID?
  /// The position that the service has stored, according to its last answer to a commit of this
  /// run.
  package var stored: ReplayID?
  package var confirmedCount = 0
  /// Commits that were refused, or answered with another position.
  package var failedCount = 0
  /// How often the service's position did not continue ours, so that `Subscribe` took over.
  package var detourCount = 0
}

/// A step of a managed subscription, for logs.
package enum ManagedNotice: Sendable, Equatable {
  /// The service has stored a position.
  case confirmed(ReplayID)
  /// The service has not stored a position, and says why. The export continues.
  case commitFailed(ReplayID, reason: String)
  /// The service has stored a position other than the requested one. The export continues.
  case misplaced(ReplayID, asked: ReplayID)
  /// The managed stream does not continue at our position, so `Subscribe` takes over.
  case detour(reason: String)
}
