internal import Glibc

/// Dates and times in UTC, without locale or time zone data.
@usableFromInline package enum UTCTime {
  /// Days since 1970-01-01 of a time in milliseconds since then.
  @inlinable @inline(__always)
  package static func day(ofMilliseconds milliseconds: Int64) -> Int64 {
    let quotient = milliseconds / 86_400_000
    return milliseconds % 86_400_000 < 0 ? quotient - 1 : quotient
  }

  /// `2026-02-17`; years before 1 or after 9999 with a sign and at least six digits.
  package static func date(day: Int64) -> String {
    let date = CalendarDate(day: day)
    let year = date.year
    let yearText =
      (1...9999).contains(year)
      ? Self.padded(year, 4) : (year < 0 ? "-" : "+") + Self.padded(abs(year), 6)
    return "\(yearText)-\(Self.padded(date.month, 2))-\(Self.padded(date.dayOfMonth, 2))"
  }

  /// `2026-02-17T04:03:15.000Z`.
  package static func timestamp(milliseconds: Int64) -> String {
    let day = Self.day(ofMilliseconds: milliseconds)
    // Not by multiplication, which overflows for the earliest times.
    let remainder = milliseconds % 86_400_000
    let rest = remainder < 0 ? remainder + 86_400_000 : remainder
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60)
    let (seconds, fraction) = (rest / 1000 % 60, rest % 1000)
    return Self.date(day: day) + "T" + Self.padded(hours, 2) + ":" + Self.padded(minutes, 2) + ":"
      + Self.padded(seconds, 2) + "." + Self.padded(fraction, 3) + "Z"
  }

  /// The wall clock of the machine, in milliseconds since 1970.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}
