internal import Bytes
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
    let digitStart = digits.utf8Start
    var (place, range) = self.take(bytes.count * 2)
    for byte in bytes {
      place[0] = digitStart[Int(byte &>> 4)]
      place[1] = digitStart[Int(byte & 15)]
      place += 2
    }
    return range
  }

  mutating func appendDecimal(_ value: Int64) -> RecordBatch.Range {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.maxDecimalByteCount) { digits in
      // A temporary allocation of some bytes has an address.
      let end = digits.baseAddress! + digits.count
      var start = writeDigits(value.magnitude, endingAt: end)
      if value < 0 {
        start -= 1
        start.pointee = UInt8(ascii: "-")
      }
      return self.append(UnsafeBufferPointer(start: start, count: end - start))
    }
  }
}
