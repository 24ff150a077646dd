/// Reads ISO 8601 text of dates and times, proleptic Gregorian calendar. Nothing is allocated.
package enum DateText {
  package typealias Text = UnsafeRawBufferPointer

  package static func digit(_ byte: UInt8) -> Int64? {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int64(byte - UInt8(ascii: "0")) : nil
  }

  /// The number that `count` digits at a place make.
  package static func number(_ text: Text, _ place: Int, _ count: Int) -> Int64? {
    guard place + count <= text.count else { return nil }
    var value: Int64 = 0
    for index in place..<place + count {
      guard let digit = Self.digit(text[index]) else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  package static func has(_ text: Text, _ place: Int, _ character: Unicode.Scalar) -> Bool {
    place < text.count && text[place] == UInt8(ascii: character)
  }

  /// `2026-02-17`, as days since 1970.
  package static func day(_ text: Text) -> Int64? {
    text.count == 10 ? Self.leadingDay(text) : nil
  }

  /// The same at the beginning of a text.
  package static func leadingDay(_ text: Text) -> Int64? {
    guard let year = Self.number(text, 0, 4), Self.has(text, 4, "-"),
      let month = Self.number(text, 5, 2), Self.has(text, 7, "-"),
      let day = Self.number(text, 8, 2)
    else { return nil }
    return Self.day(year: year, month: month, day: day)
  }

  private static func dayCount(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// A time of day.
  package struct Clock {
    package var seconds: Int64
    /// Fraction of the second, 0 to 999,999,999.
    package var nanoseconds: Int64
    /// How many the fraction has: 0 without one, else 1 to 9.
    package var fractionDigits: Int
    /// Where it ends in the text.
    package var end: Int
  }

  /// `04:03:15` or `04:03:15.000` from a place on.
  package static func clock(_ text: Text, _ start: Int) -> Clock? {
    guard let hours = Self.number(text, start, 2), Self.has(text, start + 2, ":"),
      let minutes = Self.number(text, start + 3, 2), Self.has(text, start + 5, ":"),
      let seconds = Self.number(text, start + 6, 2), hours < 24, minutes < 60, seconds < 60
    else { return nil }
    var clock = Clock(
      seconds: hours * 3600 + minutes * 60 + seconds, nanoseconds: 0, fractionDigits: 0,
      end: start + 8)
    guard Self.has(text, start + 8, ".") else { return clock }
    guard let fraction = Self.fraction(text, start + 9) else { return nil }
    clock.nanoseconds = fraction.nanoseconds
    clock.fractionDigits = fraction.digits
    clock.end = start + 9 + fraction.digits
    return clock
  }

  /// One to nine digits behind a point.
  package static func fraction(
    _ text: Text, _ start: Int
  ) -> (nanoseconds: Int64, digits: Int)? {
    var value: Int64 = 0
    var count = 0
    while count < 9, start + count < text.count, let digit = Self.digit(text[start + count]) {
      value = value * 10 + digit
      count += 1
    }
    guard count > 0 else { return nil }
    for _ in count..<9 { value *= 10 }
    return (value, count)
  }

  /// Days since 1970 of a date; nil when there is none.
  package static func day(year: Int64, month: Int64, day: Int64) -> Int64? {
    guard (1...12).contains(month), day >= 1, day <= Self.dayCount(year: year, month: month) else {
      return nil
    }
    // Years that begin on 1 March, in eras of 400 of them.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// `Z`, `+0000` or `+00:00` from a place to the end of the text, as seconds east of UTC.
  package static func zone(_ text: Text, _ start: Int) -> Int64? {
    if Self.has(text, start, "Z") { return start + 1 == text.count ? 0 : nil }
    let isEast = Self.has(text, start, "+")
    guard isEast || Self.has(text, start, "-") else { return nil }
    let colon = Self.has(text, start + 3, ":") ? 1 : 0
    guard let hours = Self.number(text, start + 1, 2),
      let minutes = Self.number(text, start + 3 + colon, 2), start + 5 + colon == text.count,
      hours < 24, minutes < 60
    else { return nil }
    return (hours * 60 + minutes) * 60 * (isEast ? 1 : -1)
  }
}
