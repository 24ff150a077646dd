internal import DurableFiles
internal import Glibc

/// Writes entries, each a key and a value, to a scratch file, compressed.
final class EntryWriter {
  private let file: ScratchFile
  private var compressor = ZstdCompressor(level: 1, window: .medium)
  private var pending: [UInt8] = []
  private var count = 0
  private let output = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ZstdCompressor.outputByteCount, alignment: 16)

  private static let pendingByteCount = 1 << 16

  init(_ scratch: ScratchFiles) throws(FileSystemError) { self.file = try scratch.make() }

  deinit { self.output.deallocate() }

  func append(
    key: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>
  ) throws(FileSystemError) {
    self.pending.appendNumber(UInt32(key.count))
    self.pending.appendNumber(UInt32(value.count))
    self.pending.append(contentsOf: key)
    self.pending.append(contentsOf: value)
    self.count += 1
    if self.pending.count >= Self.pendingByteCount { try self.flush(isLast: false) }
  }

  func append(key: [UInt8], value: [UInt8]) throws(FileSystemError) {
    var failure: FileSystemError?
    key.withUnsafeBufferPointer { key in
      value.withUnsafeBufferPointer { value in
        do throws(FileSystemError) {
          try self.append(key: key, value: value)
        } catch {
          failure = error
        }
      }
    }
    if let failure { throw failure }
  }

  func finish() throws(FileSystemError) -> EntryFile {
    try self.flush(isLast: true)
    return EntryFile(file: self.file, count: self.count)
  }

  private func flush(isLast: Bool) throws(FileSystemError) {
    var failure: FileSystemError?
    self.pending.withUnsafeBufferPointer { pending in
      do throws(FileSystemError) {
        try self.compressor.compress(pending, flushing: isLast, through: self.output) {
          bytes throws(FileSystemError) in try self.file.write(bytes)
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    self.pending.removeAll(keepingCapacity: true)
  }
}

/// Entries in a scratch file, in the order in which they were written.
struct EntryFile {
  let file: ScratchFile
  let count: Int
}

/// Iterates over the entries of a file once.
final class EntryReader {
  private(set) var key: [UInt8] = []
  private(set) var value: [UInt8] = []
  private let entries: EntryFile
  private var decompressor = ZstdDecompressor()
  private let input = UnsafeMutableRawBufferPointer.allocate(
    byteCount: EntryReader.pieceByteCount, alignment: 16)
  private let output = UnsafeMutableRawBufferPointer.allocate(
    byteCount: EntryReader.pieceByteCount, alignment: 16)
  private var offset = 0
  private var inputRange = 0..<0
  private var outputRange = 0..<0
  private var count = 0

  private static let pieceByteCount = 1 << 16

  init(_ entries: EntryFile) { self.entries = entries }

  deinit {
    self.input.deallocate()
    self.output.deallocate()
  }

  /// Returns false at the end; otherwise `key` and `value` are those of the next entry.
  func next() throws(FileSystemError) -> Bool {
    guard self.count < self.entries.count else { return false }
    self.count += 1
    try self.take(8, into: &self.key)
    let keyCount = self.key.number(at: 0, UInt32.self)
    let valueCount = self.key.number(at: 4, UInt32.self)
    try self.take(Int(keyCount), into: &self.key)
    try self.take(Int(valueCount), into: &self.value)
    return true
  }

  private func take(_ count: Int, into bytes: inout [UInt8]) throws(FileSystemError) {
    bytes.removeAll(keepingCapacity: true)
    while bytes.count < count {
      if self.outputRange.isEmpty { try self.fill() }
      let piece = self.outputRange.prefix(count - bytes.count)
      bytes.append(contentsOf: self.output[piece])
      self.outputRange = piece.upperBound..<self.outputRange.upperBound
    }
  }

  private func fill() throws(FileSystemError) {
    while true {
      // The decompressor's remaining output is taken before more is read.
      let rest = UnsafeRawBufferPointer(rebasing: self.input[self.inputRange])
      let step: ZstdDecompressor.Step
      do throws(ZstdDecompressor.Fault) {
        step = try self.decompressor.decompress(rest, into: self.output)
      } catch {
        throw FileSystemError("read", "the scratch file", code: EIO)
      }
      self.inputRange = self.inputRange.lowerBound + step.consumed..<self.inputRange.upperBound
      if step.produced > 0 {
        self.outputRange = 0..<step.produced
        return
      }
      guard self.inputRange.isEmpty else { continue }
      let count = try self.entries.file.read(into: self.input, at: self.offset)
      // Written entries can be read again, unless the disk has lost them.
      guard count > 0 else { throw FileSystemError("read", "the scratch file", code: EIO) }
      self.offset += count
      self.inputRange = 0..<count
    }
  }
}

extension [UInt8] {
  /// Little-endian.
  mutating func appendNumber(_ number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { self.append(contentsOf: $0) }
  }

  /// Big-endian, so that numbers from 0 are in the order of their bytes.
  mutating func appendSortable(_ number: Int64) {
    Swift.withUnsafeBytes(of: UInt64(bitPattern: Swift.max(number, 0)).bigEndian) {
      self.append(contentsOf: $0)
    }
  }

  func number<Number: FixedWidthInteger>(at offset: Int, _ type: Number.Type) -> Number {
    precondition(offset + MemoryLayout<Number>.size <= self.count, "a number behind the end")
    return self.withUnsafeBytes {
      Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
  }
}
