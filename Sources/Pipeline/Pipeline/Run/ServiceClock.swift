/// The service's time: one reading of its clock, plus the time since then.
///
/// Commit times come from the service. This clock decides which of them are possible.
package struct ServiceClock: Sendable {
  /// Milliseconds since 1970.
  package var reading: Int64
  package var readAt: ContinuousClock.Instant

  /// Readings are whole seconds, and the login host's clock is not the event bus's.
  private static var tolerance: Int64 { 10_000 }

  /// - Parameter reading: milliseconds since 1970; clamped to the calendar's range.
  package init(reading: Int64, readAt: ContinuousClock.Instant) {
    self.reading = min(max(reading, CommitTime.range.lowerBound), CommitTime.range.upperBound)
    self.readAt = readAt
  }

  /// Milliseconds since 1970.
  package func time(at now: ContinuousClock.Instant) -> Int64 {
    let (seconds, rest) = (now - self.readAt).components
    return self.reading + seconds * 1000 + rest / 1_000_000_000_000_000
  }

  /// The latest plausible commit time; later ones are wrong and prove nothing.
  package func latestCommit(at now: ContinuousClock.Instant) -> Int64 {
    self.time(at: now) + Self.tolerance
  }
}

/// When a change was committed, in milliseconds since 1970.
package enum CommitTime {
  /// Years 1 to 9999, checked when an event is decoded: dates of other years have no common notation,
  /// and within these no sum or difference of times overflows.
  package static let range: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999
}
