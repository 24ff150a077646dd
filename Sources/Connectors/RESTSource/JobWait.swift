internal import SalesforceREST

/// Decides how long to wait for a Bulk job, and when to report the wait.
struct JobWait {
  typealias Instant = ContinuousClock.Instant

  enum OnJob: Equatable {
    case wait
    /// Report to the user; the time waited so far.
    case report(Duration)
    /// The time without progress.
    case giveUp(Duration)
  }

  private let patience: Duration
  private let reports: Duration
  private let start: Instant
  private var progressedAt: Instant
  private var reportedAt: Instant
  private var last: BulkJob?

  init(_ options: SnapshotReader.Options, at now: Instant) {
    (self.patience, self.reports) = (options.jobPatience, options.waitReports)
    (self.start, self.progressedAt, self.reportedAt) = (now, now, now)
  }

  /// - Parameter job: as the org describes it now; under way.
  mutating func saw(_ job: BulkJob, at now: Instant) -> OnJob {
    if let last = self.last, last != job { self.progressedAt = now }
    self.last = job
    let still = self.progressedAt.duration(to: now)
    if still >= self.patience { return .giveUp(still) }
    guard self.reportedAt.duration(to: now) >= self.reports else { return .wait }
    self.reportedAt = now
    return .report(self.start.duration(to: now))
  }
}
