// ISO 8601 text of dates and times, proleptic Gregorian calendar. Nothing here allocates but the
// growth of the buffer.

extension ByteBuffer {
  /// Digits of a second's fraction, which is also the unit of the value.
  package enum SecondFraction: Sendable {
    case milliseconds, microseconds, nanoseconds
  }

  /// `2026-02-17`. Years outside 0001–9999 in ISO 8601's expanded form: a sign and at least five
  /// digits, `-00001-12-31`, `+12026-02-17`.
  ///
  /// - Parameter days: days since 1970-01-01.
  package mutating func appendDate(days: Int32) {
    let start = self.reserve(24)
    self.commit(writeDate(days: Int64(days), to: start) - start)
  }

  /// The date in UTC.
  ///
  /// - Parameter milliseconds: since 1970-01-01T00:00:00Z; the time of day is dropped.
  package mutating func appendDate(milliseconds: Int64) {
    let start = self.reserve(24)
    self.commit(writeDate(days: floorDivide(milliseconds, 86_400_000).quotient, to: start) - start)
  }

  /// `07:12:55.807`. A value outside the day keeps its meaning: hours beyond 23, and a
  /// minus sign before a negative time.
  ///
  /// - Parameter value: since midnight, in the unit of `fraction`.
  package mutating func appendTime(_ value: Int64, _ fraction: SecondFraction) {
    let start = self.reserve(40)
    var out = start
    if value < 0 {
      out.pointee = UInt8(ascii: "-")
      out += 1
    }
    // Constants, so that no division is one for the machine.
    switch fraction {
    case .milliseconds: out = writeTime(value.magnitude, perSecond: 1_000, digits: 3, to: out)
    case .microseconds: out = writeTime(value.magnitude, perSecond: 1_000_000, digits: 6, to: out)
    case .nanoseconds:
      out = writeTime(value.magnitude, perSecond: 1_000_000_000, digits: 9, to: out)
    }
    self.commit(out - start)
  }

  /// `2026-02-17T04:03:15.000Z`, with 3, 6 or 9 digits; years as in `appendDate`.
  ///
  /// - Parameters:
  ///   - value: since 1970-01-01T00:00:00, in the unit of `fraction`.
  ///   - isLocal: true for a time in no zone, which has no `Z`.
  package mutating func appendTimestamp(
    _ value: Int64, _ fraction: SecondFraction, isLocal: Bool = false
  ) {
    let start = self.reserve(48)
    var out: UnsafeMutablePointer<UInt8>
    switch fraction {
    case .milliseconds where usualMilliseconds.contains(value):
      out = writeUsualTimestamp(value, to: start)
    case .milliseconds: out = writeTimestamp(value, perSecond: 1_000, digits: 3, to: start)
    case .microseconds: out = writeTimestamp(value, perSecond: 1_000_000, digits: 6, to: start)
    case .nanoseconds: out = writeTimestamp(value, perSecond: 1_000_000_000, digits: 9, to: start)
    }
    if !isLocal {
      out.pointee = UInt8(ascii: "Z")
      out += 1
    }
    self.commit(out - start)
  }
}

/// The years 1 to 9999, in milliseconds since 1970.
private let usualMilliseconds: Range<Int64> = -62_135_596_800_000..<253_402_300_800_000

