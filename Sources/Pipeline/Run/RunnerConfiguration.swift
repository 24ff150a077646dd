/// How a run is conducted; the meaning of the `run`, `commit` and `source` keys of a pipeline.
public struct RunnerConfiguration: Sendable {
  public enum Until: Sendable, Equatable {
    case caughtUp
    case forever
    case events(Int)
    case duration(Duration)
  }

  public enum InvalidReplayPolicy: Sendable {
    case fail, earliest, latest
  }

  public var until: Until = .caughtUp
  /// Silence after which a topic counts as caught up.
  public var quiet: Duration = .seconds(15)
  /// The service's clock, read when the run began; nil when it is not known and the runner's own
  /// clock has to do.
  public var serviceClock: ServiceClock?
  /// Limits beside `until`: when they are reached first, the run has to be repeated (75), except
  /// that `maxEvents` is a success.
  public var maxEvents: Int?
  public var maxDuration: Duration?
  /// The number of events that the service may deliver, as counted by the source; nil for no limit.
  public var allowance: DeliveryAllowance?
  public var onInvalidReplay: InvalidReplayPolicy = .fail
  /// Events that may go to the dead letters before the run stops; nil for any number.
  public var maxDeadLetters: Int? = 0
  /// Share of the run's events, 0…1, that may become dead letters; nil for any share. Counts from
  /// `ratioFromEvents` events on.
  public var maxDeadLetterRatio: Double?

  /// A share of fewer events means little: one letter among ten events is 10 %.
  public static let ratioFromEvents = 100

  /// Events outstanding per stream, 1…100.
  public var window = 100
  public var commitMaxEvents = 2000
  public var commitMaxBytes = 16 << 20
  public var commitMaxDelay: Duration = .seconds(1)
  /// A position not confirmed for so long is renewed by waiting for a keepalive.
  public var renewAfter: Duration = .seconds(12 * 3600)
  /// Longest wait for that keepalive: the service sends one within 270 s.
  public var keepaliveWait: Duration = .seconds(300)

  /// Time after which every reader of records sees a commit.
  public var visibilityWait: Duration = .seconds(60)

  /// A pass over the records of an object that takes longer starts again.
  public var passLimit: Duration = .seconds(48 * 3600)

  /// A run that follows requests a refused topic again after this time.
  public var refusedDelay: Duration = .seconds(600)

  /// How long a run that was interrupted, or whose time is over, waits for a store that is not
  /// available.
  public var stopPatience = Self.stopPatience

  /// The time that users wait for a stop, and service managers before they kill the process.
  public static let stopPatience: Duration = .seconds(10)

  public init() {}
}

/// How a run ended.
public enum RunOutcome: Sendable {
  public enum DeadLetterLimit: Sendable {
    case count
    /// A share of the run's events so far.
    case ratio(ofEvents: Int)
  }

  case caughtUp
  case eventsReached
  case durationReached
  /// `maxDuration` before the run was done.
  case outOfTime
  /// `maxDuration`, while records were being read: the next run goes on with them.
  case readingGoesOn
  /// The org's allowance of deliveries is spent but for what has to be left.
  case allowanceSpent
  /// A clean stop by signal; `following` when nothing else would have ended the run.
  case interrupted(following: Bool)
  /// Nothing came that could be stored as a first position.
  case noPosition
  /// - Parameter topic: of the last letter, or with most letters.
  case deadLetterLimit(topic: String, DeadLetterLimit)
  case failed(SourceFailure)
}
