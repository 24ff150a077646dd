/// A growable run of bytes that output is written into: JSON text, NDJSON lines, files.
///
/// Owned by one place at a time and passed `inout`. `removeAll` keeps the memory, so a loop that
/// fills and empties it allocates only until the largest content has been seen.
@usableFromInline package struct ByteBuffer: ~Copyable {
  // The storage of the hot members is visible to other modules, so that they are inlined there. As
  // calls they took a third of the time of encoding a row.
  @usableFromInline var start: UnsafeMutablePointer<UInt8>
  @usableFromInline var room: Int
  @usableFromInline var used = 0

  @inlinable package var base: UnsafeMutablePointer<UInt8> { self.start }
  /// Bytes that are allocated.
  @inlinable package var capacity: Int { self.room }
  /// Bytes written so far.
  @inlinable package var count: Int { self.used }

  /// - Parameter capacity: bytes reserved at once, at least 16.
  package init(capacity: Int = 4096) {
    self.room = max(capacity, 16)
    self.start = .allocate(capacity: self.room)
  }

  deinit { self.start.deallocate() }

  /// The bytes written so far; valid until the next call that changes the buffer.
  @inlinable
  package var bytes: UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.base, count: self.count)
  }

  /// Makes room for `additional` bytes and returns the place where they go. What the caller
  /// writes there counts only after `commit`.
  @inlinable @inline(__always)
  package mutating func reserve(_ additional: Int) -> UnsafeMutablePointer<UInt8> {
    if self.room &- self.used < additional { self.grow(additional) }
    return self.start + self.used
  }

  /// Counts `written` bytes, at most what was reserved, as content.
  @inlinable @inline(__always)
  package mutating func commit(_ written: Int) { self.used &+= written }

  @inlinable @inline(__always)
  package mutating func append(_ byte: UInt8) {
    self.reserve(1).pointee = byte
    self.used &+= 1
  }

  @inlinable @inline(__always)
  package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    self.reserve(bytes.count).update(from: start, count: bytes.count)
    self.used &+= bytes.count
  }

  package mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { self.append($0) }
  }

  @inlinable
  package mutating func append(utf8 text: StaticString) {
    self.append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  @_disfavoredOverload  // so that a literal is a StaticString
  package mutating func append(utf8 text: String) {
    var text = text
    text.withUTF8 { self.append($0) }
  }

  /// Forgets everything after the first `count` bytes.
  package mutating func truncate(to count: Int) {
    precondition(count <= self.count, "truncate(to: \(count)) of \(self.count) bytes")
    self.used = count
  }

  package mutating func removeAll() { self.used = 0 }

  @inline(never) @usableFromInline
  mutating func grow(_ additional: Int) {
    let capacity = max(self.room * 2, self.used + additional)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: self.start, count: self.used)
    self.start.deallocate()
    self.start = grown
    self.room = capacity
  }
}
