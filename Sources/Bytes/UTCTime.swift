internal import Clocks
internal import Glibc

/// Dates and times in UTC, without locale or time zone data.
package enum UTCTime {
  /// Days since 1970-01-01 of a time in milliseconds since then.
  @inline(__always)
  package static func day(ofMilliseconds milliseconds: Int64) -> Int64 {
    let quotient = milliseconds / 86_400_000
    return milliseconds % 86_400_000 < 0 ? quotient - 1 : quotient
  }

  /// `2026-02-17`; years before 1 or after 9999 with a sign and at least six digits.
  package static func date(day: Int64) -> String {
    // Days to civil date by eras of 400 years, each beginning on 1 March.
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let yearText =
      (1...9999).contains(year)
      ? Self.padded(year, 4) : (year < 0 ? "-" : "+") + Self.padded(abs(year), 6)
    return "\(yearText)-\(Self.padded(month, 2))-\(Self.padded(dayOfMonth, 2))"
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

  /// The wall clock, in milliseconds since 1970.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000 + ProcessClock.wallOffset
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}
