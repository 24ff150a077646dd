/// Reads what `HybridEncoder` writes. The bytes may be hostile.
struct HybridDecoder {
  /// The bytes end too early, or have a value that no writer makes.
  struct Fault: Error {}

  /// Places in the page.
  private var offset: Int
  private let end: Int
  private let bitWidth: Int
  /// No value may be greater.
  private let greatest: UInt32
  private var runValue: UInt32 = 0
  private var runCount = 0
  /// Values that follow, packed; their first is at bit `packedBit` from `packedStart`.
  private var packedCount = 0
  private var packedStart = 0
  private var packedBit = 0

  /// - Parameters:
  ///   - range: within the page.
  ///   - bitWidth: 1…16.
  init(_ range: Range<Int>, bitWidth: Int, greatest: UInt32) {
    self.offset = range.lowerBound
    self.end = range.upperBound
    self.bitWidth = bitWidth
    self.greatest = greatest
  }

  /// The next value.
  @inline(__always)
  mutating func next(in page: UnsafeRawBufferPointer) throws(Fault) -> UInt32 {
    if self.runCount > 0 {
      self.runCount -= 1
      return self.runValue
    }
    return try self.nextRun(in: page, limit: 1).value
  }

  /// The next value, and how often it follows at least once, at most `limit` times.
  @inline(__always)
  mutating func nextRun(
    in page: UnsafeRawBufferPointer, limit: Int
  ) throws(Fault) -> (value: UInt32, count: Int) {
    if self.runCount == 0, self.packedCount == 0 { try self.begin(in: page) }
    if self.runCount > 0 {
      let count = min(self.runCount, limit)
      self.runCount -= count
      return (self.runValue, count)
    }
    // `begin` has checked that the packed bytes are there.
    let place = self.packedStart + self.packedBit >> 3
    var bits: UInt32 = 0
    for index in 0..<min(3, self.end - place) {
      bits |= UInt32(page[place + index]) << UInt32(index * 8)
    }
    let value = bits >> UInt32(self.packedBit & 7) & (1 << UInt32(self.bitWidth) - 1)
    guard value <= self.greatest else { throw Fault() }
    self.packedBit += self.bitWidth
    self.packedCount -= 1
    return (value, 1)
  }

  private mutating func begin(in page: UnsafeRawBufferPointer) throws(Fault) {
    var header: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard self.offset < self.end, shift < 35 else { throw Fault() }
      let byte = page[self.offset]
      self.offset += 1
      header |= UInt64(byte & 0x7F) << shift
      shift += 7
      if byte < 0x80 { break }
    }
    let count = Int(header >> 1)
    guard count > 0 else { throw Fault() }
    if header & 1 == 1 {
      // At most 2^34 groups of 16 bytes, so nothing overflows.
      guard count * self.bitWidth <= self.end - self.offset else { throw Fault() }
      self.packedStart = self.offset
      self.packedBit = 0
      self.packedCount = count * 8
      self.offset += count * self.bitWidth
    } else {
      let byteCount = (self.bitWidth + 7) / 8
      guard byteCount <= self.end - self.offset else { throw Fault() }
      var value: UInt32 = 0
      for index in 0..<byteCount {
        value |= UInt32(page[self.offset + index]) << UInt32(index * 8)
      }
      guard value <= self.greatest else { throw Fault() }
      self.offset += byteCount
      self.runValue = value
      self.runCount = count
    }
  }
}
