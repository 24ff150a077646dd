/// Whether bytes are well-formed UTF-8 (Unicode 15, table 3-7). ASCII is checked eight bytes at a
/// time.
@inlinable @inline(__always)
func isUTF8(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  guard let start = bytes.baseAddress else { return true }
  let count = bytes.count
  let base = UnsafeRawPointer(start)
  let highBits: UInt64 = 0x8080_8080_8080_8080
  if count >= 8 {
    var seen: UInt64 = 0
    var offset = 0
    while offset <= count - 8 {
      seen |= base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      offset += 8
    }
    // The last eight overlap the bytes already read.
    seen |= base.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
    return seen & highBits == 0 || isMultibyteUTF8(bytes)
  }
  if count >= 4 {
    let seen =
      base.loadUnaligned(as: UInt32.self)
      | base.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
    return UInt64(seen) & highBits == 0 || isMultibyteUTF8(bytes)
  }
  var seen: UInt8 = 0
  for byte in bytes { seen |= byte }
  return seen < 0x80 || isMultibyteUTF8(bytes)
}

@usableFromInline @inline(never)
func isMultibyteUTF8(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  var index = 0
  let count = bytes.count
  while index < count {
    let lead = bytes[index]
    if lead < 0x80 {
      index += 1
      continue
    }
    let length: Int
    // The valid range of the second byte, which excludes overlong forms, surrogates and values
    // beyond U+10FFFF.
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch lead {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    case 0xF1...0xF3: length = 4
    default: return false
    }
    guard count - index >= length, second.contains(bytes[index + 1]) else { return false }
    for trailing in 2..<max(length, 2) where bytes[index + trailing] & 0xC0 != 0x80 {
      return false
    }
    index += length
  }
  return true
}
