// Exact comparison. What fits 128 bits, which is every column of PostgreSQL's or Salesforce's usual
// precision, is compared without memory; the rest by long multiplication.

extension Decimal {
  func order(_ other: Int128) -> Order {
    guard let parts = self.parts else {
      return Magnitude.order(
        (self.isNegative, self.magnitude), (other < 0, Magnitude(other.magnitude)),
        leftScale: Int(self.scale), rightScale: 0)
    }
    if parts.whole != other { return parts.whole < other ? .less : .greater }
    return parts.fraction == 0 ? .equal : .greater
  }

  func order(_ other: Decimal) -> Order {
    if self.scale == other.scale, let left = self.unscaled128, let right = other.unscaled128 {
      return Order(left, right)
    }
    return Magnitude.order(
      (self.isNegative, self.magnitude), (other.isNegative, other.magnitude),
      leftScale: Int(self.scale), rightScale: Int(other.scale))
  }

  func order(_ other: Double) -> Order {
    guard other.isFinite else { return other.isNaN ? .unordered : other > 0 ? .less : .greater }
    if let parts = self.parts, other.magnitude < 1e37 {
      let floor = other.rounded(.down)
      let whole = Int128(floor)
      if parts.whole != whole { return parts.whole < whole ? .less : .greater }
      if floor == other { return parts.fraction == 0 ? .equal : .greater }
    }
    // other = significand × 2^exponent, the significand an integer.
    var significand = Magnitude(
      UInt128(other.significandBitPattern | (other.isNormal ? 1 << 52 : 0)))
    let exponent = max(Int(other.exponentBitPattern), 1) - 1075
    var own = self.magnitude
    if exponent >= 0 { significand.shift(exponent) } else { own.shift(-exponent) }
    return Magnitude.order(
      (self.isNegative, own), (other < 0, significand), leftScale: Int(self.scale), rightScale: 0)
  }

  private var isNegative: Bool { (self.unscaled.bytes.first ?? 0) >= 0x80 }

  private var unscaled128: Int128? {
    guard self.unscaled.count <= 16 else { return nil }
    var value: Int128 = self.isNegative ? -1 : 0
    for byte in self.unscaled.bytes { value = value << 8 | Int128(byte) }
    return value
  }

  /// Rounded down, and 0 unless there is a fraction.
  private var parts: (whole: Int128, fraction: Int128)? {
    guard self.scale <= 38, let value = self.unscaled128 else { return nil }
    var divisor: Int128 = 1
    for _ in 0..<self.scale { divisor *= 10 }
    let (whole, rest) = value.quotientAndRemainder(dividingBy: divisor)
    return (rest < 0 ? whole - 1 : whole, rest)
  }

  private var magnitude: Magnitude {
    var bytes = Array(self.unscaled.bytes)
    if self.isNegative {
      var carry = true
      for index in bytes.indices.reversed() {
        bytes[index] = ~bytes[index] &+ (carry ? 1 : 0)
        carry = carry && bytes[index] == 0
      }
    }
    var result = Magnitude(0)
    for byte in bytes { result.multiply(by: 256, adding: UInt32(byte)) }
    return result
  }
}

/// A natural number of any size, least significant limb first.
private struct Magnitude {
  private var limbs: [UInt32] = []

  init(_ value: UInt128) {
    var rest = value
    while rest > 0 {
      self.limbs.append(UInt32(truncatingIfNeeded: rest))
      rest >>= 32
    }
  }

  mutating func multiply(by factor: UInt32, adding summand: UInt32 = 0) {
    var carry = UInt64(summand)
    for index in self.limbs.indices {
      let product = UInt64(self.limbs[index]) * UInt64(factor) + carry
      self.limbs[index] = UInt32(truncatingIfNeeded: product)
      carry = product >> 32
    }
    if carry > 0 { self.limbs.append(UInt32(carry)) }
  }

  mutating func shift(_ bits: Int) {
    self.multiply(by: 1 << UInt32(bits % 32))
    if !self.limbs.isEmpty {
      self.limbs.insert(contentsOf: repeatElement(0, count: bits / 32), at: 0)
    }
  }

  /// Compares `left` × 10^-`leftScale` with `right` × 10^-`rightScale`.
  static func order(
    _ left: (isNegative: Bool, value: Magnitude), _ right: (isNegative: Bool, value: Magnitude),
    leftScale: Int, rightScale: Int
  ) -> Order {
    var (left, right) = (left, right)
    for _ in 0..<max(0, rightScale - leftScale) { left.value.multiply(by: 10) }
    for _ in 0..<max(0, leftScale - rightScale) { right.value.multiply(by: 10) }
    let leftSign = left.value.limbs.isEmpty ? 0 : left.isNegative ? -1 : 1
    let rightSign = right.value.limbs.isEmpty ? 0 : right.isNegative ? -1 : 1
    guard leftSign == rightSign else { return leftSign < rightSign ? .less : .greater }
    let order = left.value.order(right.value)
    return leftSign < 0 ? order.reversed : order
  }

  private func order(_ other: Magnitude) -> Order {
    guard self.limbs.count == other.limbs.count else {
      return self.limbs.count < other.limbs.count ? .less : .greater
    }
    for (left, right) in zip(self.limbs.reversed(), other.limbs.reversed()) where left != right {
      return left < right ? .less : .greater
    }
    return .equal
  }
}
