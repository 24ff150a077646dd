internal import CShortestDecimal

// Decimal text of numbers. Nothing here allocates but the growth of the buffer.

extension ByteBuffer {
  package mutating func append(_ value: Int64) {
    let start = self.reserve(20)
    guard value < 0 else {
      self.commit(writeDigits(UInt64(value), to: start))
      return
    }
    start.pointee = UInt8(ascii: "-")
    self.commit(1 + writeDigits(value.magnitude, to: start + 1))
  }

  package mutating func append(_ value: Int32) { self.append(Int64(value)) }

  package mutating func append(_ value: UInt64) {
    self.commit(writeDigits(value, to: self.reserve(20)))
  }

  /// Shortest text that reads back as the same value, always with `.` or an exponent: `100.0`,
  /// `0.1`, `1e+20`, `-0.0`.
  ///
  /// - Parameter value: finite.
  package mutating func append(_ value: Double) {
    precondition(value.isFinite, "no text for NaN and infinities")
    // Any decimal of at most 15 digits is the only one of that length near its double, so an exact
    // quotient by 100 is the shortest form. Amounts are of this kind.
    if value.magnitude < 1e13 {
      let cents = (value * 100).rounded(.toNearestOrEven)
      if cents / 100 == value, cents != 0 || value.sign == .plus {
        self.append(hundredths: Int64(cents))
        return
      }
    }
    let start = self.reserve(Int(SHORTEST_DECIMAL_CAPACITY) + 2)
    let count = start.withMemoryRebound(to: CChar.self, capacity: Int(SHORTEST_DECIMAL_CAPACITY)) {
      shortest_decimal_double(value, $0)
    }
    self.commitShortest(start, count)
  }

  /// Like the one for `Double`, with the shortest text that reads back as the same `Float`.
  ///
  /// - Parameter value: finite.
  package mutating func append(_ value: Float) {
    precondition(value.isFinite, "no text for NaN and infinities")
    // Integers of at most 6 digits: FLT_DIG. Fractions would have to be divided in Float.
    if value.magnitude < 1e6, value.rounded(.towardZero) == value,
      value != 0 || value.sign == .plus
    {
      self.append(hundredths: Int64(value) * 100)
      return
    }
    let start = self.reserve(Int(SHORTEST_DECIMAL_CAPACITY) + 2)
    let count = start.withMemoryRebound(to: CChar.self, capacity: Int(SHORTEST_DECIMAL_CAPACITY)) {
      shortest_decimal_float(value, $0)
    }
    self.commitShortest(start, count)
  }

  /// Adds `.0` to what `to_chars` wrote when it looks like an integer.
  private mutating func commitShortest(_ start: UnsafeMutablePointer<UInt8>, _ count: Int) {
    for index in 0..<count
    where start[index] == UInt8(ascii: ".") || start[index] == UInt8(ascii: "e") {
      self.commit(count)
      return
    }
    start[count] = UInt8(ascii: ".")
    start[count + 1] = UInt8(ascii: "0")
    self.commit(count + 2)
  }

  /// `-12.5`, `3.0`, `0.07` for -1250, 300, 7.
  private mutating func append(hundredths value: Int64) {
    let start = self.reserve(24)
    var out = start
    if value < 0 {
      out.pointee = UInt8(ascii: "-")
      out += 1
    }
    let (whole, fraction) = value.magnitude.quotientAndRemainder(dividingBy: 100)
    out += writeDigits(whole, to: out)
    out.pointee = UInt8(ascii: ".")
    writePair(fraction, to: out + 1)
    out += fraction % 10 == 0 ? 2 : 3
    self.commit(out - start)
  }

