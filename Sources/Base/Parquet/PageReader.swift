internal import Bytes
internal import CZstd

/// Where a file's bytes are.
package protocol ParquetSource {
  var byteCount: Int { get }

  /// Fills the buffer with the bytes from `offset` on.
  ///
  /// - Parameter offset: so that the buffer is within `byteCount`.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws
}

/// Reads pages, for all columns of a file in turn.
final class PageReader {
  /// More than the longest value, its column's other values in the page, and levels.
  static let maxPageByteCount = 64 << 20
  /// Ours have at most a tenth of this.
  private static let maxHeaderByteCount = 512

  struct Header {
    var kind: Int64 = -1
    var byteCount = 0
    var compressedByteCount = 0
    var checksum: Int64?
    var valueCount = 0
    var encoding: Int64 = -1
  }

  private let source: any ParquetSource
  private let context: OpaquePointer  // ZSTD_DCtx *
  private var compressed = ByteBuffer(capacity: 1 << 16)
  private let crc = CRC32()

  init(_ source: any ParquetSource) {
    self.source = source
    guard let context = ZSTD_createDCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
  }

  deinit { ZSTD_freeDCtx(self.context) }

  /// Replaces the content of `page` by that of the page at an offset.
  ///
  /// - Parameters:
  ///   - end: of the column's pages; within the file.
  ///   - place: for messages.
  /// - Returns: its header, and where the next one begins.
  func read(
    at offset: Int, end: Int, into page: inout ByteBuffer, place: @autoclosure () -> String
  ) throws(ParquetError) -> (header: Header, next: Int) {
    let headLimit = min(Self.maxHeaderByteCount, end - offset)
    let head = try self.fetch(headLimit, at: offset, place: place())
    var reader = ThriftReader(head)
    let header: Header
    do throws(ThriftReader.Fault) {
      header = try Self.header(&reader)
    } catch {
      throw ParquetError(.damaged, place(), "its header: \(error.reason)")
    }
    let start = offset + reader.offset
    guard header.byteCount <= Self.maxPageByteCount,
      header.compressedByteCount <= min(end - start, ZSTD_compressBound(Self.maxPageByteCount))
    else { throw ParquetError(.damaged, place(), "it is longer than its column, or than 64 MiB") }
    let content = try self.fetch(header.compressedByteCount, at: start, place: place())
    guard let checksum = header.checksum else {
      throw ParquetError(.unsupported, place(), "it has no checksum")
    }
    guard checksum == Int64(Int32(bitPattern: self.crc.value(of: content))) else {
      throw ParquetError(
        .damaged, place(), "its checksum is not that of its bytes: they have changed")
    }
    page.removeAll()
    let target = page.reserve(header.byteCount)
    let count = ZSTD_decompressDCtx(
      self.context, target, header.byteCount, content.baseAddress, content.count)
    guard ZSTD_isError(count) == 0, count == header.byteCount else {
      throw ParquetError(.damaged, place(), "it is not the zstd frame that its header announces")
    }
    page.commit(count)
    return (header, start + content.count)
  }

  private func fetch(
    _ count: Int, at offset: Int, place: @autoclosure () -> String
  ) throws(ParquetError) -> UnsafeRawBufferPointer {
    let target = UnsafeMutableRawBufferPointer(start: self.compressed.reserve(count), count: count)
    do {
      try self.source.read(into: target, at: offset)
    } catch {
      throw ParquetError(.unreadable, place(), "\(error)", cause: error)
    }
    return UnsafeRawBufferPointer(target)
  }

  private static func header(
    _ reader: inout ThriftReader
  ) throws(ThriftReader.Fault) -> Header {
    var header = Header()
    try reader.structure { (field, kind, reader) throws(ThriftReader.Fault) in
      switch field {
      case 1: header.kind = try reader.integer(kind)
      case 2: header.byteCount = try reader.count(kind)
      case 3: header.compressedByteCount = try reader.count(kind)
      case 4: header.checksum = try reader.integer(kind)
      case 5, 7:
        try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
          switch field {
          case 1: header.valueCount = try reader.count(kind)
          case 2: header.encoding = try reader.integer(kind)
          default: try reader.skip(kind)
          }
        }
      default: try reader.skip(kind)
      }
    }
    return header
  }
}
