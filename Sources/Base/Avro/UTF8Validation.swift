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
  let raw = UnsafeRawBufferPointer(bytes)
  while index < count {
    let lead = bytes[index]
    if lead < 0x80 {
      index &+= 1
      while index &+ 8 <= count {
        let word = UInt64(
          littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let high = word & 0x8080_8080_8080_8080
        index &+= high == 0 ? 8 : high.trailingZeroBitCount &>> 3
        if high != 0 { break }
      }
      continue
    }
    if lead >= 0xC2, lead <= 0xDF {
      guard index &+ 1 < count, isTrailing(bytes[index &+ 1]) else { return false }
      index &+= 2
      continue
    }
    // The valid range of the second byte excludes overlong forms, surrogates and values beyond
    // U+10FFFF.
    var least: UInt8 = 0x80
    var greatest: UInt8 = 0xBF
    let length: Int
    switch lead {
    case 0xE0: (length, least) = (3, 0xA0)
    case 0xED: (length, greatest) = (3, 0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, least) = (4, 0x90)
    case 0xF4: (length, greatest) = (4, 0x8F)
    case 0xF1...0xF3: length = 4
    default: return false
    }
    guard count &- index >= length, bytes[index &+ 1] >= least, bytes[index &+ 1] <= greatest,
      isTrailing(bytes[index &+ 2]), length == 3 || isTrailing(bytes[index &+ 3])
    else { return false }
    index &+= length
  }
  return true
}

@inline(__always)
private func isTrailing(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
