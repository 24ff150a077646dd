import Bytes
import TestSupport
import Testing

@Suite("Appending numbers")
struct ByteBufferNumbersTests {
  @Test("Integers of every length are written, at both ends and around powers of ten")
  func integers() {
    var values: [Int64] = [0, .min, .max, .min + 1]
    var power: Int64 = 1
    for _ in 0..<19 {
      values += [power - 1, power, power + 1, -power, 1 - power, -power - 1]
      let (next, overflow) = power.multipliedReportingOverflow(by: 10)
      if !overflow { power = next }
    }
    for value in values { #expect(appended { $0.append(value) } == String(value)) }
    #expect(appended { $0.append(UInt64.max) } == "18446744073709551615")
    #expect(appended { $0.append(Int32.min) } == "-2147483648")
  }

  @Test(
    "Doubles have a point or an exponent",
    arguments: [
      (0, "0.0"), (-0.0, "-0.0"), (100, "100.0"), (-1, "-1.0"), (0.1, "0.1"), (0.07, "0.07"),
      (12.5, "12.5"), (-12.34, "-12.34"), (1e5, "100000.0"),
      (123_456_789_012.25, "123456789012.25"),
      (0.125, "0.125"), (1e20, "1e+20"), (.leastNonzeroMagnitude, "5e-324"),
      (0.1 + 0.2, "0.30000000000000004"),
      (9_007_199_254_740_992, "9007199254740992.0"), (0.001, "0.001"), (1e-7, "1e-07"),
      (9_999_999_999_999.99, "9999999999999.99"), (10_000_000_000_000, "1e+13"),
      (.greatestFiniteMagnitude, "1.7976931348623157e+308"), (-0.004, "-0.004"),
    ] as [(Double, String)])
  func doubles(value: Double, expected: String) {
    #expect(appended { $0.append(value) } == expected)
  }

  @Test(
    "Floats are as short as their own width allows",
    arguments: [
      (0, "0.0"), (-0.0, "-0.0"), (0.1, "0.1"), (3.14159, "3.14159"), (100, "100.0"),
      (999_999, "999999.0"), (16_777_216, "16777216.0"), (1e10, "1e+10"), (-2.5, "-2.5"),
      (.leastNonzeroMagnitude, "1e-45"), (.greatestFiniteMagnitude, "3.4028235e+38"),
    ] as [(Float, String)])
  func floats(value: Float, expected: String) {
    #expect(appended { $0.append(value) } == expected)
  }

  /// Significant digits without leading and trailing zeros: equal for two spellings of one number.
  private func digits(_ text: String) -> String {
    let mantissa = text.prefix { $0 != "e" }.filter(\.isNumber).drop { $0 == "0" }
    return String(mantissa.reversed().drop { $0 == "0" }.reversed())
  }

  @Test("Random doubles read back unchanged and have no more digits than Swift's own text")
  func randomDoubles() {
    var random = SystemRandomNumberGenerator()
    for round in 0..<50_000 {
      let value =
        switch round % 4 {
        case 0: Double(bitPattern: random.next())
        case 1: Double(Int64.random(in: -1_000_000_000_000_000...1_000_000_000_000_000)) / 100
        case 2: Double(Int64.random(in: -1_000_000...1_000_000)) / 1000
        default: Double.random(in: -1e15...1e15).rounded()
        }
      guard value.isFinite else { continue }
      let text = appended { $0.append(value) }
      guard Double(text)?.bitPattern == value.bitPattern,
        text.contains(where: { ".e".contains($0) })
      else {
        Issue.record("\(value) became \(text)")
        continue
      }
      // to_chars writes large integers with all their digits, which are more than the shortest.
      if text.contains("e") || value.magnitude < 1e15 {
        #expect(digits(text) == digits(value.description), "\(value) became \(text)")
      }
    }
  }

  @Test("Random floats read back unchanged")
  func randomFloats() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<50_000 {
      let value = Float(bitPattern: random.next())
      guard value.isFinite else { continue }
      let text = appended { $0.append(value) }
      guard Float(text)?.bitPattern == value.bitPattern, text.contains(where: { ".e".contains($0) })
      else {
        Issue.record("\(value) became \(text)")
        continue
      }
      if text.contains("e") || value.magnitude < 1e6 {
        #expect(digits(text) == digits(value.description), "\(value) became \(text)")
      }
    }
  }

  @Test(
    "Decimals are written in plain notation with their full scale",
    arguments: [
      ([], 0, "0"), ([], 2, "0.00"), ([0x00], 0, "0"), ([0x01], 0, "1"), ([0xFF], 0, "-1"),
      ([0x80], 0, "-128"), ([0x7F], 1, "12.7"), ([0x80], 2, "-1.28"), ([0xFF], 3, "-0.001"),
      ([0x04, 0xD2], 2, "12.34"), ([0x04, 0xD2], 4, "0.1234"), ([0x04, 0xD2], 6, "0.001234"),
      ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 2, "-0.01"),
      ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7], 0, "7"),
      ([0x80, 0, 0, 0, 0, 0, 0, 0], 0, "-9223372036854775808"),
      ([0x00, 0x80, 0, 0, 0, 0, 0, 0, 0], 3, "9223372036854775.808"),
      ([0x80, 0, 0, 0, 0, 0, 0, 0, 0], 0, "-2361183241434822606848"),
      // 10^20: digits that are zero in the middle groups are kept.
      ([0x05, 0x6B, 0xC7, 0x5E, 0x2D, 0x63, 0x10, 0x00, 0x00], 20, "1.00000000000000000000"),
    ] as [([UInt8], Int, String)])
  func decimals(unscaled: [UInt8], scale: Int, expected: String) {
    #expect(appended { $0.appendDecimal(unscaled, scale: scale) } == expected)
  }

  /// Schoolbook: decimal digits, least significant first, times 256 plus the next byte.
  private func decimalBySchoolbook(_ unscaled: [UInt8], scale: Int) -> String {
    var magnitude = unscaled
    let isNegative = (unscaled.first ?? 0) >= 0x80
    if isNegative {
      var carry = 1
      for index in magnitude.indices.reversed() {
        carry += Int(~magnitude[index])
        magnitude[index] = UInt8(carry & 0xFF)
        carry >>= 8
      }
    }
    var digits = [0]
    for byte in magnitude {
      var carry = Int(byte)
      for index in digits.indices {
        carry += digits[index] * 256
        digits[index] = carry % 10
        carry /= 10
      }
      while carry > 0 {
        digits.append(carry % 10)
        carry /= 10
      }
    }
    while digits.count <= scale { digits.append(0) }
    var text = digits.reversed().map(String.init).joined()
    if scale > 0 { text.insert(".", at: text.index(text.endIndex, offsetBy: -scale)) }
    return (isNegative ? "-" : "") + text
  }

  @Test("Random decimals of any length equal the results of long multiplication")
  func randomDecimals() {
    for round in 0..<4000 {
      let count = round % 60
      var unscaled = (0..<count).map { _ in UInt8.random(in: 0...255) }
      if round % 3 == 0 { for index in unscaled.indices.dropFirst() { unscaled[index] = 0 } }
      let scale = Int.random(in: 0...90)
      #expect(
        appended { $0.appendDecimal(unscaled, scale: scale) }
          == decimalBySchoolbook(unscaled, scale: scale))
    }
  }
}

extension ByteBuffer {
  mutating func appendDecimal(_ unscaled: [UInt8], scale: Int) {
    unscaled.withUnsafeBufferPointer { self.appendDecimal(unscaled: $0, scale: scale) }
  }
}
