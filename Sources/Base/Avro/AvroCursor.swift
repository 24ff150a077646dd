/// Reading primitives of the binary encoding (specification, "Binary Encoding").
///
/// Uses pointers instead of `RawSpan` and an offset, so that `next` and `end` stay in registers
/// across the main loop of `DecodePlan`. Every function checks against `end` before it reads. Slow
/// paths take and return pointers by value, so that the fast path's variable never needs an
/// address.
@frozen @usableFromInline
struct AvroCursor {
  @usableFromInline let start: UnsafePointer<UInt8>
  @usableFromInline let end: UnsafePointer<UInt8>

  @inlinable @inline(__always)
  init(_ payload: UnsafeBufferPointer<UInt8>, start: UnsafePointer<UInt8>) {
    self.start = start
    self.end = start + payload.count
  }

  /// Variable-length integer before zig-zag decoding: 7 bits per byte, least significant first.
  @inlinable @inline(__always)
  func varint(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> UInt64 {
    if next < self.end, next[0] < 0x80 {
      defer { next += 1 }
      return UInt64(next[0])
    }
    let (value, after) = try self.longVarint(next)
    next = after
    return value
  }

  @usableFromInline @inline(never)
  func longVarint(
    _ first: UnsafePointer<UInt8>
  ) throws(AvroError) -> (UInt64, UnsafePointer<UInt8>) {
    var next = first
    var value: UInt64 = 0
    var shift: UInt64 = 0
    if self.end - first >= 8 {
      let word = UInt64(littleEndian: UnsafeRawPointer(first).loadUnaligned(as: UInt64.self))
      let stops = ~word & 0x8080_8080_8080_8080
      // The bytes up to the first whose top bit is clear, without the top bits, moved together.
      value = word & (stops ^ (stops &- 1)) & 0x7F7F_7F7F_7F7F_7F7F
      value = value & 0x007F_007F_007F_007F | (value & 0x7F00_7F00_7F00_7F00) &>> 1
      value = value & 0x0000_3FFF_0000_3FFF | (value & 0x3FFF_0000_3FFF_0000) &>> 2
      value = value & 0x0000_0000_0FFF_FFFF | (value & 0x0FFF_FFFF_0000_0000) &>> 4
      if stops != 0 { return (value, first + (stops.trailingZeroBitCount &>> 3 &+ 1)) }
      next += 8
      shift = 56
    }
    while next < self.end {
      let byte = next[0]
      next += 1
      // The tenth byte holds only the 64th bit.
      if shift == 63, byte > 1 {
        throw self.error(.malformed, "a variable-length integer of more than 64 bits", at: first)
      }
      value |= UInt64(byte & 0x7F) &<< shift
      if byte < 0x80 { return (value, next) }
      shift += 7
    }
    throw self.error(.truncated, "the payload ends inside an integer", at: first)
  }

  @inlinable @inline(__always)
  func long(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> Int64 {
    let value = try self.varint(&next)
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  @inlinable @inline(__always)
  func int(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> Int64 {
    let first = next
    let value = try self.long(&next)
    guard value == Int64(Int32(truncatingIfNeeded: value)) else {
      throw self.badInt(at: first)
    }
    return value
  }

  /// Index of an enum or a union.
  @inlinable @inline(__always)
  func index(
    _ next: inout UnsafePointer<UInt8>, below count: Int
  ) throws(AvroError) -> Int {
    let first = next
    let value = try self.varint(&next)
    // Odd numbers are negative.
    guard value & 1 == 0, value >> 1 < UInt64(count) else {
      throw self.badIndex(value, count, at: first)
    }
    return Int(value >> 1)
  }

  @usableFromInline @inline(never)
  func badIndex(_ value: UInt64, _ count: Int, at place: UnsafePointer<UInt8>) -> AvroError {
    let index = Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    return self.error(.malformed, "index \(index), but there are \(count) choices", at: place)
  }

  @inlinable @inline(__always)
  func boolean(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> UInt64 {
    let place = try self.take(1, &next)
    guard place[0] <= 1 else {
      throw self.badBoolean(at: place)
    }
    return UInt64(place[0])
  }

  /// Skips `count` bytes, at least 0, and returns where they begin.
  @inlinable @inline(__always)
  func take(
    _ count: Int, _ next: inout UnsafePointer<UInt8>
  ) throws(AvroError) -> UnsafePointer<UInt8> {
    guard count <= self.end - next else { throw self.tooShort(count, at: next) }
    defer { next += count }
    return next
  }

  @usableFromInline @inline(never)
  func tooShort(_ count: Int, at place: UnsafePointer<UInt8>) -> AvroError {
    self.error(.truncated, "a value of \(count) bytes, \(self.end - place) left", at: place)
  }

  /// Length-prefixed bytes.
  @inlinable @inline(__always)
  func bytes(
    _ next: inout UnsafePointer<UInt8>
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    let first = next
    let length = try self.long(&next)
    guard length >= 0 else {
      throw self.badLength(length, at: first)
    }
    let start = try self.take(Int(length), &next)
    return UnsafeBufferPointer(start: start, count: Int(length))
  }

  @inlinable @inline(__always)
  func string(
    _ next: inout UnsafePointer<UInt8>
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    let bytes = try self.bytes(&next)
    guard isUTF8(bytes) else {
      throw self.badText(at: next - bytes.count)
    }
    return bytes
  }

  @inlinable @inline(__always)
  func float(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> UInt64 {
    let place = UnsafeRawPointer(try self.take(4, &next))
    return UInt64(UInt32(littleEndian: place.loadUnaligned(as: UInt32.self)))
  }

  @inlinable @inline(__always)
  func double(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> UInt64 {
    let place = UnsafeRawPointer(try self.take(8, &next))
    return UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
  }

  /// Items of the next block of an array or map, 0 at its end. A negative count is followed by the
  /// block's size in bytes, for readers that skip blocks; here it only has to be plausible.
  @usableFromInline
  func blockCount(_ next: inout UnsafePointer<UInt8>) throws(AvroError) -> Int {
    let first = next
    let count = try self.long(&next)
    guard count < 0 else { return Int(count) }
    let size = try self.long(&next)
    guard size >= 0, size <= self.end - next else {
      throw self.error(
        .malformed, "a block of \(size) bytes, \(self.end - next) left", at: first)
    }
    guard count != .min else {
      throw self.error(.malformed, "a block of 2^63 items", at: first)
    }
    return Int(-count)
  }

  /// The number of zero bytes before the first nonzero one, among the next `limit` bytes.
  ///
  /// Each is the first branch of a union, so this is a run of nulls, skipped eight at a time.
  @inlinable @inline(__always)
  func zeroes(_ next: UnsafePointer<UInt8>, limit: Int) -> Int {
    var count = 0
    while count < limit {
      if self.end - (next + count) >= 8 {
        let word = UInt64(
          littleEndian: UnsafeRawPointer(next + count).loadUnaligned(as: UInt64.self))
        guard word == 0 else {
          count += word.trailingZeroBitCount >> 3
          break
        }
        count += 8
      } else {
        guard next + count < self.end, next[count] == 0 else { break }
        count += 1
      }
    }
    return min(count, limit)
  }

  // Out of line, so that the loops around the readers stay small.

  @usableFromInline @inline(never)
  func badInt(at place: UnsafePointer<UInt8>) -> AvroError {
    self.error(.malformed, "an int of more than 32 bits", at: place)
  }

  @usableFromInline @inline(never)
  func badBoolean(at place: UnsafePointer<UInt8>) -> AvroError {
    self.error(.malformed, "a boolean that is neither 0 nor 1", at: place)
  }

  @usableFromInline @inline(never)
  func badLength(_ length: Int64, at place: UnsafePointer<UInt8>) -> AvroError {
    self.error(.malformed, "a length of \(length) bytes", at: place)
  }

  @usableFromInline @inline(never)
  func badText(at place: UnsafePointer<UInt8>) -> AvroError {
    self.error(.malformed, "a string that is not UTF-8", at: place)
  }

  @usableFromInline @inline(never)
  func error(
    _ code: AvroError.Code, _ message: String, at place: UnsafePointer<UInt8>
  ) -> AvroError {
    AvroError(code, message, byteOffset: place - self.start)
  }
}
