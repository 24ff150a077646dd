/// Something that is wrong with a pipeline from one moment to another, however many runs see it.
struct Incident: Equatable, Sendable {
  enum Kind: String, CaseIterable, Sendable {
    /// Runs fail, or a run that follows fails and retries.
    case failing
    /// Changes are exported late.
    case lag
    /// The service may soon forget a position.
    case positionAge = "position_age"
    case deadLetters = "dead_letters"
    /// `verify` has found a difference.
    case drift
  }

  /// What is wrong, as it was last seen.
  struct Finding: Equatable, Sendable {
    /// What, on which thing, what to do.
    var message: String
    /// One stable word.
    var reason: String
    /// The exit code of the run; nil if no run has failed.
    var exitCode: Int32?
  }

  var kind: Kind
  var finding: Finding
  /// When it was first seen, in milliseconds since 1970.
  var since: Int64
  /// When it was seen to be over; nil while it lasts.
  var until: Int64?
  /// How many times it was seen: of `failing` in a crontab, the number of failed runs.
  var count = 1
  /// Whether its beginning was delivered.
  var isCalled = false
  /// How many calls were begun for the notice that is due.
  var attempts = 0
  /// The reasons that were shown on standard error.
  var shownReasons: [String] = []
  /// When it was last shown there.
  var shownAt: Int64?

  /// How long it has lasted, in milliseconds.
  func duration(at now: Int64) -> Int64 { max(0, (self.until ?? now) - self.since) }
}
