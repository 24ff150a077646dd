internal import Bytes
internal import Cryptography
internal import DurableFiles

/// Copies the lines of files into one new file, as a single zstd frame without its end.
///
/// Used by one thread. After an error, the new file is of no use.
final class LineCopy {
  /// What was written.
  struct Result {
    /// Bytes of the new file once it has the end of its frame.
    var byteCount: Int
    /// SHA-256 of these bytes, lowercase hexadecimal.
    var sha256: String
    var uncompressedByteCount: Int
    var lineCount: Int
  }

  private let file: OpenFile
  private var compressor: ZstdCompressor
  private var hash = SHA256()
  private var byteCount = 0
  private var uncompressedByteCount = 0
  private var lineCount = 0
  private var text = ByteBuffer(capacity: LineCopy.pieceByteCount * 2)
  private let scratch = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ZstdCompressor.outputByteCount, alignment: 16)

  private static let pieceByteCount = 1 << 16
  /// Higher levels are so slow that a run would stand still while it joins a file.
  private static let maxLevel = 6

  /// - Parameter path: absolute; replaces what a crash left there.
  /// - Throws: `FileSinkError.io`.
  init(to path: String, level: Int, on fileSystem: any FileSystem) throws(FileSinkError) {
    do throws(FileSystemError) {
      self.file = try OpenFile(temporary: path, on: fileSystem)
    } catch {
      throw FileSinkError(error)
    }
    self.compressor = ZstdCompressor(level: min(level, Self.maxLevel), window: .large)
  }

  deinit { self.scratch.deallocate() }

  /// Appends the lines of a file.
  ///
  /// - Parameter sha256: the hash of the file, with the end of its last frame.
  /// - Throws: `FileSinkError.inconsistent` for other content; `.io`.
  func append(_ lines: SegmentLines, sha256: String) throws(FileSinkError) {
    var hash = SHA256()
    do {
      let hashing: (UnsafeRawBufferPointer) -> Void = { hash.update($0) }
      try lines.read(hashing: hashing) { line, _ in
        self.text.append(line)
        self.text.append(UInt8(ascii: "\n"))
        self.lineCount += 1
        if self.text.count >= Self.pieceByteCount { try self.compress(flushing: false) }
      }
    } catch let fault as SegmentLines.Fault {
      throw FileSinkError(
        .inconsistent,
        "\(lines.path)\(fault.line > 0 ? " line \(fault.line)" : ""): \(fault.reason): the disk "
          + "lost data or the file was changed. " + SegmentLedger.damageRemedy)
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      preconditionFailure("neither the file system's nor of the lines: \(error)")
    }
    if lines.extent != .whole { hash.update(ZstdCompressor.endOfFrame) }
    let found = hash.snapshot().hex
    guard found == sha256 else {
      throw .changed(lines.path, found: found, expected: sha256)
    }
  }

  /// Makes everything durable, except for the name of the file.
  ///
  /// - Throws: `FileSinkError.io`.
  func finish() throws(FileSinkError) -> Result {
    do throws(FileSystemError) {
      try self.compress(flushing: true)
      try self.file.synchronize()
      try self.file.checkIntact(byteCount: self.byteCount)
    } catch {
      throw FileSinkError(error)
    }
    self.hash.update(ZstdCompressor.endOfFrame)
    return Result(
      byteCount: self.byteCount + ZstdCompressor.endOfFrame.count,
      sha256: self.hash.snapshot().hex, uncompressedByteCount: self.uncompressedByteCount,
      lineCount: self.lineCount)
  }

  private func compress(flushing: Bool) throws(FileSystemError) {
    self.uncompressedByteCount += self.text.count
    try self.compressor.compress(
      UnsafeBufferPointer(rebasing: self.text.bytes[...]), flushing: flushing,
      through: self.scratch
    ) { output throws(FileSystemError) in
      try self.file.write(output)
      self.hash.update(output)
      self.byteCount += output.count
    }
    self.text.removeAll()
  }
}
