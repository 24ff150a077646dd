internal import Bytes

// PostgreSQL's binary numeric: ndigits, weight, sign, dscale (16 bits each), then digits of base
// 10000 (numeric_send in src/backend/utils/adt/numeric.c). Memory is allocated only when buffers
// grow.

extension ByteBuffer {
  static let numericMaxScale = 16383
  static let numericMaxWholeDigits = 131_072

  private enum NumericSign {
    static let plus: UInt16 = 0
    static let minus: UInt16 = 0x4000
    static let nan: UInt16 = 0xC000
    static let infinity: UInt16 = 0xD000
    static let minusInfinity: UInt16 = 0xF000
  }

  @inline(__always)
  mutating func appendBigEndian(_ value: some FixedWidthInteger) {
    let count = value.bitWidth / 8
    UnsafeMutableRawPointer(self.reserve(count)).storeBytes(
      of: value.bigEndian, as: type(of: value))
    self.commit(count)
  }

  /// Appends the shortest decimal text that reads back as the same double; false for infinities if
  /// numeric has none.
  ///
  /// - Parameters:
  ///   - hasInfinity: numeric has infinities since PostgreSQL 14.
  ///   - scratch: cleared first.
  mutating func appendNumeric(
    _ value: Double, hasInfinity: Bool, _ scratch: inout ByteBuffer
  ) -> Bool {
    // As in JSON text: an exact quotient by 100 is the shortest form.
    if value.magnitude < 1e13 {
      let cents = (value * 100).rounded(.toNearestOrEven)
      if cents / 100 == value {
        self.appendNumeric(hundredths: Int64(cents))
        return true
      }
    }
    guard value.isFinite else {
      return self.appendNumeric(nonfinite: value, hasInfinity: hasInfinity)
    }
    scratch.removeAll()
    scratch.append(value)
    return self.appendNumeric(text: scratch.bytes)
  }

  mutating func appendNumeric(
    _ value: Float, hasInfinity: Bool, _ scratch: inout ByteBuffer
  ) -> Bool {
    guard value.isFinite else {
      return self.appendNumeric(nonfinite: Double(value), hasInfinity: hasInfinity)
    }
    scratch.removeAll()
    scratch.append(value)
    return self.appendNumeric(text: scratch.bytes)
  }

  private mutating func appendNumeric(nonfinite value: Double, hasInfinity: Bool) -> Bool {
    guard value.isNaN || hasInfinity else { return false }
    self.appendBigEndian(0 as UInt32)
    self.appendBigEndian(
      value.isNaN
        ? NumericSign.nan : value > 0 ? NumericSign.infinity : NumericSign.minusInfinity)
    self.appendBigEndian(0 as UInt16)
    return true
  }

  mutating func appendNumeric(_ value: Int64, _ scratch: inout ByteBuffer) {
    scratch.removeAll()
    scratch.append(value)
    // 19 digits are never too many.
    _ = self.appendNumeric(text: scratch.bytes)
  }

  private mutating func appendNumeric(hundredths value: Int64) {
    let (whole, cents) = value.magnitude.quotientAndRemainder(dividingBy: 100)
    let header = self.count
    self.appendBigEndian(0 as UInt16)
    // Below 1e13: groups of 10000^3 to 10000^0.
    var weight: Int16 = 3
    var divisor: UInt64 = 1_000_000_000_000
    while weight >= 0, whole < divisor {
      divisor /= 10000
      weight -= 1
    }
    // Without a whole part the fraction is the first group; zero has none.
    self.appendBigEndian(value == 0 ? 0 : weight)
    self.appendBigEndian(value < 0 ? NumericSign.minus : NumericSign.plus)
    self.appendBigEndian(cents == 0 ? 0 : cents % 10 == 0 ? 1 : 2 as UInt16)
    let first = self.count
    while divisor > 0 {
      self.appendBigEndian(UInt16(whole / divisor % 10000))
      divisor /= 10000
    }
    self.appendBigEndian(UInt16(cents * 100))
    self.finishNumeric(header: header, firstDigit: first)
  }

  /// Drops groups of zeros at the end and sets the count of groups.
  private mutating func finishNumeric(header: Int, firstDigit first: Int) {
    var end = self.count
    while end > first, self.base[end - 1] == 0, self.base[end - 2] == 0 { end -= 2 }
    self.truncate(to: end)
    UnsafeMutableRawPointer(self.base + header).storeBytes(
      of: UInt16((end - first) / 2).bigEndian, as: UInt16.self)
  }

