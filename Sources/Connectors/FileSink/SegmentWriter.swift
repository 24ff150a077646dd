internal import Cryptography
internal import DurableFiles
internal import JSON
internal import Pipeline
internal import Synchronization

/// A file in progress: one zstd stream, written to one descriptor and hashed.
///
/// Bytes are written in pieces of 64 KiB that begin at multiples of 64 KiB, and the rest with
/// `flush`, because a write into the middle of a page costs twice as much. Files with small windows
/// get few bytes between flushes and write them at once.
///
/// It is checked before each write and after each synchronization: once another process has
/// truncated, replaced, removed or appended to it, nothing more is written and nothing committed.
///
/// Written bytes reach the page cache with `flush` at the latest, and are durable after
/// `synchronize`. Freed with its descriptor and compressor.
final class SegmentWriter {
  let id: SegmentLedger.ID
  let key: SegmentKey
  let name: SegmentName
  /// On the sink's monotonic clock.
  let openedAt: Duration
  var lastUsedAt: Duration
  /// Grows with every use of any file, so the least recently used file has the smallest value.
  var lastUse = 0
  var summary: SegmentSummary
  /// Lines include their epoch and ordinal, because these do not follow from the file name and the
  /// order of lines.
  var tellsPlaces: Bool
  /// What later runs need to continue the file; nil if it is finished by this run.
  let continuation: SegmentRecord.Continuation?
  /// Compressed bytes, in the file or in `piece`. Another thread that writes may be ahead.
  var byteCount: Int { self.publishedByteCount.load(ordering: .relaxed) }
  private let publishedByteCount = Atomic(0)

  // What `write` uses.
  private var compressedByteCount = 0
  private var uncompressedByteCount = 0
  private let file: OpenFile
  private var compressor: ZstdCompressor
  private var hash = SHA256()
  /// Compressed bytes that are not written yet; without room if all are written at once.
  private let piece: UnsafeMutableRawBufferPointer
  private var pieceCount = 0

  private static let pieceByteCount = 1 << 16

  init(
    id: SegmentLedger.ID, key: SegmentKey, name: SegmentName, file: consuming OpenFile,
    compressor: consuming ZstdCompressor, summary: SegmentSummary,
    continuation: SegmentRecord.Continuation? = nil, openedAt: Duration
  ) {
    self.id = id
    self.key = key
    self.name = name
    self.file = file
    self.piece = .allocate(
      byteCount: compressor.window == .large ? Self.pieceByteCount : 0, alignment: 4096)
    self.compressor = compressor
    self.summary = summary
    self.tellsPlaces = key.isRedriven
    self.continuation = continuation
    self.openedAt = openedAt
    self.lastUsedAt = openedAt
  }

  /// Continues a file of an earlier run with a new frame. Call this before the first line.
  ///
  /// - Parameters:
  ///   - record: describes the file, which has been truncated to its committed bytes.
  ///   - hash: the hash of these bytes.
  func begin(
    after record: SegmentRecord, _ hash: borrowing SHA256
  ) throws(FileSystemError) {
    self.hash = hash.copy()
    self.compressedByteCount = record.committedByteCount
    self.uncompressedByteCount = Int(record.manifest["uncompressed_bytes"]?.integer ?? 0)
    var failure: FileSystemError?
    ZstdCompressor.endOfFrame.withUnsafeBytes { bytes in
      do throws(FileSystemError) { try self.append(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    self.publishedByteCount.store(self.compressedByteCount, ordering: .relaxed)
  }

  deinit { self.piece.deallocate() }

  var memoryByteCount: Int { self.compressor.memoryByteCount + self.piece.count }

  /// Compresses bytes into the file. `buffer` is scratch.
  func write(
    _ bytes: UnsafeBufferPointer<UInt8>, through buffer: UnsafeMutableRawBufferPointer
  ) throws(FileSystemError) {
    self.uncompressedByteCount += bytes.count
    try self.compress(bytes, flushing: false, through: buffer)
  }

  /// Writes everything that the compressor has buffered.
  func flush(through buffer: UnsafeMutableRawBufferPointer) throws(FileSystemError) {
    try self.compress(UnsafeBufferPointer(start: nil, count: 0), flushing: true, through: buffer)
    try self.writePiece()
  }

  func synchronize() throws(FileSystemError) {
    try self.file.synchronize(dataOnly: true)
    try self.file.checkIntact(byteCount: self.compressedByteCount)
  }

  private func compress(
    _ bytes: UnsafeBufferPointer<UInt8>, flushing: Bool,
    through buffer: UnsafeMutableRawBufferPointer
  ) throws(FileSystemError) {
    try self.compressor.compress(bytes, flushing: flushing, through: buffer) {
      output throws(FileSystemError) in try self.append(output)
    }
    self.publishedByteCount.store(self.compressedByteCount, ordering: .relaxed)
  }

  private func append(_ output: UnsafeRawBufferPointer) throws(FileSystemError) {
    guard !self.piece.isEmpty else {
      try self.write(output, at: self.compressedByteCount)
      self.compressedByteCount += output.count
      return
    }
    var rest = output
    while !rest.isEmpty {
      // Up to the next multiple in the file.
      let room = self.piece.count - self.compressedByteCount % self.piece.count
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(room))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(room))
      UnsafeMutableRawBufferPointer(rebasing: self.piece[self.pieceCount...])
        .copyMemory(from: part)
      self.pieceCount += part.count
      self.compressedByteCount += part.count
      if part.count == room { try self.writePiece() }
    }
  }

  private func writePiece() throws(FileSystemError) {
    guard self.pieceCount > 0 else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: self.piece[..<self.pieceCount])
    self.pieceCount = 0
    try self.write(bytes, at: self.compressedByteCount - bytes.count)
  }

  /// Writes the next bytes of the file, which has as many as `offset` says.
  private func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) {
    try self.file.checkIntact(byteCount: offset)
    try self.file.write(bytes)
    self.hash.update(bytes)
  }

  /// The record of the file as it is after a flush.
  func record(identity: SegmentIdentity) -> SegmentRecord {
    var finished = self.hash.copy()
    finished.update(ZstdCompressor.endOfFrame)
    let sha256 = finished.snapshot().hex
    let byteCount = self.compressedByteCount + ZstdCompressor.endOfFrame.count
    return SegmentRecord(
      part: self.name.partPath, name: self.name.path, byteCount: byteCount, sha256: sha256,
      manifest: self.summary.manifest(
        name: self.name, identity: identity, byteCount: byteCount,
        uncompressedByteCount: self.uncompressedByteCount, sha256: sha256),
      isClosing: false, continuation: self.continuation)
  }
}
