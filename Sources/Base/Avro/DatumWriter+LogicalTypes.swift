internal import Bytes
internal import JSON

// Values whose bytes depend on their meaning (specification, "Logical Types").
extension DatumWriter {
  // MARK: Integers

  /// The number of an `int` or `long`.
  static func integer(_ value: JSONValue, _ meaning: LogicalType?, isInt: Bool) -> Int64? {
    guard let text = value.string else { return value.integer }
    return Array(text.utf8).withUnsafeBytes { text in
      switch meaning {
      case .date: DateText.day(text)
      case .time(let unit): Self.timeOfDay(text, unit)
      case .timestamp(let unit, let isLocal): Self.timestamp(text, unit, isLocal: isLocal)
      default:
        isInt
          ? nil
          : Self.timestamp(text, .milliseconds, isLocal: false)
            ?? DateText.day(text).map { $0 * 86_400_000 } ?? Self.timeOfDay(text, .milliseconds)
      }
    }
  }

  /// `10:30:00.000`, with or without a Z.
  private static func timeOfDay(_ text: DateText.Text, _ unit: LogicalType.TimeUnit) -> Int64? {
    guard let clock = DateText.clock(text, 0), clock.fractionDigits <= unit.fractionDigits,
      clock.end == text.count
        || clock.end + 1 == text.count && DateText.has(text, clock.end, "Z")
    else { return nil }
    return clock.seconds * unit.perSecond + clock.nanoseconds / (1_000_000_000 / unit.perSecond)
  }

  /// `2026-02-17T04:03:15.000` with a zone; a local one without.
  private static func timestamp(
    _ text: DateText.Text, _ unit: LogicalType.TimeUnit, isLocal: Bool
  ) -> Int64? {
    guard let day = DateText.leadingDay(text), DateText.has(text, 10, "T"),
      let clock = DateText.clock(text, 11), clock.fractionDigits <= unit.fractionDigits,
      let offset = isLocal
        ? (clock.end == text.count ? 0 : nil) : DateText.zone(text, clock.end)
    else { return nil }
    let (number, overflow) = (day * 86_400 + clock.seconds - offset)
      .multipliedReportingOverflow(by: unit.perSecond)
    guard !overflow else { return nil }
    let (sum, sumOverflow) = number.addingReportingOverflow(
      clock.nanoseconds / (1_000_000_000 / unit.perSecond))
    return sumOverflow ? nil : sum
  }

  // MARK: Bytes

  /// The bytes of a value of `bytes` or `fixed`, without a length.
  func bytes(_ value: JSONValue, _ definition: Schema.Definition) -> [UInt8]? {
    var size: Int?
    if case .fixed(let count) = definition.kind {
      // A decimal would be extended to this size.
      guard count <= self.limits.byteCount else { return nil }
      size = count
    }
    let content = self.content(value, definition.logicalType, size: size)
    guard let size else { return content }
    return content?.count == size ? content : nil
  }

  /// What is expected of a value of `bytes` or `fixed`.
  func words(for definition: Schema.Definition) -> String {
    var length = ""
    if case .fixed(let size) = definition.kind {
      guard size <= self.limits.byteCount else {
        return "nothing: a value of \(size) bytes is above the limit of \(self.limits.byteCount)"
      }
      length = " of \(size) bytes"
    }
    let plain =
      self.form == .base64 ? "base64\(length)" : "text of characters up to U+00FF\(length)"
    switch definition.logicalType {
    case .decimal(let precision, let scale):
      return "a decimal of up to \(precision) digits, \(scale) of them after the decimal point"
    case .bigDecimal: return "a decimal"
    case .uuid: return "a UUID"
    case .duration: return "an object of months, days and milliseconds, or \(plain)"
    default: return self.form == .base64 ? plain : "\(plain), one for each byte"
    }
  }

  private func content(
    _ value: JSONValue, _ meaning: LogicalType?, size: Int?
  ) -> [UInt8]? {
    // If bytes are characters, a text of digits may be the bytes themselves.
    let isText = self.form == .characters && value.string != nil
    switch meaning {
    case .decimal(let precision, let scale) where !isText:
      return DecimalNumber(value)?.unscaled(precision: precision, scale: scale)
        .flatMap { Self.extended($0, to: size) }
    case .bigDecimal where !isText:
      guard let number = DecimalNumber(value), let unscaled = number.unscaled,
        let scale = Int32(exactly: number.scale)
      else { return nil }
      var inner = DatumWriter(
        schema: self.schema, form: self.form, limits: self.limits, mistakes: self.mistakes)
      inner.append(Int64(unscaled.count))
      inner.bytes += unscaled
      inner.append(Int64(scale))
      return inner.bytes
    case .uuid:
      if let text = value.string, let id = Self.uuid(text) { return id }
    case .duration:
      if value.members != nil { return Self.duration(value) }
    default: break
    }
    guard let text = value.string else { return nil }
    return self.form == .base64 ? [UInt8](base64: text) : Self.bytes(ofCharacters: text)
  }

