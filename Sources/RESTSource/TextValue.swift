internal import CShortestDecimal
internal import Pipeline

/// Values from the text that REST and Bulk write them as (contract/rest.md section 3). Nothing is
/// allocated.
enum TextValue {
  typealias Text = UnsafeRawBufferPointer

  /// Whether a cell of the type can be made from text; strings go into the arena.
  static func canRead(_ type: ColumnType) -> Bool {
    switch type {
    case .boolean, .int32, .int64, .float, .double, .string, .date, .time, .timestamp: true
    default: false
    }
  }

  /// The cell of a type other than `string`; nil for text that is no value of the type.
  static func cell(_ text: Text, as type: ColumnType) -> UInt64? {
    switch type {
    case .boolean: Self.boolean(text).map { $0 ? 1 : 0 }
    case .int32:
      Self.integer(text).flatMap(Int32.init(exactly:)).map { UInt64(bitPattern: Int64($0)) }
    case .int64: Self.integer(text).map(UInt64.init(bitPattern:))
    case .float: Self.double(text).map { UInt64(Float($0).bitPattern) }
    case .double: Self.double(text).map(\.bitPattern)
    case .date(.milliseconds): Self.day(text).map { UInt64(bitPattern: $0 * 86_400_000) }
    case .date(.days): Self.day(text).map(UInt64.init(bitPattern:))
    case .time(let unit): Self.timeOfDay(text).map { UInt64(bitPattern: $0 * unit.perMillisecond) }
    case .timestamp(let unit, _):
      Self.timestamp(text).flatMap {
        let (value, overflow) = $0.multipliedReportingOverflow(by: unit.perMillisecond)
        return overflow ? nil : UInt64(bitPattern: value)
      }
    default: nil
    }
  }

  private static func boolean(_ text: Text) -> Bool? {
    if text.elementsEqual("true".utf8) { return true }
    return text.elementsEqual("false".utf8) ? false : nil
  }

  /// Also `3.9E4`, as numbers of 10^7 and more are written.
  private static func integer(_ text: Text) -> Int64? {
    if let value = Self.digits(text) { return value }
    return Self.double(text).flatMap(Int64.init(exactly:))
  }

  private static func digits(_ text: Text) -> Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    let digits = isNegative ? text.dropFirst() : text[...]
    guard (1...18).contains(digits.count) else { return nil }
    var value: Int64 = 0
    for byte in digits {
      guard let digit = Self.digit(byte) else { return nil }
      value = value * 10 + digit
    }
    return isNegative ? -value : value
  }

  /// Finite values only: the API has no others.
  private static func double(_ text: Text) -> Double? {
    guard let first = text.first, Self.digit(first) != nil || first == UInt8(ascii: "-"),
      let address = text.bindMemory(to: CChar.self).baseAddress
    else { return nil }
    var value = 0.0
    guard parse_decimal_double(address, text.count, &value) != 0, value.isFinite else { return nil }
    return value
  }

  // MARK: Dates

  private static func digit(_ byte: UInt8) -> Int64? {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int64(byte - UInt8(ascii: "0")) : nil
  }

  /// The number that `count` digits at a place make.
  private static func number(_ text: Text, _ place: Int, _ count: Int) -> Int64? {
    guard place + count <= text.count else { return nil }
    var value: Int64 = 0
    for index in place..<place + count {
      guard let digit = Self.digit(text[index]) else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  private static func has(_ text: Text, _ place: Int, _ character: Unicode.Scalar) -> Bool {
    place < text.count && text[place] == UInt8(ascii: character)
  }

  /// `2026-02-17`, as days since 1970.
  private static func day(_ text: Text) -> Int64? {
    text.count == 10 ? Self.leadingDay(text) : nil
  }

  private static func leadingDay(_ text: Text) -> Int64? {
    guard let year = Self.number(text, 0, 4), Self.has(text, 4, "-"),
      let month = Self.number(text, 5, 2), Self.has(text, 7, "-"),
      let day = Self.number(text, 8, 2), (1...12).contains(month), day >= 1,
      day <= Self.dayCount(year: year, month: month)
    else { return nil }
    // Years that begin on 1 March, in eras of 400 of them.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func dayCount(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// `04:03:15.000` from a place on, as milliseconds; and where it ends.
  private static func clock(_ text: Text, _ start: Int) -> (milliseconds: Int64, end: Int)? {
    guard let hours = Self.number(text, start, 2), Self.has(text, start + 2, ":"),
      let minutes = Self.number(text, start + 3, 2), Self.has(text, start + 5, ":"),
      let seconds = Self.number(text, start + 6, 2), hours < 24, minutes < 60, seconds < 60
    else { return nil }
    let whole = (hours * 3600 + minutes * 60 + seconds) * 1000
    guard Self.has(text, start + 8, ".") else { return (whole, start + 8) }
    guard let fraction = Self.number(text, start + 9, 3) else { return nil }
    return (whole + fraction, start + 12)
  }

  /// `10:30:00.000Z`, as milliseconds since midnight.
  private static func timeOfDay(_ text: Text) -> Int64? {
    guard let (time, end) = Self.clock(text, 0), Self.has(text, end, "Z"), end + 1 == text.count
    else { return nil }
    return time
  }

  /// `2026-02-17T04:03:15.000Z` or with a zone, `+0000` or `+00:00`, as milliseconds since 1970.
  static func timestamp(_ text: Text) -> Int64? {
    guard let day = Self.leadingDay(text), Self.has(text, 10, "T"),
      let (time, end) = Self.clock(text, 11), let offset = Self.zone(text, end)
    else { return nil }
    return day * 86_400_000 + time - offset
  }

  private static func zone(_ text: Text, _ start: Int) -> Int64? {
    if Self.has(text, start, "Z") { return start + 1 == text.count ? 0 : nil }
    let isEast = Self.has(text, start, "+")
    guard isEast || Self.has(text, start, "-") else { return nil }
    let colon = Self.has(text, start + 3, ":") ? 1 : 0
    guard let hours = Self.number(text, start + 1, 2),
      let minutes = Self.number(text, start + 3 + colon, 2), start + 5 + colon == text.count,
      hours < 24, minutes < 60
    else { return nil }
    return (hours * 60 + minutes) * 60_000 * (isEast ? 1 : -1)
  }
}

extension ColumnType.TimeUnit {
  fileprivate var perMillisecond: Int64 {
    switch self {
    case .milliseconds: 1
    case .microseconds: 1000
    case .nanoseconds: 1_000_000
    }
  }
}

extension ColumnType {
  /// For people.
  var words: String {
    switch self {
    case .boolean: "boolean"
    case .int32, .int64: "integer"
    case .float, .double, .decimal: "number"
    case .date: "date"
    case .time: "time"
    case .timestamp: "date and time"
    case .bytes: "binary"
    case .string, .enumeration, .uuid, .duration, .stringList, .json, .fieldSet: "text"
    }
  }
}
