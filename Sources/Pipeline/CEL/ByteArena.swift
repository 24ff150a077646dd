/// Memory for texts, given back all at once.
///
/// What it returns stays where it is until `removeAll` or the arena's end. Not `Sendable`.
package final class ByteArena {
  private var chunks: [UnsafeMutableBufferPointer<UInt8>] = []
  /// Bytes taken from the last chunk.
  private var used = 0

  package init() {}

  deinit {
    for chunk in self.chunks { chunk.deallocate() }
  }

  func reserve(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    if let base = self.chunks.last?.baseAddress,
      self.chunks[self.chunks.count - 1].count - self.used >= count
    {
      defer { self.used += count }
      return base + self.used
    }
    let chunk = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(count, 1024))
    self.chunks.append(chunk)
    self.used = count
    guard let base = chunk.baseAddress else {
      preconditionFailure("a chunk of \(chunk.count) bytes has no address")
    }
    return base
  }

  /// Copies bytes.
  package func store(_ bytes: UnsafeBufferPointer<UInt8>) -> BorrowedBytes {
    guard let start = bytes.baseAddress, bytes.count > 0 else {
      return BorrowedBytes(start: nil, count: 0)
    }
    let place = self.reserve(bytes.count)
    place.update(from: start, count: bytes.count)
    return BorrowedBytes(start: place, count: bytes.count)
  }

  package func store(_ bytes: [UInt8]) -> BorrowedBytes {
    bytes.withUnsafeBufferPointer { self.store($0) }
  }

  package func store(_ text: String) -> BorrowedBytes {
    var text = text
    return text.withUTF8 { self.store($0) }
  }

  /// Forgets everything; the first piece of memory is kept.
  package func removeAll() {
    self.used = 0
    guard self.chunks.count > 1 else { return }
    for chunk in self.chunks.dropFirst() { chunk.deallocate() }
    self.chunks.removeSubrange(1...)
  }
}
