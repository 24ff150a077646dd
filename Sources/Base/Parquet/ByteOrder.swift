internal import Glibc

/// Whether runs of equal length have the same bytes.
@inline(__always)
func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard let left = left.baseAddress, let start = right.baseAddress else { return true }
  return memcmp(left, start, right.count) == 0
}

/// The order of unsigned bytes: negative if `left` is first.
@inline(__always)
func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
  let count = min(left.count, right.count)
  guard count > 0, let first = left.baseAddress, let second = right.baseAddress else {
    return left.count - right.count
  }
  let order = memcmp(first, second, count)
  return order == 0 ? left.count - right.count : Int(order)
}

/// Whether the bytes are UTF-8.
func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
  var offset = 0
  while offset + 8 <= bytes.count,
    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
  {
    offset += 8
  }
  while offset < bytes.count, bytes[offset] < 0x80 { offset += 1 }
  if offset == bytes.count { return true }
  return String(
    validating: UnsafeRawBufferPointer(rebasing: bytes[offset...]), as: UTF8.self) != nil
}
