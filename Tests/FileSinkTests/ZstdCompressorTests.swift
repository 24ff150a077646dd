import DurableFiles
import Pipeline
import Testing

@testable import FileSink

/// Frames made with and without the library's own copy of the input.
@Suite("Zstd compressor")
struct ZstdCompressorTests {
  /// A frame, and the lengths after each flush.
  private func frame(
    _ input: [UInt8], pieces: [Int], level: Int, window: ZstdCompressor.Window, copiesInput: Bool
  ) throws -> (bytes: [UInt8], flushes: [Int]) {
    var compressor = ZstdCompressor(level: level, window: window, copiesInput: copiesInput)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ZstdCompressor.outputByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var (frame, flushes, offset, number) = ([UInt8](), [Int](), 0, 0)
    while offset < input.count {
      let count = min(pieces[number % pieces.count], input.count - offset)
      try input[offset..<offset + count].withUnsafeBufferPointer { piece in
        try compressor.compress(piece, flushing: number % 7 == 6, through: buffer) { frame += $0 }
      }
      if number % 7 == 6 { flushes.append(frame.count) }
      (offset, number) = (offset + count, number + 1)
    }
    try compressor.compress(
      UnsafeBufferPointer(start: nil, count: 0), flushing: true, through: buffer
    ) { frame += $0 }
    return (frame, flushes)
  }

  /// Lines that repeat earlier ones, near and far, and bytes that cannot be compressed.
  private func text(seed: UInt64, count: Int) -> [UInt8] {
    var random = seed
    func next(_ bound: Int) -> Int {
      random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(random >> 33) % bound
    }
    var bytes: [UInt8] = []
    while bytes.count < count {
      switch next(8) {
      case 0: for _ in 0..<next(4000) { bytes.append(UInt8(next(256))) }
      case 1...4 where bytes.count > 1000:
        let start = max(0, bytes.count - 1 - next(600_000))
        bytes += Array(bytes[start..<min(start + next(900), bytes.count)])
      default:
        bytes += Array("{\"Id\":\"006\(next(100_000_000))\",\"Amount\":\(next(1000)).5}\n".utf8)
      }
    }
    return bytes
  }

  @Test(
    "A frame has its input whichever interface of the library makes it, in the same size",
    arguments: [
      (1, .large), (1, .medium), (1, .smallest), (3, .large), (9, .small), (19, .large),
    ] as [(Int, ZstdCompressor.Window)])
  func interfaces(level: Int, window: ZstdCompressor.Window) throws {
    // Several times around the ring.
    let input = self.text(seed: UInt64(level), count: level > 9 ? 2 << 20 : 5 << 20)
    for pieces in [[1 << 16], [3, 70_000, 1 << 17, 999, 400_000]] {
      let frames = try [true, false].map {
        try self.frame(input, pieces: pieces, level: level, window: window, copiesInput: $0)
      }
      for frame in frames {
        #expect(
          try Decompression.content(of: frame.bytes + ZstdCompressor.endOfFrame) == input)
      }
      let sizes = frames.map { Double($0.bytes.count) }
      #expect(sizes[1] / sizes[0] < 1.005)
      #expect(frames[0].flushes.count == frames[1].flushes.count)
    }
  }

  @Test("What was flushed can be read, although the frame goes on")
  func flushes() throws {
    let input = self.text(seed: 5, count: 2 << 20)
    let pieces = [40_000, 7, 100_000]
    for window in [ZstdCompressor.Window.smallest, .large] {
      let frame = try self.frame(
        input, pieces: pieces, level: 1, window: window, copiesInput: false)
      var (offset, number) = (0, 0)
      for flush in frame.flushes {
        for _ in 0..<7 {
          offset = min(offset + pieces[number % pieces.count], input.count)
          number += 1
        }
        let content = try Decompression.content(
          of: Array(frame.bytes[..<flush]) + ZstdCompressor.endOfFrame)
        #expect(content == Array(input[..<offset]))
      }
      #expect(frame.flushes.count > 5)
    }
  }
}
