internal import Glibc

/// Encoded events, one after the other, in a nameless file that is mapped into memory: a million events cost
/// page cache, not heap.
///
/// Confined to one thread at a time by its owner.
final class EventStore {
  static let segmentSize = 64 << 20

  private let descriptor: Int32
  private var segments: [UnsafeMutableRawPointer] = []
  /// In the last segment.
  private var used = EventStore.segmentSize

  /// - Parameter directory: where the nameless file takes its space.
  init(directory: String) throws {
    var path = Array("\(directory)/pubsub-simulator-XXXXXX".utf8CString)
    self.descriptor = mkstemp(&path)
    if self.descriptor < 0 { throw SimulatorError.system("mkstemp in \(directory)") }
    unlink(path)
  }

  deinit {
    for segment in self.segments { munmap(segment, Self.segmentSize) }
    close(self.descriptor)
  }

  /// Returns the offset of the bytes. They must fit into a segment.
  func append(_ bytes: [UInt8]) throws -> UInt64 {
    precondition(bytes.count <= Self.segmentSize, "an event is larger than a segment")
    if self.used + bytes.count > Self.segmentSize { try self.addSegment() }
    let offset = (self.segments.count - 1) * Self.segmentSize + self.used
    bytes.withUnsafeBytes { source in
      guard let base = source.baseAddress else { return }
      self.segments[self.segments.count - 1].advanced(by: self.used)
        .copyMemory(from: base, byteCount: source.count)
    }
    self.used += bytes.count
    return UInt64(offset)
  }

  /// The bytes do not move while the store exists.
  func bytes(at offset: UInt64, count: Int) -> UnsafeRawBufferPointer {
    let segment = self.segments[Int(offset) / Self.segmentSize]
    return UnsafeRawBufferPointer(
      start: segment.advanced(by: Int(offset) % Self.segmentSize), count: count)
  }

  private func addSegment() throws {
    let start = self.segments.count * Self.segmentSize
    guard ftruncate(self.descriptor, off_t(start + Self.segmentSize)) == 0 else {
      throw SimulatorError.system("ftruncate of the event store")
    }
    guard
      let address = mmap(
        nil, Self.segmentSize, PROT_READ | PROT_WRITE, MAP_SHARED, self.descriptor, off_t(start)),
      address != MAP_FAILED
    else { throw SimulatorError.system("mmap of the event store") }
    self.segments.append(address)
    self.used = 0
  }
}
