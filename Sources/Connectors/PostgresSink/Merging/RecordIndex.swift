/// Finds the delta of a record ID, by open addressing. The IDs stay in the bytes of the rows or of
/// the fold, so the caller compares them.
struct RecordIndex {
  /// Index of the delta + 1; 0 if there is none.
  private var slots: [Int32] = []
  /// A random seed per index, so that nobody can choose record IDs that collide.
  private let seed = UInt64.random(in: 0 ... .max)

  /// Forgets all deltas, keeping the memory.
  mutating func removeAll() {
    self.slots.withUnsafeMutableBufferPointer { $0.update(repeating: 0) }
  }

  /// Forgets all deltas and releases the memory.
  mutating func removeAllAndMemory() { self.slots = [] }

  /// The delta of a record ID; nil if there is none.
  ///
  /// - Parameter hasID: returns whether a delta has the ID.
  @inline(__always)
  func delta(of id: some Sequence<UInt8>, where hasID: (_ delta: Int) -> Bool) -> Int? {
    guard !self.slots.isEmpty else { return nil }
    var slot = self.firstSlot(id)
    while self.slots[slot] != 0 {
      let delta = Int(self.slots[slot]) - 1
      if hasID(delta) { return delta }
      slot = (slot + 1) & (self.slots.count - 1)
    }
    return nil
  }

  /// - Parameter id: one that has no delta yet. There must be room for it (`needsRoom`).
  mutating func insert(_ delta: Int, id: some Sequence<UInt8>) {
    var slot = self.firstSlot(id)
    while self.slots[slot] != 0 { slot = (slot + 1) & (self.slots.count - 1) }
    self.slots[slot] = Int32(delta + 1)
  }

  /// At most half of the slots are ever taken.
  func needsRoom(for count: Int) -> Bool { count * 2 > self.slots.count }

  /// Makes room for `count` deltas and empties the index.
  mutating func removeAllReserving(_ count: Int) {
    var capacity = 64
    while capacity < count * 2 { capacity *= 2 }
    self.slots = Array(repeating: 0, count: capacity)
  }

  private func firstSlot(_ id: some Sequence<UInt8>) -> Int {
    var hash = self.seed
    for byte in id { hash = (hash ^ UInt64(byte)) &* 0x9E37_79B9_7F4A_7C15 }
    hash ^= hash >> 32
    return Int(truncatingIfNeeded: hash) & (self.slots.count - 1)
  }
}
