internal import Bytes

/// A decimal number of any size, read from text. Its memory is reused.
struct DecimalNumber {
  /// How digits that do not fit are treated.
  enum Rounding: String, CaseIterable, Sendable {
    /// To the nearest; ties go to the even digit.
    case halfEven = "half_even"
    /// To the nearest; ties go away from zero.
    case halfUp = "half_up"
    /// No rounding: only zeros may be dropped.
    case none
  }

  private(set) var isNegative = false
  /// 0…9, the first and the last not 0; none for zero.
  private var digits: [UInt8] = []
  /// The value is the digits times ten to this power.
  private var exponent = 0

  /// Reads fixed or scientific notation: `-12.50`, `+3`, `.5`, `1e-7`; surrounding spaces are
  /// allowed.
  ///
  /// - Returns: false for anything else, and for exponents beyond four digits.
  mutating func read(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    self.isNegative = false
    self.exponent = 0
    self.digits.removeAll(keepingCapacity: true)
    var place = 0
    var end = text.count
    while place < end, text[place] == UInt8(ascii: " ") { place += 1 }
    while place < end, text[end - 1] == UInt8(ascii: " ") { end -= 1 }
    if place < end, text[place] == UInt8(ascii: "-") || text[place] == UInt8(ascii: "+") {
      self.isNegative = text[place] == UInt8(ascii: "-")
      place += 1
    }
    var count = 0
    var hasPoint = false
    while place < end {
      let byte = text[place]
      if byte == UInt8(ascii: "."), !hasPoint {
        hasPoint = true
      } else if let digit = Self.digit(byte) {
        count += 1
        if hasPoint { self.exponent -= 1 }
        if digit != 0 || !self.digits.isEmpty { self.digits.append(digit) }
      } else {
        break
      }
      place += 1
    }
    guard count > 0, self.readExponent(text, place, end) else { return false }
    while self.digits.last == 0 {
      self.digits.removeLast()
      self.exponent += 1
    }
    if self.digits.isEmpty { (self.isNegative, self.exponent) = (false, 0) }
    return true
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    let digit = byte &- UInt8(ascii: "0")
    return digit <= 9 ? digit : nil
  }

  private mutating func readExponent(
    _ text: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int
  ) -> Bool {
    guard start < end else { return true }
    guard text[start] | 0x20 == UInt8(ascii: "e") else { return false }
    var place = start + 1
    var isNegative = false
    if place < end, text[place] == UInt8(ascii: "-") || text[place] == UInt8(ascii: "+") {
      isNegative = text[place] == UInt8(ascii: "-")
      place += 1
    }
    guard (1...4).contains(end - place) else { return false }
    var value = 0
    while place < end {
      guard let digit = Self.digit(text[place]) else { return false }
      value = value * 10 + Int(digit)
      place += 1
    }
    self.exponent += isNegative ? -value : value
    return true
  }

  /// Appends the number in plain notation, without a point if it is whole: `100`, `-0.5`.
  func appendPlain(to buffer: inout ByteBuffer) {
    if self.digits.isEmpty { return buffer.append(UInt8(ascii: "0")) }
    if self.isNegative { buffer.append(UInt8(ascii: "-")) }
    let wholeCount = self.digits.count + self.exponent
    if wholeCount <= 0 {
      buffer.append(utf8: "0." as StaticString)
      for _ in wholeCount..<0 { buffer.append(UInt8(ascii: "0")) }
    }
    for (index, digit) in self.digits.enumerated() {
      if index == wholeCount, index > 0 { buffer.append(UInt8(ascii: ".")) }
      buffer.append(UInt8(ascii: "0") + digit)
    }
    for _ in 0..<max(self.exponent, 0) { buffer.append(UInt8(ascii: "0")) }
  }

  /// The number times ten to the power of `scale`, without its sign.
  ///
  /// - Returns: nil if digits would be lost that must not be, or if it has more than 38 digits.
  func magnitude(scale: Int, rounding: Rounding) -> UInt128? {
    // The number of digits of the result before rounding, including trailing zeros.
    let kept = self.digits.count + self.exponent + scale
    guard kept <= 38 else { return self.digits.isEmpty ? 0 : nil }
    var value: UInt128 = 0
    for index in 0..<max(kept, 0) {
      value = value * 10 + UInt128(index < self.digits.count ? self.digits[index] : 0)
    }
    guard kept < self.digits.count else { return value }
    // The last digit is not 0, so something is lost.
    let first = kept < 0 ? 0 : self.digits[kept]
    let isTie = first == 5 && kept + 1 >= self.digits.count
    switch rounding {
    case .none: return nil
    case .halfUp: if first >= 5 { value += 1 }
    case .halfEven: if first > 5 || first == 5 && (!isTie || value % 2 == 1) { value += 1 }
    }
    return value
  }
}
