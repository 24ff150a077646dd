internal import Bytes
internal import CShortestDecimal
internal import Pipeline

/// Parses values from the text that REST and Bulk write (RESTAndBulk.md#describe). Allocates
/// nothing.
enum TextValue {
  typealias Text = UnsafeRawBufferPointer

  /// Whether text can become a cell of the type; strings go into the arena.
  static func canRead(_ type: ColumnType) -> Bool {
    switch type {
    case .boolean, .int32, .int64, .float, .double, .string, .date, .time, .timestamp: true
    default: false
    }
  }

  /// The cell of a type other than `string`; nil for text that is not a value of the type.
  static func cell(_ text: Text, as type: ColumnType) -> UInt64? {
    switch type {
    case .boolean: Self.boolean(text).map { $0 ? 1 : 0 }
    case .int32:
      Self.integer(text).flatMap(Int32.init(exactly:)).map { UInt64(bitPattern: Int64($0)) }
    case .int64: Self.integer(text).map(UInt64.init(bitPattern:))
    case .float: Self.double(text).map { UInt64(Float($0).bitPattern) }
    case .double: Self.double(text).map(\.bitPattern)
    case .date(.milliseconds): UTCTime.day(text).map { UInt64(bitPattern: $0 * 86_400_000) }
    case .date(.days): UTCTime.day(text).map(UInt64.init(bitPattern:))
    case .time(let unit):
      UTCTime.timeOfDay(text).map { UInt64(bitPattern: $0 * unit.perMillisecond) }
    case .timestamp(let unit, _):
      UTCTime.timestamp(text).flatMap {
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

  /// Also accepts forms such as `3.9E4`, in which numbers of 10^7 and more are written.
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
      guard let digit = DateText.digit(byte) else { return nil }
      value = value * 10 + digit
    }
    return isNegative ? -value : value
  }

  /// Finite values only: the API has no others.
  private static func double(_ text: Text) -> Double? {
    guard let first = text.first, first.isDigit || first == UInt8(ascii: "-"),
      let address = text.bindMemory(to: CChar.self).baseAddress
    else { return nil }
    var value = 0.0
    guard parse_decimal_double(address, text.count, &value) != 0, value.isFinite else { return nil }
    return value
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
  /// The type in words, for messages.
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
