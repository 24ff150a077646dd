internal import Bytes

/// A point in time between the years 0001 and 9999, in UTC, to the nanosecond.
package struct Timestamp: Hashable, Comparable, Sendable {
  /// Since 1970-01-01T00:00:00Z, rounded down.
  package let seconds: Int64
  /// 0 to 999,999,999.
  package let nanoseconds: Int32

  /// 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
  static let secondsRange: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

  /// Nil when the time is out of range.
  package init?(seconds: Int64, nanoseconds: Int32 = 0) {
    guard Self.secondsRange.contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else {
      return nil
    }
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// - Parameters:
  ///   - value: since 1970-01-01T00:00:00Z.
  ///   - unitsPerSecond: 1,000 for milliseconds and so on, up to 1,000,000,000.
  package init?(_ value: Int64, unitsPerSecond: Int64) {
    var (seconds, rest) = value.quotientAndRemainder(dividingBy: unitsPerSecond)
    if rest < 0 { (seconds, rest) = (seconds - 1, rest + unitsPerSecond) }
    self.init(
      seconds: seconds,
      nanoseconds: Int32(truncatingIfNeeded: rest * (1_000_000_000 / unitsPerSecond)))
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Nil when the sum is out of range.
  func adding(nanoseconds: Int64) -> Timestamp? {
    let sum = Int128(self.seconds) * 1_000_000_000 + Int128(self.nanoseconds) + Int128(nanoseconds)
    var (seconds, rest) = sum.quotientAndRemainder(dividingBy: 1_000_000_000)
    if rest < 0 { (seconds, rest) = (seconds - 1, rest + 1_000_000_000) }
    return Timestamp(seconds: Int64(seconds), nanoseconds: Int32(rest))
  }

  /// Nanoseconds since another time; nil when they are more than 64 bits hold, some 292 years.
  func since(_ other: Timestamp) -> Int64? {
    Int64(
      exactly: Int128(self.seconds - other.seconds) * 1_000_000_000
        + Int128(self.nanoseconds - other.nanoseconds))
  }
}

// MARK: Text

extension Timestamp {
  /// Reads RFC 3339: `2026-02-17T04:03:15.25Z`, `2026-02-17T04:03:15+02:00`. Nil for anything else,
  /// and for years outside 0001 to 9999.
  init?(text: UnsafeBufferPointer<UInt8>) {
    func number(_ start: Int, _ count: Int) -> Int64? {
      guard start + count <= text.count else { return nil }
      var value: Int64 = 0
      for index in start..<start + count {
        guard text[index].isDigit else { return nil }
        value = value * 10 + Int64(text[index] - UInt8(ascii: "0"))
      }
      return value
    }
    func has(_ character: Unicode.Scalar, at index: Int) -> Bool {
      index < text.count && text[index] == UInt8(ascii: character)
    }
    guard let year = number(0, 4), has("-", at: 4), let month = number(5, 2), has("-", at: 7),
      let day = number(8, 2), has("T", at: 10) || has("t", at: 10),
      let hour = number(11, 2), has(":", at: 13), let minute = number(14, 2), has(":", at: 16),
      let second = number(17, 2), year >= 1, (1...12).contains(month), day >= 1,
      day <= CalendarDate.dayCount(year: year, month: month), hour < 24, minute < 60, second < 60
    else { return nil }
    var index = 19
    var nanoseconds: Int64 = 0
    if has(".", at: index) {
      index += 1
      let start = index
      var unit: Int64 = 100_000_000
      while index < text.count, text[index].isDigit {
        nanoseconds += Int64(text[index] - UInt8(ascii: "0")) * unit
        unit /= 10
        index += 1
      }
      guard index > start, index - start <= 9 else { return nil }
    }
    var offset: Int64 = 0
    if has("Z", at: index) || has("z", at: index) {
      index += 1
    } else {
      guard has("+", at: index) || has("-", at: index), let hours = number(index + 1, 2),
        has(":", at: index + 3), let minutes = number(index + 4, 2), hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 3600 + minutes * 60) * (has("-", at: index) ? -1 : 1)
      index += 6
    }
    guard index == text.count else { return nil }
    let days = CalendarDate.days(year: year, month: month, day: day)
    self.init(
      seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset,
      nanoseconds: Int32(nanoseconds))
  }

  /// RFC 3339 in UTC; fractions of a second only as far as they are not zero.
  func append(to buffer: inout ByteBuffer) {
    buffer.appendTimestamp(self.seconds * 1000, .milliseconds)
    // Without ".000Z".
    buffer.truncate(to: buffer.count - 5)
    appendFraction(self.nanoseconds, to: &buffer)
    buffer.append(UInt8(ascii: "Z"))
  }
}

/// `.25` for 250,000,000; nothing for 0.
func appendFraction(_ nanoseconds: Int32, to buffer: inout ByteBuffer) {
  guard nanoseconds > 0 else { return }
  buffer.append(UInt8(ascii: "."))
  var rest = nanoseconds
  var unit: Int32 = 100_000_000
  while rest > 0 {
    buffer.append(UInt8(ascii: "0") + UInt8(rest / unit))
    rest %= unit
    unit /= 10
  }
}

/// A day of the proleptic Gregorian calendar.
struct CalendarDate {
  var year: Int64
  /// 1 to 12.
  var month: Int64
  /// 1 to 31.
  var day: Int64

  /// - Parameter days: since 1970-01-01.
  init(days: Int64) {
    // By eras of 400 years from 0000-03-01, so that the leap day is the last of a year (Howard
    // Hinnant, chrono-compatible low-level date algorithms).
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let part = (5 * dayOfYear + 2) / 153
    self.day = dayOfYear - (153 * part + 2) / 5 + 1
    self.month = part < 10 ? part + 3 : part - 9
    self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
  }

  /// Days since 1970-01-01.
  static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  static func dayCount(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }
}
