/// The percent-encoding of RFC 3986.
package enum PercentEncoding {
  /// Everything but the unreserved characters as `%XX`.
  package static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if byte.isWordCharacter || "-.~".utf8.contains(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The bytes that a text stands for. A `%` that begins no escape stays as it is, and the text is not
  /// valid.
  package static func decoded(_ text: some StringProtocol) -> (bytes: [UInt8], isValid: Bool) {
    var bytes: [UInt8] = []
    var isValid = true
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      if rest.count >= 2, let high = rest[rest.startIndex].hexDigit,
        let low = rest[rest.startIndex + 1].hexDigit
      {
        bytes.append(high << 4 | low)
        rest.removeFirst(2)
      } else {
        bytes.append(byte)
        isValid = false
      }
    }
    return (bytes, isValid)
  }
}
