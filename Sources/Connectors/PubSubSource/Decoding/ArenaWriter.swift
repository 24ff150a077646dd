internal import Pipeline

/// Fills arena bytes that are already reserved and committed, so that the batch is accessed once
/// instead of once per value.
struct ArenaWriter {
  /// The digits and sign that any 64-bit integer needs.
  static let maxDecimalByteCount = 20

  private var base: UnsafeMutablePointer<UInt8>
  private var offset: Int
  private let end: Int

  /// - Parameters:
  ///   - place: the address of `range` in the arena.
  ///   - range: the bytes that may be written.
  init(at place: UnsafeMutablePointer<UInt8>, _ range: RecordBatch.Range) {
    self.base = place - range.offset
    self.offset = range.offset
    self.end = range.offset + range.count
  }

  /// Follows an arena that may have moved.
  mutating func move(to base: UnsafeMutablePointer<UInt8>) { self.base = base }

  /// Returns bytes from anywhere in the arena.
  @inline(__always)
  func bytes(_ range: RecordBatch.Range) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.base + range.offset, count: range.count)
  }

  @inline(__always)
  private mutating func take(_ count: Int) -> (UnsafeMutablePointer<UInt8>, RecordBatch.Range) {
    precondition(self.end - self.offset >= count, "more metadata than was reserved")
    defer { self.offset += count }
    return (self.base + self.offset, RecordBatch.Range(offset: self.offset, count: count))
  }

  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) -> RecordBatch.Range {
    let (place, range) = self.take(bytes.count)
    if let start = bytes.baseAddress { place.update(from: start, count: bytes.count) }
    return range
  }

  mutating func append(_ bytes: [UInt8]) -> RecordBatch.Range {
    bytes.withUnsafeBufferPointer { self.append($0) }
  }

  mutating func appendZeroes(_ count: Int) -> (UnsafeMutablePointer<UInt8>, RecordBatch.Range) {
    let (place, range) = self.take(count)
    place.update(repeating: 0, count: count)
    return (place, range)
  }

  mutating func appendHexadecimal(_ bytes: UnsafeBufferPointer<UInt8>) -> RecordBatch.Range {
    let digits: StaticString = "0123456789abcdef"
    var (place, range) = self.take(bytes.count * 2)
    for byte in bytes {
      place[0] = digits.utf8Start[Int(byte >> 4)]
      place[1] = digits.utf8Start[Int(byte & 15)]
      place += 2
    }
    return range
  }

  mutating func appendDecimal(_ value: Int64) -> RecordBatch.Range {
    var count = value < 0 ? 2 : 1
    var rest = value.magnitude
    while rest > 9 {
      rest /= 10
      count += 1
    }
    let (place, range) = self.take(count)
    var next = place + count
    rest = value.magnitude
    repeat {
      next -= 1
      next.pointee = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest != 0
    if value < 0 { place.pointee = UInt8(ascii: "-") }
    return range
  }
}