  private static func bytes(ofCharacters text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    for scalar in text.unicodeScalars {
      guard let byte = UInt8(exactly: scalar.value) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  /// A two's complement number, sign-extended to a size.
  private static func extended(_ number: [UInt8], to size: Int?) -> [UInt8]? {
    guard let size else { return number }
    guard number.count <= size else { return nil }
    let isNegative = (number.first ?? 0) >= 0x80
    return [UInt8](repeating: isNegative ? 0xFF : 0, count: size - number.count) + number
  }

  /// The 16 bytes of a text `8-4-4-4-12` of hexadecimal digits.
  static func uuid(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count == 36 else { return nil }
    var bytes: [UInt8] = []
    var high: UInt8?
    for (index, digit) in digits.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard digit == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = digit.hexDigit else { return nil }
      if let first = high.take() { bytes.append(first << 4 | value) } else { high = value }
    }
    return bytes
  }

  private static func duration(_ value: JSONValue) -> [UInt8]? {
    let names = ["months", "days", "milliseconds"]
    guard let members = value.members, members.count == names.count else { return nil }
    var bytes: [UInt8] = []
    for name in names {
      guard let number = value[name]?.integer.flatMap(UInt32.init(exactly:)) else { return nil }
      withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
    return bytes
  }
}

/// A decimal number as written: its digits, and how many of them follow the point.
private struct DecimalNumber {
  var isNegative = false
  /// From 0 to 9, without leading zeros.
  var digits: [UInt8] = []
  /// Negative if zeros follow the digits.
  var scale = 0

  /// Reads a JSON number, or text in the same form.
  init?(_ value: JSONValue) {
    let text: String
    switch value.content {
    case .number(let number): text = number
    case .string(let string): text = string
    default: return nil
    }
    guard text.utf8.count <= 2 * LogicalType.maxDecimalDigits else { return nil }
    var rest = text.utf8[...]
    if rest.first == UInt8(ascii: "-") {
      self.isNegative = true
      rest.removeFirst()
    }
    var count = 0
    var isFraction = false
    while let character = rest.first {
      if character == UInt8(ascii: "."), !isFraction, count > 0 {
        isFraction = true
      } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) {
        self.digits.append(character - UInt8(ascii: "0"))
        count += 1
        if isFraction { self.scale += 1 }
      } else {
        break
      }
      rest.removeFirst()
    }
    guard count > 0 else { return nil }
    if let letter = rest.first {
      guard letter | 0x20 == UInt8(ascii: "e"), let exponent = Int(Substring(rest.dropFirst())),
        exponent.magnitude <= LogicalType.maxDecimalDigits
      else { return nil }
      self.scale -= exponent
    }
    self.digits = Array(self.digits.drop { $0 == 0 })
  }

  /// Two's complement, big-endian, of the number times 10^`scale`; nil if it has more digits, or
  /// digits that do not fit the scale.
  func unscaled(precision: Int, scale: Int) -> [UInt8]? {
    var number = self
    if number.digits.isEmpty { number.scale = scale }
    while number.scale > scale, number.digits.last == 0 {
      number.digits.removeLast()
      number.scale -= 1
    }
    guard number.scale <= scale, number.digits.count + scale - number.scale <= precision else {
      return nil
    }
    number.digits += [UInt8](repeating: 0, count: scale - number.scale)
    return number.unscaled
  }

  /// Two's complement, big-endian, of the digits alone; nil if there are too many.
  var unscaled: [UInt8]? {
    guard self.digits.count <= LogicalType.maxDecimalDigits else { return nil }
    // Little-endian while it is built.
    var bytes: [UInt8] = []
    for digit in self.digits {
      var carry = UInt16(digit)
      for index in bytes.indices {
        carry += UInt16(bytes[index]) * 10
        bytes[index] = UInt8(truncatingIfNeeded: carry)
        carry >>= 8
      }
      if carry > 0 { bytes.append(UInt8(carry)) }
    }
    if self.isNegative {
      var carry: UInt16 = 1
      for index in bytes.indices {
        carry += UInt16(~bytes[index])
        bytes[index] = UInt8(truncatingIfNeeded: carry)
        carry >>= 8
      }
      // A negative number whose highest bit is not set needs another byte; zero has no bytes.
      if let last = bytes.last, last < 0x80 { bytes.append(0xFF) }
    } else if let last = bytes.last, last >= 0x80 {
      bytes.append(0)
    }
    return bytes.isEmpty ? [0] : bytes.reversed()
  }
}

extension LogicalType.TimeUnit {
  fileprivate var perSecond: Int64 {
    switch self {
    case .milliseconds: 1000
    case .microseconds: 1_000_000
    case .nanoseconds: 1_000_000_000
    }
  }

  fileprivate var fractionDigits: Int {
    switch self {
    case .milliseconds: 3
    case .microseconds: 6
    case .nanoseconds: 9
    }
  }
}

extension LogicalType? {
  /// What is expected of a number with a logical type; nil for a plain number.
  var integerWords: String? {
    switch self {
    case .date: "a date such as 2026-02-17, or days since 1970"
    case .time: "a time of day such as 04:03:15, or a number"
    case .timestamp(_, let isLocal):
      "a time such as 2026-02-17T04:03:15\(isLocal ? "" : "Z"), or a number"
    default: nil
    }
  }
}
