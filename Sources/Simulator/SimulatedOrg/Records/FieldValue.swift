/// A value as REST and Bulk give it.
enum FieldValue {
  case null
  case boolean(Bool)
  case int(Int64)
  case double(Double)
  /// UTF-8, with LF for line ends.
  case text([UInt8])
  /// Milliseconds since 1970, or since midnight.
  case date(Int64)
  case dateTime(Int64)
  case time(Int64)
  case parts([(name: String, value: FieldValue)])
}

extension FieldValue {
  /// JSON as in a record (RESTAndBulk.md#describe).
  func appendJSON(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .text(let text): JSONText.append(text[...], to: &bytes)
    case .dateTime(let time):
      bytes += "\"\(CivilDate.text(time))T\(CivilDate.clock(time))+0000\"".utf8
    case .date, .time:
      bytes.append(UInt8(ascii: "\""))
      self.appendPlain(to: &bytes)
      bytes.append(UInt8(ascii: "\""))
    case .parts(let parts):
      bytes.append(UInt8(ascii: "{"))
      for (index, part) in parts.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes += "\"\(part.name.prefix(1).lowercased())\(part.name.dropFirst())\":".utf8
        part.value.appendJSON(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    default: self.appendPlain(to: &bytes)
    }
  }

  /// A quoted value of CSV (RESTAndBulk.md#bulk-queries).
  func appendCSV(to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    if case .text(let text) = self {
      for byte in text {
        if byte == UInt8(ascii: "\"") { bytes.append(byte) }
        bytes.append(byte)
      }
    } else {
      self.appendPlain(to: &bytes)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private func appendPlain(to bytes: inout [UInt8]) {
    switch self {
    case .null, .parts: break
    case .boolean(let value): bytes += (value ? "true" : "false").utf8
    case .int(let value): bytes += value.description.utf8
    case .double(let value): bytes += Self.javaText(value).utf8
    case .text(let text): bytes += text
    case .date(let time): bytes += CivilDate.text(time).utf8
    case .dateTime(let time): bytes += "\(CivilDate.text(time))T\(CivilDate.clock(time))Z".utf8
    case .time(let time): bytes += "\(CivilDate.clock(time))Z".utf8
    }
  }

  /// The text that `Double.toString` of Java has: `3.0`, `1.25E7`, `1.0E-4`.
  static func javaText(_ value: Double) -> String {
    let magnitude = value.magnitude
    guard magnitude != 0, magnitude < 1e-3 || magnitude >= 1e7, value.isFinite else {
      return value.description
    }
    // Shortest digits, and the place of the point after the first of them.
    let text = magnitude.description
    let parts = text.split(separator: "e")
    let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    let fraction = mantissa.count > 1 ? mantissa[1] : ""
    var digits = Array((mantissa[0] + fraction).utf8)
    var exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) + mantissa[0].utf8.count - 1
    while digits.count > 1, digits[0] == UInt8(ascii: "0") {
      digits.removeFirst()
      exponent -= 1
    }
    while digits.count > 1, digits.last == UInt8(ascii: "0") { digits.removeLast() }
    let rest = digits.count > 1 ? digits[1...] : [UInt8(ascii: "0")][...]
    return (value < 0 ? "-" : "") + String(decoding: digits[..<1], as: UTF8.self) + "."
      + String(decoding: rest, as: UTF8.self) + "E\(exponent)"
  }
}

/// Dates of the proleptic Gregorian calendar, in UTC.
enum CivilDate {
  private static let dayLength: Int64 = 86_400_000

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: max(0, width - text.count)) + text
  }

  /// `2026-02-17` of milliseconds since 1970.
  static func text(_ milliseconds: Int64) -> String {
    let day = milliseconds.flooredDivision(by: Self.dayLength)
    let (year, month, dayOfMonth) = Self.date(day)
    return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(dayOfMonth, 2))"
  }

  /// `04:03:15.000`
  static func clock(_ milliseconds: Int64) -> String {
    let time = milliseconds - milliseconds.flooredDivision(by: Self.dayLength) * Self.dayLength
    return "\(Self.padded(time / 3_600_000, 2)):\(Self.padded(time / 60_000 % 60, 2)):"
      + "\(Self.padded(time / 1000 % 60, 2)).\(Self.padded(time % 1000, 3))"
  }

  static func year(_ milliseconds: Int64) -> Int64 {
    Self.date(milliseconds.flooredDivision(by: Self.dayLength)).0
  }

  /// The first day of the year of a time, milliseconds since 1970.
  static func firstDay(ofYearOf milliseconds: Int64) -> Int64 {
    // Every year has such a day.
    (Self.day(year: Self.year(milliseconds), month: 1, day: 1) ?? 0) * Self.dayLength
  }

  static func lastDay(ofYearOf milliseconds: Int64) -> Int64 {
    (Self.day(year: Self.year(milliseconds), month: 12, day: 31) ?? 0) * Self.dayLength
  }

  /// Eras of 400 years that begin on 1 March.
  private static func date(_ day: Int64) -> (Int64, Int64, Int64) {
    let shifted = day + 719_468
    let era = shifted.flooredDivision(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (
      yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
      dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    )
  }

  /// Days since 1970 of a date; nil for a date that does not exist.
  static func day(year: Int64, month: Int64, day: Int64) -> Int64? {
    guard (1...12).contains(month), (1...31).contains(day) else { return nil }
    let shifted = month <= 2 ? year - 1 : year
    let era = shifted.flooredDivision(by: 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let number = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let result = number - 719_468
    return Self.date(result) == (year, month, day) ? result : nil
  }
}

extension Int64 {
  fileprivate func flooredDivision(by divisor: Int64) -> Int64 {
    self >= 0 ? self / divisor : -((-self + divisor - 1) / divisor)
  }
}
