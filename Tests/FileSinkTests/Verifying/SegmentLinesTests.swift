import DurableFiles
import Foundation
import TestSupport
import Testing

@testable import FileSink

/// Files as they come back from disk.
@Suite("Lines of a file") struct SegmentLinesTests {
  private let directory = try! TemporaryDirectory()  // A machine without /tmp runs no tests.

  private var path: String { "\(self.directory.path)/data.zst" }

  /// One frame, as runs write it.
  static func frame(_ text: String) throws -> [UInt8] {
    var compressor = ZstdCompressor(level: 1, window: .medium)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ZstdCompressor.outputByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var frame: [UInt8] = []
    try Array(text.utf8).withUnsafeBufferPointer { text in
      try compressor.compress(text, flushing: true, through: buffer) { frame += $0 }
    }
    return frame + ZstdCompressor.endOfFrame
  }

  private func lines(
    of content: [UInt8], _ extent: SegmentLines.Extent = .whole
  ) throws -> [String] {
    try Data(content).write(to: URL(fileURLWithPath: self.path))
    var lines: [String] = []
    try SegmentLines(path: self.path, extent: extent, fileSystem: SystemFileSystem()).read {
      line, number in
      lines.append(String(decoding: line, as: UTF8.self))
      #expect(number == lines.count)
    }
    return lines
  }

  @Test("Lines of all lengths are returned complete across the pieces that are read")
  func whole() throws {
    let expected = (0..<400).map { String(repeating: "x", count: $0 * 13 % 4001) + "\($0)" }
    let text = expected.map { $0 + "\n" }.joined()
    #expect(try self.lines(of: Self.frame(text)) == expected)
  }

  @Test("A file that is truncated anywhere is refused")
  func truncation() throws {
    let frame = try Self.frame("{\"a\":1}\n{\"a\":2}\n")
    for count in 0..<frame.count {
      #expect(throws: SegmentLines.Fault.self, "\(count)") {
        try self.lines(of: Array(frame[..<count]))
      }
    }
  }

  @Test("Bytes after the frame, or a file without a frame, are refused")
  func hostile() throws {
    let frame = try Self.frame("{}\n")
    for content in [frame + [0], frame + frame, Array("{}\n".utf8), try Self.frame("{}")] {
      #expect(throws: SegmentLines.Fault.self) { try self.lines(of: content) }
    }
  }

  @Test("Only the durable part of a file in progress is read")
  func inProgress() throws {
    let frame = try Self.frame("a\nb\n")
    let durable = frame.count - ZstdCompressor.endOfFrame.count
    let content = Array(frame[..<durable]) + [9, 9, 9, 9]
    #expect(try self.lines(of: content, .first(durable)) == ["a", "b"])
    #expect(throws: SegmentLines.Fault.self) { try self.lines(of: content, .first(durable + 9)) }
  }

  @Test("An endless line does not fill the memory")
  func endless() throws {
    let text = String(repeating: "x", count: SegmentLines.maxLineByteCount + 1)
    let fault = try #require(throws: SegmentLines.Fault.self) {
      try self.lines(of: Self.frame(text + "\n"))
    }
    #expect(fault.line == 1)
  }
}
