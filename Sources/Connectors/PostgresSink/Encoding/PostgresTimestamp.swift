/// A value of `timestamp with time zone` or `timestamp`: 4713-01-01 BC to 294276-12-31.
struct PostgresTimestamp {
  /// Since 2000-01-01T00:00:00.
  let microseconds: Int64

  /// Nil outside the type's range.
  ///
  /// - Parameter milliseconds: since 1970-01-01T00:00:00.
  init?(milliseconds: Int64) {
    let (value, overflow) = milliseconds.subtractingReportingOverflow(946_684_800_000)
    guard !overflow, let microseconds = value.millisecondsAsMicroseconds else { return nil }
    self.init(since2000: microseconds)
  }

  /// - Parameter microseconds: since 1970-01-01T00:00:00.
  init?(microseconds: Int64) {
    let (value, overflow) = microseconds.subtractingReportingOverflow(946_684_800_000_000)
    guard !overflow else { return nil }
    self.init(since2000: value)
  }

  private init?(since2000 microseconds: Int64) {
    // MIN_TIMESTAMP and END_TIMESTAMP in datatype/timestamp.h.
    guard microseconds >= -211_813_488_000_000_000, microseconds < 9_223_371_331_200_000_000
    else { return nil }
    self.microseconds = microseconds
  }
}
