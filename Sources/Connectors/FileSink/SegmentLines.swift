internal import DurableFiles

/// Reads the lines of a sink's file in pieces. The content is not trusted, because the file may
/// have been truncated, replaced or written by others.
struct SegmentLines {
  /// How much of the file is read.
  enum Extent: Equatable {
    /// A finished file: one frame, and nothing after it.
    case whole
    /// The first bytes of a file in progress, up to the end of a block; it may have several frames.
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
    let cursor = try Cursor(self)
    while try cursor.next(hashing: hash, body) {}
  }

  /// Reads the lines piece by piece, with other work in between.
  final class Cursor {
    private let extent: Extent
    private let file: OpenFile
    private let input = UnsafeMutableRawBufferPointer.allocate(
      byteCount: SegmentLines.pieceByteCount, alignment: 16)
    private let output = UnsafeMutableRawBufferPointer.allocate(
      byteCount: SegmentLines.pieceByteCount, alignment: 16)
    private var decompressor = ZstdDecompressor()
    private var lines = LineSplitter()
    private var offset = 0
    /// What was read and is not yet decompressed; in `input`.
    private var rest = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The decompressor holds no more text of what it was given.
    private var isDrained = true
    private var hasEnded = false

    init(_ lines: SegmentLines) throws {
      self.extent = lines.extent
      self.file = try OpenFile(lines.path, [], on: lines.fileSystem)
    }

    deinit {
      self.input.deallocate()
      self.output.deallocate()
    }

    /// Calls `body` with each line that ends in the next piece of text, which has at most 128 KiB.
    ///
    /// - Returns: false after the last one.
    /// - Throws: `Fault`, `FileSystemError`, and what `body` throws.
    func next(
      hashing hash: ((UnsafeRawBufferPointer) -> Void)? = nil,
      _ body: (UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> Bool {
      if self.rest.isEmpty, self.isDrained {
        self.rest = try self.readPiece()
        if self.rest.isEmpty {
          try self.checkEnd()
          return false
        }
        hash?(self.rest)
      }
      if self.hasEnded, self.extent == .whole {
        guard self.rest.isEmpty else {
          throw Fault(line: 0, reason: "there is data after the end of its zstd frame")
        }
        self.isDrained = true
        return true
      }
      let step: ZstdDecompressor.Step
      do throws(ZstdDecompressor.Fault) {
        step = try self.decompressor.decompress(self.rest, into: self.output)
      } catch {
        throw Fault(line: self.lines.count, reason: "it is not a zstd frame: \(error.reason)")
      }
      self.rest = UnsafeRawBufferPointer(rebasing: self.rest[step.consumed...])
      self.hasEnded = step.isFrameEnd
      self.isDrained = step.isFrameEnd || step.produced < self.output.count
      try self.lines.take(UnsafeRawBufferPointer(rebasing: self.output[..<step.produced]), body)
      return true
    }

    private func readPiece() throws -> UnsafeRawBufferPointer {
      let wanted =
        switch self.extent {
        case .whole: self.input.count
        case .first(let byteCount): min(self.input.count, byteCount - self.offset)
        }
      let count = try self.file.read(
        into: UnsafeMutableRawBufferPointer(rebasing: self.input[..<wanted]), at: self.offset)
      self.offset += count
      return UnsafeRawBufferPointer(rebasing: self.input[..<count])
    }

    private func checkEnd() throws(Fault) {
      if case .first(let byteCount) = self.extent, self.offset < byteCount {
        throw Fault(reason: "it has \(self.offset) bytes, the checkpoint says \(byteCount)")
      }
      guard self.hasEnded || self.extent != .whole else {
        throw Fault(line: self.lines.count, reason: "its zstd frame is incomplete")
      }
      guard self.lines.isAtStart else {
        throw Fault(line: self.lines.count + 1, reason: "the line has no end")
      }
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
