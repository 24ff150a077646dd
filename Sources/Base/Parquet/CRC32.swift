/// The CRC of pages: that of gzip (RFC 1952, section 8), with the polynomial 0xEDB88320.
struct CRC32 {
  /// By place in a word of eight bytes, then by byte.
  private let table: [UInt32]

  init() {
    var table = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
      table[byte] = value
    }
    for index in 256..<8 * 256 {
      let previous = table[index - 256]
      table[index] = previous >> 8 ^ table[Int(previous & 0xFF)]
    }
    self.table = table
  }

  func value(of bytes: UnsafeRawBufferPointer) -> UInt32 {
    self.table.withUnsafeBufferPointer { table in
      var crc = ~UInt32(0)
      var offset = 0
      while offset + 8 <= bytes.count {
        let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let value = UInt64(littleEndian: word) ^ UInt64(crc)
        crc = 0
        for place in 0..<8 {
          crc ^= table[(7 - place) * 256 + Int(value >> UInt64(place * 8) & 0xFF)]
        }
        offset += 8
      }
      while offset < bytes.count {
        crc = crc >> 8 ^ table[Int((crc ^ UInt32(bytes[offset])) & 0xFF)]
        offset += 1
      }
      return ~crc
    }
  }
}
