extension [UInt8] {
  /// Base64 with the standard alphabet and padding (RFC 4648 section 4).
  package var base64: String {
    var buffer = ByteBuffer(capacity: self.count / 3 * 4 + 8)
    self.withUnsafeBufferPointer { buffer.appendBase64($0) }
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// Base64 with the standard alphabet and padding (RFC 4648 section 4); nil for anything else.
  package init?(base64 text: String) {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 4) else { return nil }
    let padding = digits.suffix(2).filter { $0 == UInt8(ascii: "=") }.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3)
    var bits: UInt32 = 0
    for (index, digit) in digits.enumerated() {
      let value: UInt32
      switch digit {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = UInt32(digit) - 65
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(digit) - 71
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = UInt32(digit) + 4
      case UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "/"): value = 63
      case UInt8(ascii: "=") where index >= digits.count - padding: value = 0
      default: return nil
      }
      bits = bits << 6 | value
      if index % 4 == 3 {
        bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
        bytes.append(UInt8(truncatingIfNeeded: bits >> 8))
        bytes.append(UInt8(truncatingIfNeeded: bits))
        bits = 0
      }
    }
    bytes.removeLast(padding)
    self = bytes
  }
}
