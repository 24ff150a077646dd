import Pipeline

/// Limits the time for which `verify` waits for records without any progress, and says what it waits
/// for.
///
/// A value: time is an argument, except for the beginning of a wait.
struct OrgPatience {
  typealias Instant = ContinuousClock.Instant

  /// Nil for no limit.
  let limit: Duration?
  private let now: () -> Instant
  private var awaited = ""
  private var job: (id: String, count: Int)?
  private var since: Instant
  private var spokenAt: Instant

  /// A Bulk job needs some time, whatever the retries of a run.
  static let minLimit = Duration.seconds(60)
  /// The time between messages.
  private static let silence = Duration.seconds(30)

  init(limit: Duration?, now: @escaping () -> Instant) {
    self.limit = limit
    self.now = now
    self.since = now()
    self.spokenAt = self.since
  }

  /// Begins to wait for something else.
  mutating func begin(_ awaited: String) {
    self.awaited = awaited
    self.job = nil
    self.progressed()
  }

  mutating func progressed() {
    self.since = self.now()
    self.spokenAt = self.since
  }

  /// A pause before the next attempt does not count; the retries have their own limit.
  mutating func excuse(_ pause: Duration) {
    self.progressed()
    self.since += pause
  }

  /// The org is still working on a job; more rows are progress.
  mutating func note(job id: String, _ count: Int) {
    let isProgress = self.job.map { $0.id != id || $0.count < count } ?? true
    self.job = (id, count)
    if isProgress { self.progressed() }
  }

  /// - Returns: a line for the user, from time to time.
  /// - Throws: `RunFailure` (unavailable) after the limit.
  mutating func look(at now: Instant) throws(RunFailure) -> String? {
    let waited = now - self.since
    let work =
      self.job.map { "Bulk job \($0.id), with \(Phrase.count($0.count, "record")) so far" }
      ?? "no answer yet"
    if let limit, waited >= limit {
      throw RunFailure(
        .noProgress,
        "gave up waiting for \(self.awaited): no progress for \(Phrase.duration(limit)) (\(work)); "
          + "try again later, or set a longer retry.give_up_after")
    }
    guard waited >= Self.silence, now - self.spokenAt >= Self.silence else { return nil }
    self.spokenAt = now
    return "waiting for \(self.awaited): no progress for "
      + "\(Phrase.duration(.seconds(waited.components.seconds))) (\(work))"
  }
}
