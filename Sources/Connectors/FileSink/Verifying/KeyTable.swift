/// Numbers for keys of lines, found without allocation.
struct KeyTable {
  private var keys: [[UInt8]] = []
  /// Open addressing; -1 is free. The count is a power of two, at least twice the number of keys.
  private var slots: [Int32] = Array(repeating: -1, count: 64)

  var count: Int { self.keys.count }

  subscript(index: Int) -> [UInt8] { self.keys[index] }

  /// The number of the key, which gets the next one if it has none.
  @discardableResult
  mutating func insert(_ key: [UInt8]) -> Int {
    if let known = key.withUnsafeBufferPointer({ self.index(of: $0) }) { return known }
    self.keys.append(key)
    if self.keys.count * 2 > self.slots.count {
      self.slots = Array(repeating: -1, count: self.slots.count * 2)
      for index in self.keys.indices { self.place(index) }
    } else {
      self.place(self.keys.count - 1)
    }
    return self.keys.count - 1
  }

  func index(of key: UnsafeBufferPointer<UInt8>) -> Int? {
    var slot = Self.hash(key) & (self.slots.count - 1)
    while case let index = Int(self.slots[slot]), index >= 0 {
      if self.keys[index].count == key.count, self.keys[index].elementsEqual(key) { return index }
      slot = (slot + 1) & (self.slots.count - 1)
    }
    return nil
  }

  private mutating func place(_ index: Int) {
    var slot = self.keys[index].withUnsafeBufferPointer { Self.hash($0) } & (self.slots.count - 1)
    while self.slots[slot] >= 0 { slot = (slot + 1) & (self.slots.count - 1) }
    self.slots[slot] = Int32(index)
  }

  /// FNV-1a. The keys in the table are those of a layout, so nobody gains from collisions.
  private static func hash(_ key: UnsafeBufferPointer<UInt8>) -> Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return Int(truncatingIfNeeded: hash ^ hash >> 32)
  }
}
