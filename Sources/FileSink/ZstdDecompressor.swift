internal import CZstd
internal import DurableFiles

/// Reads lines out of one zstd frame (RFC 8878), which may end early: a file in progress is read as
/// far as it goes.
///
/// The file may be anybody's: neither a frame that is none nor a line without end takes more memory
/// than the limits allow.
struct ZstdDecompressor: ~Copyable {
  private let context: OpaquePointer  // ZSTD_DCtx *

  init() {
    guard let context = ZSTD_createDCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
  }

  deinit { ZSTD_freeDCtx(self.context) }

  /// Lends each whole line of a file, without its line end.
  ///
  /// - Parameters:
  ///   - byteCount: compressed bytes to read.
  ///   - maxLineByteCount: of a line, uncompressed.
  /// - Throws: `FileSinkError`: `.inconsistent` for what is no zstd frame or has a longer line, `.io`;
  ///   whatever `visit` throws.
  borrowing func lines(
    of path: String, byteCount: Int, maxLineByteCount: Int, on fileSystem: any FileSystem,
    visit: (UnsafeBufferPointer<UInt8>) throws -> Void
  ) throws {
    let input = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ZSTD_DStreamInSize(), alignment: 16)
    let output = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ZSTD_DStreamOutSize(), alignment: 16)
    defer {
      input.deallocate()
      output.deallocate()
    }
    let file: OpenFile
    do throws(FileSystemError) {
      file = try OpenFile(path, [], on: fileSystem)
    } catch {
      throw FileSinkError(error)
    }
    var line: [UInt8] = []
    var offset = 0
    while offset < byteCount {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: input[..<min(input.count, byteCount - offset)])
      let count: Int
      do throws(FileSystemError) {
        count = try file.read(into: part, at: offset)
      } catch {
        throw FileSinkError(error)
      }
      if count == 0 { break }
      offset += count
      var source = ZSTD_inBuffer(src: input.baseAddress, size: count, pos: 0)
      var isFull = false
      while source.pos < source.size || isFull {
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let rest = ZSTD_decompressStream(self.context, &target, &source)
        guard ZSTD_isError(rest) == 0 else {
          throw FileSinkError(
            .inconsistent,
            "\(path) is not a zstd file, or is damaged: \(String(cString: ZSTD_getErrorName(rest)))"
          )
        }
        isFull = target.pos == target.size
        try Self.split(output[..<target.pos], &line, visit: visit)
        guard line.count <= maxLineByteCount else {
          throw FileSinkError(
            .inconsistent, "\(path) has a line of more than \(maxLineByteCount) bytes")
        }
      }
    }
  }

  /// Lends the lines that end in `bytes`; the rest stays in `line`.
  private static func split(
    _ bytes: Slice<UnsafeMutableRawBufferPointer>, _ line: inout [UInt8],
    visit: (UnsafeBufferPointer<UInt8>) throws -> Void
  ) throws {
    var rest = bytes
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      line += rest[..<end]
      try line.withUnsafeBufferPointer(visit)
      line.removeAll(keepingCapacity: true)
      rest = rest[(end + 1)...]
    }
    line += rest
  }
}
