internal import Bytes

/// Text of durations: `1h30m`, `-2.5s`, `10ms`.
enum DurationText {
  private static let units: [(name: [UInt8], nanoseconds: Int128)] = [
    (Array("ns".utf8), 1), (Array("us".utf8), 1000), (Array("µs".utf8), 1000),
    (Array("ms".utf8), 1_000_000), (Array("s".utf8), 1_000_000_000),
    (Array("m".utf8), 60_000_000_000), (Array("h".utf8), 3_600_000_000_000),
  ]

  /// Nanoseconds of decimal numbers, each with a unit, behind at most one sign. Nil for other text and
  /// for what 64 bits do not hold.
  static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    var rest = UnsafeBufferPointer(rebasing: text[...])
    var isNegative = false
    if let first = rest.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") {
      isNegative = first == UInt8(ascii: "-")
      rest = UnsafeBufferPointer(rebasing: rest.dropFirst())
    }
    if rest.count == 1, rest[0] == UInt8(ascii: "0") { return 0 }
    guard !rest.isEmpty else { return nil }
    var total: Int128 = 0
    while !rest.isEmpty {
      guard let (value, count) = Self.part(rest) else { return nil }
      total += value
      guard total <= Int128(Int64.max) + 1 else { return nil }
      rest = UnsafeBufferPointer(rebasing: rest.dropFirst(count))
    }
    return Int64(exactly: isNegative ? -total : total)
  }

  /// One number and its unit: nanoseconds, and bytes of the text.
  private static func part(_ text: UnsafeBufferPointer<UInt8>) -> (Int128, Int)? {
    var index = 0
    var whole: Int128 = 0
    while index < text.count, text[index].isDigit {
      whole = whole * 10 + Int128(text[index] - UInt8(ascii: "0"))
      guard whole <= Int128(Int64.max) + 1 else { return nil }
      index += 1
    }
    var digitCount = index
    // At most 15 digits: with the largest unit, what is behind is below a nanosecond.
    var fraction: Int128 = 0
    var scale: Int128 = 1
    if index < text.count, text[index] == UInt8(ascii: ".") {
      index += 1
      while index < text.count, text[index].isDigit {
        if scale < 1_000_000_000_000_000 {
          fraction = fraction * 10 + Int128(text[index] - UInt8(ascii: "0"))
          scale *= 10
        }
        index += 1
        digitCount += 1
      }
    }
    guard digitCount > 0 else { return nil }
    let name = text[index...].prefix { !$0.isDigit && $0 != UInt8(ascii: ".") }
    guard let unit = Self.units.first(where: { $0.name.elementsEqual(name) }) else { return nil }
    return (
      whole * unit.nanoseconds + fraction * unit.nanoseconds / scale, index + unit.name.count
    )
  }

  /// Seconds: `3.5s`, `-0.000000001s`, `0s`.
  static func append(_ nanoseconds: Int64, to buffer: inout ByteBuffer) {
    if nanoseconds < 0 { buffer.append(UInt8(ascii: "-")) }
    let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
    buffer.append(seconds)
    appendFraction(Int32(rest), to: &buffer)
    buffer.append(UInt8(ascii: "s"))
  }
}
