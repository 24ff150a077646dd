internal import Glibc

/// Bytes that are appended at the end and discarded at the start.
struct CSVBuffer: ~Copyable {
  private(set) var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0
  /// The number of bytes discarded so far.
  private(set) var discarded = 0

  init() {
    self.capacity = 1 << 16
    self.start = .allocate(capacity: self.capacity)
  }

  deinit { self.start.deallocate() }

  /// Appends bytes; those before `kept` may be discarded.
  ///
  /// - Returns: the number of bytes discarded.
  mutating func append(_ bytes: UnsafeRawBufferPointer, keepingFrom kept: Int) -> Int {
    let left = self.count - kept
    var moved = 0
    if self.count + bytes.count > self.capacity {
      moved = kept
      // Moving within the buffer is worth it only if it frees more than is moved.
      if left + bytes.count <= self.capacity, left <= kept {
        memmove(self.start, self.start + kept, left)
      } else {
        let capacity = max(left + bytes.count, self.capacity + self.capacity / 2)
        let start = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        memcpy(start, self.start + kept, left)
        self.start.deallocate()
        self.start = start
        self.capacity = capacity
      }
      self.count = left
      self.discarded += moved
    }
    // `bytes` is not empty, so it has an address.
    memcpy(self.start + self.count, bytes.baseAddress!, bytes.count)
    self.count += bytes.count
    return moved
  }
}