  /// Appends nothing and returns false for more digits than the type has.
  ///
  /// - Parameter text: `-12.50`, `1e+20`, `1.5e-07`: digits, at most one point and one exponent. A
  ///   fraction of zeros alone after a point does not count as scale when it is the `.0` of a whole double.
  mutating func appendNumeric(text: UnsafeBufferPointer<UInt8>, keepsScale: Bool = false) -> Bool {
    var place = 0
    let isNegative = text.first == UInt8(ascii: "-")
    if isNegative { place = 1 }
    let start = place
    var point: Int?
    var end = text.count
    var exponent = 0
    while place < text.count {
      if text[place] == UInt8(ascii: ".") { point = place }
      if text[place] == UInt8(ascii: "e") {
        end = place
        exponent = Self.exponent(text, from: place + 1)
        break
      }
      place += 1
    }
    var digits = NumericDigits(text: text, start: start, point: point ?? end, end: end)
    if !keepsScale { digits.dropTrailingZeros() }
    digits.dropLeadingZeros()
    let wholeCount = digits.wholeCount + exponent
    let scale = max(0, digits.count - wholeCount)
    guard scale <= Self.numericMaxScale, wholeCount <= Self.numericMaxWholeDigits else {
      return false
    }
    guard digits.count > 0 else {
      self.appendBigEndian(0 as UInt32)
      self.appendBigEndian(NumericSign.plus)
      self.appendBigEndian(UInt16(scale))
      return true
    }
    // The first group holds the digits that are left over when groups of four end at the point.
    let weight = (wholeCount - 1) >> 2
    let offset = weight * 4 + 4 - wholeCount
    let groupCount = (digits.count + offset + 3) / 4
    let header = self.count
    self.appendBigEndian(0 as UInt16)
    self.appendBigEndian(Int16(weight))
    self.appendBigEndian(isNegative ? NumericSign.minus : NumericSign.plus)
    self.appendBigEndian(UInt16(scale))
    let first = self.count
    for group in 0..<groupCount {
      var value: UInt16 = 0
      for digit in group * 4 - offset..<group * 4 - offset + 4 {
        value = value * 10 + UInt16(digits[digit])
      }
      self.appendBigEndian(value)
    }
    self.finishNumeric(header: header, firstDigit: first)
    return true
  }

  private static func exponent(_ text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
    var value = 0
    var isNegative = false
    for byte in text[start...] {
      switch byte {
      case UInt8(ascii: "-"): isNegative = true
      case UInt8(ascii: "+"): break
      default: value = value * 10 + Int(byte - UInt8(ascii: "0"))
      }
    }
    return isNegative ? -value : value
  }
}

/// The digits of a decimal text, without the point.
private struct NumericDigits {
  private let text: UnsafeBufferPointer<UInt8>
  private var start: Int
  private var point: Int
  private var end: Int

  init(text: UnsafeBufferPointer<UInt8>, start: Int, point: Int, end: Int) {
    (self.text, self.start, self.point, self.end) = (text, start, point, end)
  }

  private var hasPointInside: Bool { self.start <= self.point && self.point < self.end }

  var count: Int { self.end - self.start - (self.hasPointInside ? 1 : 0) }

  /// Digits before the point; negative for zeros between the point and the first digit.
  var wholeCount: Int {
    self.start <= self.point ? self.point - self.start : self.point + 1 - self.start
  }

  /// The digit at an index; 0 outside the text.
  @inline(__always)
  subscript(digit: Int) -> UInt8 {
    var place = self.start + digit
    if self.start <= self.point, place >= self.point { place += 1 }
    guard place >= self.start, place < self.end else { return 0 }
    return self.text[place] - UInt8(ascii: "0")
  }

  mutating func dropLeadingZeros() {
    while self.start < self.end {
      if self.start != self.point, self.text[self.start] != UInt8(ascii: "0") { return }
      self.start += 1
    }
  }

  /// Drops trailing zeros of the fraction.
  mutating func dropTrailingZeros() {
    while self.point < self.end,
      self.point == self.end - 1 || self.text[self.end - 1] == UInt8(ascii: "0")
    { self.end -= 1 }
  }
}
