internal import Bytes

/// Writes levels and indices: runs of one value, and groups of eight packed values (parquet-format,
/// "Run Length Encoding / Bit-Packing Hybrid").
struct HybridEncoder: ~Copyable {
  private(set) var output = ByteBuffer(capacity: 32)
  private let bitWidth: Int
  private var runValue: UInt32 = 0
  private var runCount = 0
  /// Values of a group that is not full: `groupCount` of them, the first in the lowest bits.
  private var group: UInt64 = 0
  /// The bits above the 64th, for values of more than 8 bits.
  private var groupTop: UInt64 = 0
  private var groupCount = 0
  /// Where the header of the last packed run is; nil if the last run is of one value.
  private var packedHeader: Int?

  /// - Parameter bitWidth: 1…16.
  init(bitWidth: Int) { self.bitWidth = bitWidth }

  mutating func removeAll() { self.output.removeAll() }

  @inline(__always)
  mutating func append(_ value: UInt32, count: Int = 1) {
    if value != self.runValue {
      self.endRun()
      self.runValue = value
    }
    self.runCount += count
  }

  /// Writes what is not complete. The encoder can then begin again, after `removeAll`.
  mutating func finish() {
    self.endRun()
    while self.groupCount > 0 { self.pack(0) }
    self.packedHeader = nil
  }

  private mutating func endRun() {
    while self.runCount > 0, self.groupCount > 0 || self.runCount < 8 {
      self.pack(self.runValue)
      self.runCount -= 1
    }
    guard self.runCount > 0 else { return }
    self.packedHeader = nil
    self.output.appendVarint(UInt64(self.runCount) << 1)
    self.output.append(UInt8(truncatingIfNeeded: self.runValue))
    if self.bitWidth > 8 { self.output.append(UInt8(truncatingIfNeeded: self.runValue >> 8)) }
    self.runCount = 0
  }

  private mutating func pack(_ value: UInt32) {
    let shift = UInt64(self.groupCount * self.bitWidth)
    if shift < 64 {
      self.group |= UInt64(value) << shift
      if shift + UInt64(self.bitWidth) > 64 { self.groupTop |= UInt64(value) >> (64 - shift) }
    } else {
      self.groupTop |= UInt64(value) << (shift - 64)
    }
    self.groupCount += 1
    guard self.groupCount == 8 else { return }
    // A header of one byte counts at most 63 groups, above the lowest bit.
    if let header = self.packedHeader, self.output.base[header] < 126 {
      self.output.base[header] += 2
    } else {
      self.packedHeader = self.output.count
      // One group: 1 << 1, and the bit of packed runs.
      self.output.append(UInt8(3))
    }
    let target = UnsafeMutableRawPointer(self.output.reserve(16))
    target.storeBytes(of: self.group.littleEndian, as: UInt64.self)
    target.storeBytes(of: self.groupTop.littleEndian, toByteOffset: 8, as: UInt64.self)
    self.output.commit(self.bitWidth)
    (self.group, self.groupTop, self.groupCount) = (0, 0, 0)
  }
}
