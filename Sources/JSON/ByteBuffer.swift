/// A growable run of bytes that output is written into: JSON text, NDJSON lines, files.
///
/// Owned by one place at a time and passed `inout`. `removeAll` keeps the memory, so a loop that
/// fills and empties it allocates only until the largest content has been seen.
public struct ByteBuffer: ~Copyable {
  public private(set) var base: UnsafeMutablePointer<UInt8>
  public private(set) var capacity: Int
  public private(set) var count = 0

  /// - Parameter capacity: bytes reserved at once, at least 16.
  public init(capacity: Int = 4096) {
    self.capacity = max(capacity, 16)
    self.base = .allocate(capacity: self.capacity)
  }

  deinit { self.base.deallocate() }

  /// The bytes written so far; valid until the next call that changes the buffer.
  public var bytes: UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.base, count: self.count)
  }

  /// Makes room for `additional` bytes and returns the place where they go. What the caller
  /// writes there counts only after `commit`.
  @inline(__always)
  public mutating func reserve(_ additional: Int) -> UnsafeMutablePointer<UInt8> {
    if self.capacity - self.count < additional { self.grow(additional) }
    return self.base + self.count
  }

  /// Counts `written` bytes, at most what was reserved, as content.
  @inline(__always)
  public mutating func commit(_ written: Int) { self.count += written }

  @inline(__always)
  public mutating func append(_ byte: UInt8) {
    self.reserve(1).pointee = byte
    self.count += 1
  }

  @inline(__always)
  public mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    self.reserve(bytes.count).update(from: start, count: bytes.count)
    self.count += bytes.count
  }

  public mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { self.append($0) }
  }

  public mutating func append(utf8 text: StaticString) {
    self.append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  public mutating func append(utf8 text: String) {
    var text = text
    text.withUTF8 { self.append($0) }
  }

  /// Forgets everything after the first `count` bytes.
  public mutating func truncate(to count: Int) {
    precondition(count <= self.count, "truncate(to: \(count)) of \(self.count) bytes")
    self.count = count
  }

  public mutating func removeAll() { self.count = 0 }

  @inline(never)
  private mutating func grow(_ additional: Int) {
    let capacity = max(self.capacity * 2, self.count + additional)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: self.base, count: self.count)
    self.base.deallocate()
    self.base = grown
    self.capacity = capacity
  }
}
