extension ByteBuffer {
  /// Base64 with the standard alphabet and padding (RFC 4648 section 4), without quotes.
  package mutating func appendBase64(_ bytes: UnsafeBufferPointer<UInt8>) {
    let count = (bytes.count + 2) / 3 * 4
    var out = self.reserve(count)
    let alphabet = base64Alphabet.utf8Start
    var index = 0
    while index + 3 <= bytes.count {
      let group =
        UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2])
      out[0] = alphabet[Int(group >> 18)]
      out[1] = alphabet[Int(group >> 12 & 63)]
      out[2] = alphabet[Int(group >> 6 & 63)]
      out[3] = alphabet[Int(group & 63)]
      out += 4
      index += 3
    }
    if index < bytes.count {
      let hasTwo = index + 1 < bytes.count
      let group = UInt32(bytes[index]) << 16 | (hasTwo ? UInt32(bytes[index + 1]) << 8 : 0)
      out[0] = alphabet[Int(group >> 18)]
      out[1] = alphabet[Int(group >> 12 & 63)]
      out[2] = hasTwo ? alphabet[Int(group >> 6 & 63)] : UInt8(ascii: "=")
      out[3] = UInt8(ascii: "=")
    }
    self.commit(count)
  }
}

private let base64Alphabet: StaticString =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
