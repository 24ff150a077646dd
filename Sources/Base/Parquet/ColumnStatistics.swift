internal import Bytes

/// The least and the greatest value of a column chunk, in the order of its type.
///
/// Bytes are compared by their first `prefixByteCount`, which is all that is stored of them.
struct ColumnStatistics: ~Copyable {
  /// Enough for IDs, and for most texts.
  static let prefixByteCount = 64

  private let physical: PhysicalType
  private let isText: Bool
  /// Two's complement.
  private let isSigned: Bool
  /// The first value decides, whatever the other members are.
  private var isEmpty = true
  private var least: Int64 = 0
  private var greatest: Int64 = 0
  private var leastNumber = 0.0
  private var greatestNumber = 0.0
  private var leastBytes = Bound()
  private var greatestBytes = Bound()

  private struct Bound: ~Copyable {
    var bytes = ByteBuffer(capacity: ColumnStatistics.prefixByteCount)
    /// `bytes` is the complete value.
    var isExact = true

    mutating func set(_ prefix: UnsafeRawBufferPointer, isExact: Bool) {
      self.bytes.removeAll()
      self.bytes.append(raw: prefix)
      self.isExact = isExact
    }
  }

  /// As the file has them.
  struct Bounds {
    var least: [UInt8]
    var isLeastExact = true
    /// nil if no text of the length is above all values.
    var greatest: [UInt8]?
    var isGreatestExact = true
  }

  init(_ type: ParquetType) {
    self.physical = type.physical
    self.isText = type.isText
    if case .decimal = type { self.isSigned = true } else { self.isSigned = false }
  }

  mutating func removeAll() { self.isEmpty = true }

  @inline(__always)
  mutating func note(_ value: Int64) {
    if self.isEmpty || value < self.least { self.least = value }
    if self.isEmpty || value > self.greatest { self.greatest = value }
    self.isEmpty = false
  }

  /// NaN has no place in the order.
  @inline(__always)
  mutating func note(_ value: Double) {
    if value.isNaN { return }
    if self.isEmpty || value < self.leastNumber { self.leastNumber = value }
    if self.isEmpty || value > self.greatestNumber { self.greatestNumber = value }
    self.isEmpty = false
  }

  mutating func note(_ value: UnsafeRawBufferPointer) {
    guard self.isSigned else { return self.noteUnsigned(value) }
    // The order of unsigned bytes, once the sign is the other way round.
    withUnsafeTemporaryAllocation(byteCount: value.count, alignment: 1) { copy in
      copy.copyMemory(from: value)
      copy[0] ^= 0x80
      self.noteUnsigned(UnsafeRawBufferPointer(copy))
    }
  }

  private mutating func noteUnsigned(_ value: UnsafeRawBufferPointer) {
    let prefix = UnsafeRawBufferPointer(rebasing: value.prefix(Self.prefixByteCount))
    let isExact = prefix.count == value.count
    if self.isEmpty {
      self.leastBytes.set(prefix, isExact: isExact)
      self.greatestBytes.set(prefix, isExact: isExact)
      self.isEmpty = false
      return
    }
    let toLeast = compare(prefix, self.leastBytes.bytes.raw)
    if toLeast < 0 {
      self.leastBytes.set(prefix, isExact: isExact)
    } else if toLeast == 0, isExact {
      self.leastBytes.isExact = true
    }
    let toGreatest = compare(prefix, self.greatestBytes.bytes.raw)
    if toGreatest > 0 {
      self.greatestBytes.set(prefix, isExact: isExact)
    } else if toGreatest == 0, !isExact {
      self.greatestBytes.isExact = false
    }
  }

  /// nil without a value that has a place in the order.
  var bounds: Bounds? {
    if self.isEmpty { return nil }
    switch self.physical {
    case .boolean:
      return Bounds(least: [UInt8(self.least)], greatest: [UInt8(self.greatest)])
    case .int32:
      return Bounds(
        least: littleEndian(Int32(truncatingIfNeeded: self.least)),
        greatest: littleEndian(Int32(truncatingIfNeeded: self.greatest)))
    case .int64:
      return Bounds(least: littleEndian(self.least), greatest: littleEndian(self.greatest))
    case .float:
      return Bounds(
        least: littleEndian(Float(self.least(of: self.leastNumber)).bitPattern),
        greatest: littleEndian(Float(self.greatest(of: self.greatestNumber)).bitPattern))
    case .double:
      return Bounds(
        least: littleEndian(self.least(of: self.leastNumber).bitPattern),
        greatest: littleEndian(self.greatest(of: self.greatestNumber).bitPattern))
    case .fixed:
      var least = Array(self.leastBytes.bytes.raw)
      var greatest = Array(self.greatestBytes.bytes.raw)
      if self.isSigned {
        least[0] ^= 0x80
        greatest[0] ^= 0x80
      }
      return Bounds(least: least, greatest: greatest)
    case .bytes:
      let least = self.prefix(self.leastBytes)
      let greatest = self.prefix(self.greatestBytes)
      return Bounds(
        least: least.bytes, isLeastExact: least.isExact,
        greatest: greatest.isExact ? greatest.bytes : self.successor(greatest.bytes),
        isGreatestExact: greatest.isExact)
    }
  }

  // Either zero may be in the chunk (parquet.thrift, `ColumnOrder`).
  private func least(of value: Double) -> Double { value == 0 ? -0.0 : value }
  private func greatest(of value: Double) -> Double { value == 0 ? 0.0 : value }

  /// What was stored, without a part of a character at its end.
  private func prefix(_ bound: borrowing Bound) -> (bytes: [UInt8], isExact: Bool) {
    let bytes = Array(bound.bytes.raw)
    guard !bound.isExact, self.isText else { return (bytes, bound.isExact) }
    // The last character begins at the last byte that does not continue one.
    guard let last = bytes.lastIndex(where: { $0 & 0xC0 != 0x80 }) else { return (bytes, false) }
    let isComplete = String(validating: bytes[last...], as: UTF8.self) != nil
    return (isComplete ? bytes : Array(bytes[..<last]), false)
  }

  /// The first text, or run of bytes, of at most this length after all that begin with `prefix`.
  private func successor(_ prefix: [UInt8]) -> [UInt8]? {
    guard self.isText else {
      guard let last = prefix.lastIndex(where: { $0 < 0xFF }) else { return nil }
      return prefix[..<last] + [prefix[last] + 1]
    }
    var scalars = Array(String(decoding: prefix, as: UTF8.self).unicodeScalars)
    while let last = scalars.popLast() {
      // U+DFFF is followed by U+E000, and U+D7FF by it as well; the last has none.
      let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
      guard let scalar = Unicode.Scalar(next) else { continue }
      // One that is longer would do, too; but the length is a limit.
      guard String(last).utf8.count == String(scalar).utf8.count else { continue }
      scalars.append(scalar)
      var text = String.UnicodeScalarView()
      text.append(contentsOf: scalars)
      return Array(String(text).utf8)
    }
    return nil
  }
}

private func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
  withUnsafeBytes(of: value.littleEndian) { Array($0) }
}