/// Writes 23 bytes and returns their end. In 32 bits, where a division by a constant is cheaper.
///
/// Years begin with March here, too. Multiplications that give a quotient and a remainder at once
/// (Neri and Schneider, "Euclidean affine functions and their application to calendar algorithms",
/// 2022) divide by the length of a year and of a month.
///
/// - Parameter value: within `usualMilliseconds`.
@inline(__always)
private func writeUsualTimestamp(
  _ value: Int64, to out: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  // Since 0000-03-01, so nothing is negative.
  let sinceMarch = UInt64(bitPattern: value &+ 719_468 &* 86_400_000)
  let days = sinceMarch / 86_400_000
  let time = UInt32(truncatingIfNeeded: sinceMarch &- days &* 86_400_000)

  let quarterDays = UInt32(truncatingIfNeeded: days) &* 4 &+ 3
  let century = quarterDays / 146_097
  let quarterDaysOfCentury = (quarterDays &- century &* 146_097) | 3
  let product = UInt64(quarterDaysOfCentury) &* 2_939_745
  let yearOfCentury = UInt32(truncatingIfNeeded: product &>> 32)
  let dayOfYear = UInt32(truncatingIfNeeded: product) / 2_939_745 / 4
  let months = dayOfYear &* 2141 &+ 197_913
  let isNextYear = dayOfYear >= 306
  let month = months &>> 16 &- (isNextYear ? 12 : 0)
  let dayOfMonth = (months & 0xFFFF) / 2141 &+ 1
  let year = century &* 100 &+ yearOfCentury &+ (isNextYear ? 1 : 0)

  let minutes = time / 60_000
  let milliseconds = time &- minutes &* 60_000
  let hours = minutes / 60
  let seconds = milliseconds / 1000
  let fraction = milliseconds &- seconds &* 1000
  let pairs = fraction / 10
  writePair(UInt64(year / 100), to: out)
  writePair(UInt64(year % 100), to: out + 2)
  out[4] = UInt8(ascii: "-")
  writePair(UInt64(month), to: out + 5)
  out[7] = UInt8(ascii: "-")
  writePair(UInt64(dayOfMonth), to: out + 8)
  out[10] = UInt8(ascii: "T")
  writePair(UInt64(hours), to: out + 11)
  out[13] = UInt8(ascii: ":")
  writePair(UInt64(minutes &- hours &* 60), to: out + 14)
  out[16] = UInt8(ascii: ":")
  writePair(UInt64(seconds), to: out + 17)
  out[19] = UInt8(ascii: ".")
  writePair(UInt64(pairs), to: out + 20)
  out[22] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: fraction &- pairs &* 10)
  return out + 23
}

@inline(__always)
private func writeTimestamp(
  _ value: Int64, perSecond: Int64, digits: Int, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  let (days, time) = floorDivide(value, 86_400 * perSecond)
  let out = writeDate(days: days, to: start)
  out.pointee = UInt8(ascii: "T")
  return writeTime(UInt64(time), perSecond: UInt64(perSecond), digits: digits, to: out + 1)
}

@inline(__always)
private func floorDivide(
  _ value: Int64, _ divisor: Int64
) -> (quotient: Int64, remainder: Int64) {
  let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

/// Returns the end of at most 18 bytes.
///
/// Counts eras of 400 years from 0000-03-01, so that the leap day is the last of a year
/// (Howard Hinnant, chrono-compatible low-level date algorithms, `civil_from_days`).
///
/// - Parameter days: within what 64-bit milliseconds reach, ±106,751,991,167.
@inline(__always)
private func writeDate(
  days: Int64, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
  let day = UInt32(truncatingIfNeeded: dayOfEra)
  let yearOfEra = (day - day / 1460 + day / 36524 - day / 146_096) / 365
  let dayOfYear = day - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let shifted = (5 * dayOfYear + 2) / 153
  let dayOfMonth = dayOfYear - (153 * shifted + 2) / 5 + 1
  let month = shifted < 10 ? shifted + 3 : shifted - 9
  let year = Int64(yearOfEra) + era * 400 + (month <= 2 ? 1 : 0)

  var out = start
  if year >= 1, year <= 9999 {
    writePair(UInt64(year) / 100, to: out)
    writePair(UInt64(year) % 100, to: out + 2)
    out += 4
  } else {
    out.pointee = UInt8(ascii: year < 0 ? "-" : "+")
    out += 1
    var padding: UInt64 = 10000
    while padding > 1, year.magnitude < padding {
      out.pointee = UInt8(ascii: "0")
      out += 1
      padding /= 10
    }
    out += writeDigits(year.magnitude, to: out)
  }
  out[0] = UInt8(ascii: "-")
  writePair(UInt64(month), to: out + 1)
  out[3] = UInt8(ascii: "-")
  writePair(UInt64(dayOfMonth), to: out + 4)
  return out + 6
}

/// Returns the end of at most 27 bytes.
@inline(__always)
private func writeTime(
  _ value: UInt64, perSecond: UInt64, digits: Int, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  let (allSeconds, part) = value.quotientAndRemainder(dividingBy: perSecond)
  let (hours, secondOfHour) = allSeconds.quotientAndRemainder(dividingBy: 3600)
  var out = start
  if hours < 100 {
    writePair(hours, to: out)
    out += 2
  } else {
    out += writeDigits(hours, to: out)
  }
  out[0] = UInt8(ascii: ":")
  writePair(secondOfHour / 60, to: out + 1)
  out[3] = UInt8(ascii: ":")
  writePair(secondOfHour % 60, to: out + 4)
  out[6] = UInt8(ascii: ".")
  out += 7
  var rest = part
  var place = digits
  while place > 1 {
    place -= 2
    writePair(rest % 100, to: out + place)
    rest /= 100
  }
  if place == 1 { out.pointee = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest) }
  return out + digits
}
