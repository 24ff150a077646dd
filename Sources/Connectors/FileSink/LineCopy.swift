internal import Bytes
internal import Cryptography
internal import DurableFiles

/// Copies the lines of files into one new file, as a single zstd frame.
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
    /// SHA-256 of the lines with their line ends, lowercase hexadecimal.
    var textSHA256: String
  }

  /// What describes a file that is copied, for messages.
  struct Evidence {
    var place: String
    /// What to do about a file with other content.
    var remedy: String

    static let checkpoint = Self(place: "the checkpoint", remedy: SegmentLedger.damageRemedy)
    static let manifest = Self(
      place: "the manifest",
      remedy: "The files of this folder stay as they are. Put back a copy of the file; "
        + "'verify --checksums' names all files that were changed")
  }

  private let file: OpenFile
  private var compressor: ZstdCompressor
  private var hash = SHA256()
  private var byteCount = 0
  private var uncompressedByteCount = 0
  /// Lines so far.
  private(set) var lineCount = 0
  private var textHash = SHA256()
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
  /// - Parameters:
  ///   - sha256: the hash of the file, with the end of its last frame.
  ///   - edit: returns what replaces a line, without a line feed; nil leaves the line as it is.
  /// - Throws: `FileSinkError.inconsistent` for other content; `.io`.
  func append(
    _ lines: SegmentLines, sha256: String, accordingTo evidence: Evidence = .checkpoint,
    editing edit: (UnsafeBufferPointer<UInt8>) -> [UInt8]? = { _ in nil }
  ) throws(FileSinkError) {
    var hash = SHA256()
    do {
      let hashing: (UnsafeRawBufferPointer) -> Void = { hash.update($0) }
      try lines.read(hashing: hashing) { line, _ in
        if let edited = edit(line) {
          edited.withUnsafeBufferPointer { self.text.append($0) }
        } else {
          self.text.append(line)
        }
        self.text.append(UInt8(ascii: "\n"))
        self.lineCount += 1
        if self.text.count >= Self.pieceByteCount { try self.compress(flushing: false) }
      }
    } catch let fault as SegmentLines.Fault {
      throw FileSinkError(
        .inconsistent,
        "\(lines.path)\(fault.line > 0 ? " line \(fault.line)" : ""): \(fault.reason): the disk "
          + "lost data or the file was changed. " + evidence.remedy)
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      preconditionFailure("neither the file system's nor of the lines: \(error)")
    }
    if lines.extent != .whole { hash.update(ZstdCompressor.endOfFrame) }
    let found = hash.snapshot().hex
    guard found == sha256 else {
      throw .changed(lines.path, found: found, expected: sha256, accordingTo: evidence)
    }
  }

  /// Makes everything durable, except for the name of the file.
  ///
  /// - Parameter endsFrame: false if somebody else appends the end of the frame.
  /// - Throws: `FileSinkError.io`.
  func finish(endsFrame: Bool = false) throws(FileSinkError) -> Result {
    do throws(FileSystemError) {
      try self.compress(flushing: true)
      if endsFrame { try self.file.write(ZstdCompressor.endOfFrame) }
      try self.file.synchronize()
      try self.file.checkIntact(
        byteCount: self.byteCount + (endsFrame ? ZstdCompressor.endOfFrame.count : 0))
    } catch {
      throw FileSinkError(error)
    }
    self.hash.update(ZstdCompressor.endOfFrame)
    return Result(
      byteCount: self.byteCount + ZstdCompressor.endOfFrame.count,
      sha256: self.hash.snapshot().hex, uncompressedByteCount: self.uncompressedByteCount,
      textSHA256: self.textHash.snapshot().hex)
  }

  private func compress(flushing: Bool) throws(FileSystemError) {
    self.uncompressedByteCount += self.text.count
    self.textHash.update(UnsafeBufferPointer(rebasing: self.text.bytes[...]))
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