  /// Appends a decimal number in plain notation with all digits of its scale: `-12.50`, `0.000`.
  ///
  /// - Parameters:
  ///   - unscaled: two's complement, big-endian, of any length; empty is zero. Up to 8 bytes take
  ///     one division per digit pair; beyond that the time grows with the square of the length,
  ///     which callers who read from strangers must limit (to the column's precision).
  ///   - scale: digits after the point, 0 or more; with 0 the point is left out.
  package mutating func appendDecimal(unscaled: UnsafeBufferPointer<UInt8>, scale: Int) {
    precondition(scale >= 0, "a scale of \(scale)")
    let isNegative = (unscaled.first ?? 0) >= 0x80
    // Digits of an n-byte magnitude: below n × 2.41 + 1.
    let digitRoom = max(unscaled.count * 5 / 2 + 20, scale + 1)
    let limbCount = (unscaled.count + 3) / 4
    // Sign, digits, point, and behind them the magnitude as scratch.
    let start = self.reserve(1 + digitRoom + 1 + limbCount * 4)
    let end = start + 1 + digitRoom
    var first: UnsafeMutablePointer<UInt8>
    if unscaled.count <= 8 {
      var value = isNegative ? UInt64.max : 0
      for byte in unscaled { value = value << 8 | UInt64(byte) }
      first = writeDigits(isNegative ? 0 &- value : value, endingAt: end)
    } else {
      let limbs = UnsafeMutableRawPointer(end + 1)
      loadMagnitude(of: unscaled, isNegative: isNegative, limbCount: limbCount, into: limbs)
      first = writeDigits(limbs: limbs, limbCount: limbCount, endingAt: end)
    }
    while end - first <= scale {
      first -= 1
      first.pointee = UInt8(ascii: "0")
    }
    let wholeCount = (end - first) - scale
    var out = start
    if isNegative {
      out.pointee = UInt8(ascii: "-")
      out += 1
    }
    // `out` is never right of `first`: the move is to the left or in place.
    out.update(from: first, count: wholeCount)
    out += wholeCount
    if scale > 0 {
      // The point takes a byte: the fraction, still at its place, is moved before it is written
      // when the two would meet, which `update` (a memmove) allows.
      (out + 1).update(from: end - scale, count: scale)
      out.pointee = UInt8(ascii: ".")
      out += 1 + scale
    }
    self.commit(out - start)
  }
}

/// "00" … "99".
private let digitPairs: StaticString = """
  0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
  5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
  """

@inline(__always)
func writePair(_ value: UInt64, to out: UnsafeMutablePointer<UInt8>) {
  out.update(from: digitPairs.utf8Start + Int(truncatingIfNeeded: value) &* 2, count: 2)
}

@inline(__always)
private func digitCount(_ value: UInt64) -> Int {
  var count = 1
  var rest = value
  while rest >= 10000 {
    rest /= 10000
    count += 4
  }
  if rest >= 1000 { return count + 3 }
  if rest >= 100 { return count + 2 }
  return rest >= 10 ? count + 1 : count
}

/// Returns the count of digits written.
@inline(__always)
func writeDigits(_ value: UInt64, to out: UnsafeMutablePointer<UInt8>) -> Int {
  let count = digitCount(value)
  _ = writeDigits(value, endingAt: out + count)
  return count
}

/// Writes decimal digits, at most 20, and returns the place of the first.
@inline(__always)
package func writeDigits(
  _ value: UInt64, endingAt end: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  var rest = value
  var out = end
  while rest >= 100 {
    let (quotient, pair) = rest.quotientAndRemainder(dividingBy: 100)
    out -= 2
    writePair(pair, to: out)
    rest = quotient
  }
  if rest >= 10 {
    out -= 2
    writePair(rest, to: out)
  } else {
    out -= 1
    out.pointee = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest)
  }
  return out
}

/// Stores the magnitude as 32-bit limbs of the host's byte order, most significant limb first.
private func loadMagnitude(
  of bytes: UnsafeBufferPointer<UInt8>, isNegative: Bool, limbCount: Int,
  into limbs: UnsafeMutableRawPointer
) {
  var carry: UInt64 = isNegative ? 1 : 0
  for limb in stride(from: limbCount - 1, through: 0, by: -1) {
    var value: UInt32 = 0
    let end = bytes.count - (limbCount - 1 - limb) * 4
    for index in end - 4..<end {
      let byte = index >= 0 ? bytes[index] : isNegative ? 0xFF : 0
      value = value << 8 | UInt32(byte)
    }
    let sum = UInt64(isNegative ? ~value : value) + carry
    carry = sum >> 32
    limbs.storeBytes(of: UInt32(truncatingIfNeeded: sum), toByteOffset: limb * 4, as: UInt32.self)
  }
}

/// Divides the magnitude down to zero; returns the place of the first digit, at least one.
///
/// The digits are before the limbs, so they never overwrite what is still to be divided.
private func writeDigits(
  limbs: UnsafeMutableRawPointer, limbCount: Int, endingAt end: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  let base: UInt64 = 1_000_000_000
  var out = end
  var first = 0
  while first < limbCount {
    var remainder: UInt64 = 0
    for limb in first..<limbCount {
      let value =
        remainder << 32 | UInt64(limbs.loadUnaligned(fromByteOffset: limb * 4, as: UInt32.self))
      limbs.storeBytes(
        of: UInt32(truncatingIfNeeded: value / base), toByteOffset: limb * 4, as: UInt32.self)
      remainder = value % base
    }
    while first < limbCount,
      limbs.loadUnaligned(fromByteOffset: first * 4, as: UInt32.self) == 0
    { first += 1 }
    let group = writeDigits(remainder, endingAt: out)
    out -= 9
    var pad = group
    while first < limbCount, pad > out {
      pad -= 1
      pad.pointee = UInt8(ascii: "0")
    }
    if first == limbCount { return group }
  }
  return out
}
