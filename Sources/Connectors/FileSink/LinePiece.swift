internal import Bytes
internal import DurableFiles

/// Encoded lines of one or more files in progress, in the order in which they were encoded. Memory
/// is reused.
final class LinePiece {
  /// The number of bytes at which a piece is written.
  static let byteCount = 1 << 16

  @exclusivity(unchecked) var lines = ByteBuffer(capacity: LinePiece.byteCount * 2)
  @exclusivity(unchecked) private var parts: [(writer: SegmentWriter, end: Int)] = []

  var isEmpty: Bool { self.parts.isEmpty }

  /// The lines since the last call are for a file.
  ///
  /// - Returns: the number of their bytes.
  func end(for writer: SegmentWriter) -> Int {
    let start = self.parts.last?.end ?? 0
    if let last = self.parts.last, last.writer === writer {
      self.parts[self.parts.count - 1].end = self.lines.count
    } else {
      self.parts.append((writer, self.lines.count))
    }
    return self.lines.count - start
  }

  /// Compresses the lines into their files; they stay in the piece. `buffer` is scratch.
  func write(through buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) {
    var start = 0
    for (writer, end) in self.parts {
      try writer.write(
        UnsafeBufferPointer(rebasing: self.lines.bytes[start..<end]), through: buffer)
      start = end
    }
  }

  func removeAll() {
    self.parts.removeAll(keepingCapacity: true)
    // A line of many megabytes is rare.
    if self.lines.capacity > Self.byteCount * 8 {
      self.lines = ByteBuffer(capacity: Self.byteCount * 2)
    } else {
      self.lines.removeAll()
    }
  }
}
