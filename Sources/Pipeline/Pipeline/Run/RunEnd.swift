/// Whether and how a run ends. The first reason wins.
struct RunEnd {
  typealias Instant = ContinuousClock.Instant

  private(set) var outcome: RunOutcome?
  /// When `outcome` was decided.
  private(set) var decidedAt: Instant?
  /// When the user requested a stop, whether or not it decided the outcome.
  private var interruptedAt: Instant?

  /// - Returns: whether this is the first reason.
  mutating func decide(_ outcome: RunOutcome, at now: Instant) -> Bool {
    guard self.outcome == nil else { return false }
    self.outcome = outcome
    self.decidedAt = now
    return true
  }

  mutating func interrupted(at now: Instant) { self.interruptedAt = self.interruptedAt ?? now }

  /// Since when the run waits for an unavailable store only for so long; nil if it waits as long as
  /// the store does.
  ///
  /// - Parameter follows: the run would wait for a store forever, so its patience counts from the end,
  ///   whatever ended it.
  func patience(follows: Bool) -> Instant? {
    switch self.outcome {
    case .interrupted, .outOfTime: self.decidedAt
    default: follows ? self.decidedAt : self.interruptedAt
    }
  }
}
