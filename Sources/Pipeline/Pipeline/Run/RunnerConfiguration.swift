package import Clocks

/// The settings of a run, from the `run`, `commit` and `source` keys of a pipeline.
package struct RunnerConfiguration: Sendable {
  package enum Until: Sendable, Equatable {
    case caughtUp
    case forever
    case events(Int)
    case duration(Duration)
  }

  package enum InvalidReplayPolicy: Sendable {
    case fail, earliest, latest
  }

  package var until: Until = .caughtUp
  /// Silence after which a topic counts as caught up.
  package var quiet: Duration = .seconds(15)
  /// The service's clock, read when the run began; nil if unknown, in which case the runner's own
  /// clock is used.
  package var serviceClock: ServiceClock?
  /// Limits in addition to `until`. If one is reached first, the run has to be repeated (75),
  /// except that `maxEvents` is a success.
  package var maxEvents: Int?
  package var maxDuration: Duration?
  /// The number of events that the service may deliver, as counted by the source; nil for no limit.
  package var allowance: DeliveryAllowance?
  package var onInvalidReplay: InvalidReplayPolicy = .fail
  /// Events that may go to the dead letters before the run stops; nil for any number.
  package var maxDeadLetters: Int? = 0
  /// Share of the run's events, 0…1, that may become dead letters; nil for any share. Counts from
  /// `ratioFromEvents` events on.
  package var maxDeadLetterRatio: Double?

  /// With fewer events, the share means little: one letter among ten events is 10 %.
  package static let ratioFromEvents = 100

  /// Events outstanding per stream, 1…100.
  package var window = 100
  package var commitMaxEvents = 100_000
  package var commitMaxBytes = 16 << 20
  package var commitMaxDelay: Duration = .seconds(1)
  /// A position that has not been confirmed for this long is renewed by waiting for a keepalive.
  package var renewAfter: Duration = .seconds(12 * 3600)
  /// The longest wait for that keepalive. The service sends one within 270 s.
  package var keepaliveWait: Duration = .seconds(300)

  /// The time after which every reader of records sees a commit.
  package var visibilityWait: Duration = .seconds(60)

  /// A pass over the records of an object that takes longer starts again.
  package var passLimit: Duration = .seconds(48 * 3600)

  /// A run that follows requests a refused topic again after this time.
  package var refusedDelay: Duration = .seconds(600)

  /// How long a run that was interrupted or is out of time waits for an unavailable store.
  package var stopPatience = Self.stopPatience

  /// How long users wait for a stop, and service managers before they kill the process.
  package static let stopPatience: Duration = .seconds(10)

  /// Whether the times of events and stores are measured, for `RunStatistics`.
  package var measuresTimes = false

  /// The time of deadlines and pauses.
  package var clock = ProcessClock()

  package init() {}
}

/// How a run ended.
package enum RunOutcome: Sendable {
  package enum DeadLetterLimit: Sendable {
    case count
    /// The share of dead letters among the run's events so far.
    case ratio(ofEvents: Int)
  }

  case caughtUp
  case eventsReached
  case durationReached
  /// `maxDuration` passed before the run was done.
  case outOfTime
  /// `maxDuration` passed while records were being read; the next run continues.
  case readingGoesOn
  /// The org's delivery allowance is used up, except for the reserve.
  case allowanceSpent
  /// A clean stop by signal; `following` if nothing else would have ended the run.
  case interrupted(following: Bool)
  /// Nothing arrived that could be stored as the first position.
  case noPosition
  /// - Parameter topic: the topic of the last letter, or the one with the most letters.
  case deadLetterLimit(topic: String, DeadLetterLimit)
  case failed(SourceFailure)
}
