internal import DurableFiles

/// Reads the lines of a sink's file in pieces. The content is not trusted, because the file may
/// have been truncated, replaced or written by others.
struct SegmentLines {
  /// How much of the file is read.
  enum Extent: Equatable {
    /// A finished file: one frame, and nothing after it.
    case whole
    /// The first bytes of a file in progress, up to the end of a block.
    case first(Int)
  }

  /// Absolute.
  let path: String
  let extent: Extent
  let fileSystem: any FileSystem

  /// A record with all the long texts that Salesforce permits takes less than half of this.
  static let maxLineByteCount = 32 << 20
  private static let pieceByteCount = 1 << 17

  /// Why the content is refused.
  struct Fault: Error {
    /// The line's number, from 1; 0 if the fault is not in a line.
    var line = 0
    var reason: String
  }

  /// Calls `body` with each line, without its line feed, and its number from 1.
  ///
  /// - Parameter hash: receives the bytes of the file.
  /// - Throws: `Fault`, `FileSystemError`, and what `body` throws.
  func read(
    hashing hash: ((UnsafeRawBufferPointer) -> Void)? = nil,
    _ body: (UnsafeBufferPointer<UInt8>, Int) throws -> Void
  ) throws {
    let file = try OpenFile(self.path, [], on: self.fileSystem)
    let input = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceByteCount, alignment: 16)
    defer { input.deallocate() }
    let output = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceByteCount, alignment: 16)
    defer { output.deallocate() }
    var decompressor = ZstdDecompressor()
    var lines = LineSplitter()
    var offset = 0
    var hasEnded = false
    while true {
      let wanted: Int
      switch self.extent {
      case .whole: wanted = input.count
      case .first(let byteCount): wanted = min(input.count, byteCount - offset)
      }
      let piece = UnsafeMutableRawBufferPointer(rebasing: input[..<wanted])
      let count = try file.read(into: piece, at: offset)
      if count == 0 { break }
      offset += count
      var rest = UnsafeRawBufferPointer(rebasing: piece[..<count])
      hash?(rest)
      while true {
        if hasEnded {
          guard rest.isEmpty else {
            throw Fault(line: 0, reason: "there is something behind the end of its zstd frame")
          }
          break
        }
        let step: ZstdDecompressor.Step
        do throws(ZstdDecompressor.Fault) {
          step = try decompressor.decompress(rest, into: output)
        } catch {
          throw Fault(line: lines.count, reason: "it is not a zstd frame: \(error.reason)")
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[step.consumed...])
        try lines.take(UnsafeRawBufferPointer(rebasing: output[..<step.produced]), body)
        hasEnded = step.isFrameEnd
        if rest.isEmpty, step.produced < output.count { break }
      }
    }
    if case .first(let byteCount) = self.extent, offset < byteCount {
      throw Fault(reason: "it has \(offset) bytes, the checkpoint says \(byteCount)")
    }
    guard hasEnded || self.extent != .whole else {
      throw Fault(line: lines.count, reason: "its zstd frame is incomplete")
    }
    guard lines.isAtStart else {
      throw Fault(line: lines.count + 1, reason: "the line has no end")
    }
  }
}

/// Splits text into lines.
private struct LineSplitter {
  /// The number of complete lines so far.
  private(set) var count = 0
  /// The beginning of a line that is not yet complete.
  private var rest: [UInt8] = []

  var isAtStart: Bool { self.rest.isEmpty }

  mutating func take(
    _ text: UnsafeRawBufferPointer, _ body: (UnsafeBufferPointer<UInt8>, Int) throws -> Void
  ) throws {
    try text.withMemoryRebound(to: UInt8.self) { text in
      var start = 0
      while let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) {
        self.count += 1
        let line = UnsafeBufferPointer(rebasing: text[start..<end])
        if self.rest.isEmpty {
          try self.check(line.count)
          try body(line, self.count)
        } else {
          self.rest.append(contentsOf: line)
          try self.check(self.rest.count)
          try self.rest.withUnsafeBufferPointer { try body($0, self.count) }
          self.rest.removeAll(keepingCapacity: true)
        }
        start = end + 1
      }
      self.rest.append(contentsOf: text[start...])
      if self.rest.count > SegmentLines.maxLineByteCount { self.count += 1 }
      try self.check(self.rest.count)
    }
  }

  private func check(_ byteCount: Int) throws {
    guard byteCount <= SegmentLines.maxLineByteCount else {
      throw SegmentLines.Fault(
        line: self.count,
        reason: "the line has more than \(SegmentLines.maxLineByteCount) bytes")
    }
  }
}
