internal import Bytes

/// The different values of a column chunk, numbered in the order in which they came.
struct ValueDictionary: ~Copyable {
  /// As a dictionary page has them: those of variable length follow their length.
  private(set) var values = ByteBuffer(capacity: 64)
  private(set) var count = 0
  private let physical: PhysicalType
  /// Where each value of variable length begins, after its length.
  private var starts: [UInt32] = []
  /// Open addressing, one more than the number of the value; 0 is free.
  private var slots: [UInt32] = []
  private var mask = 0

  /// Indices have at most 16 bits.
  private static let maxCount = 1 << 16
  private static let maxByteCount = 1 << 18
  /// Values that collide on purpose end the dictionary instead of taking time.
  static let maxProbeCount = 64

  init(_ physical: PhysicalType) { self.physical = physical }

  enum Index {
    case known(UInt32)
    case new(UInt32)
    /// The value is not in the dictionary, which takes no more.
    case full
  }

  mutating func removeAll() {
    self.values.removeAll()
    self.starts.removeAll(keepingCapacity: true)
    for index in self.slots.indices { self.slots[index] = 0 }
    self.count = 0
  }

  /// - Parameter word: the bits of a value of 4 or 8 bytes.
  mutating func index(of word: UInt64) -> Index {
    let isWide = self.physical.byteCount == 8
    var slot = Int(truncatingIfNeeded: Self.mix(word)) & self.mask
    var probeCount = 0
    while !self.slots.isEmpty {
      let entry = self.slots[slot]
      if entry == 0 { break }
      let known = self.values.raw
      let place = Int(entry - 1) * (isWide ? 8 : 4)
      let value =
        isWide
        ? known.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        : UInt64(known.loadUnaligned(fromByteOffset: place, as: UInt32.self))
      if value == (isWide ? word.littleEndian : UInt64(UInt32(word).littleEndian)) {
        return .known(entry - 1)
      }
      probeCount += 1
      if probeCount == Self.maxProbeCount { return .full }
      slot = (slot + 1) & self.mask
    }
    guard self.hasRoom(8) else { return .full }
    if isWide {
      self.values.append(littleEndian: word)
    } else {
      self.values.append(littleEndian: UInt32(word))
    }
    return self.insert(at: slot)
  }

  mutating func index(of bytes: UnsafeRawBufferPointer) -> Index {
    var slot = Int(truncatingIfNeeded: Self.hash(bytes)) & self.mask
    var probeCount = 0
    while !self.slots.isEmpty {
      let entry = self.slots[slot]
      if entry == 0 { break }
      let known = self.value(Int(entry - 1))
      if known.count == bytes.count, isEqual(known, bytes) { return .known(entry - 1) }
      probeCount += 1
      if probeCount == Self.maxProbeCount { return .full }
      slot = (slot + 1) & self.mask
    }
    guard self.hasRoom(bytes.count + 4) else { return .full }
    if self.physical == .bytes {
      self.values.append(littleEndian: UInt32(bytes.count))
      self.starts.append(UInt32(self.values.count))
    }
    self.values.append(raw: bytes)
    return self.insert(at: slot)
  }

  /// The stored form of a value of variable or fixed length, without its length.
  func value(_ index: Int) -> UnsafeRawBufferPointer {
    let known = self.values.raw
    guard self.physical == .bytes else {
      let byteCount = self.physical.byteCount
      return UnsafeRawBufferPointer(
        rebasing: known[index * byteCount..<(index + 1) * byteCount])
    }
    let start = Int(self.starts[index])
    let length = known.loadUnaligned(fromByteOffset: start - 4, as: UInt32.self)
    return UnsafeRawBufferPointer(
      rebasing: known[start..<start + Int(UInt32(littleEndian: length))])
  }

  private func hasRoom(_ byteCount: Int) -> Bool {
    self.count < Self.maxCount && self.values.count + byteCount <= Self.maxByteCount
  }

  private mutating func insert(at slot: Int) -> Index {
    self.count += 1
    // At most half of the slots are taken.
    if self.count * 2 > self.slots.count {
      self.grow()
    } else {
      self.slots[slot] = UInt32(self.count)
    }
    return .new(UInt32(self.count - 1))
  }

  private mutating func grow() {
    let slotCount = max(self.slots.count * 4, 64)
    self.slots = [UInt32](repeating: 0, count: slotCount)
    self.mask = slotCount - 1
    for index in 0..<self.count {
      let value = self.value(index)
      let hash =
        switch self.physical {
        case .int64, .double:
          Self.mix(UInt64(littleEndian: value.loadUnaligned(as: UInt64.self)))
        case .int32, .float:
          Self.mix(UInt64(UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))))
        case .bytes, .fixed, .boolean: Self.hash(value)
        }
      var slot = Int(truncatingIfNeeded: hash) & self.mask
      while self.slots[slot] != 0 { slot = (slot + 1) & self.mask }
      self.slots[slot] = UInt32(index + 1)
    }
  }

  @inline(__always)
  static func mix(_ word: UInt64) -> UInt64 {
    let product = word.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    return product.high ^ product.low
  }

  private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash = UInt64(bytes.count) &* 0xA076_1D64_78BD_642F
    var offset = 0
    while offset + 8 <= bytes.count {
      hash = Self.mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &+ 1
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset += 1
    }
    return Self.mix(hash ^ rest ^ 0xE703_7ED1_A0B4_28DB)
  }
}
