internal import Bytes
internal import CZstd

/// Makes pages out of their parts, for all columns of a file in turn.
final class PageBuilder {
  enum Encoding: Int32 {
    case plain = 0
    case hybrid = 3
    case dictionary = 8
  }

  /// What a page has besides its bytes (the structure `PageHeader`).
  enum Kind {
    case data(levelCount: Int, Encoding)
    case dictionary(valueCount: Int)
  }

  /// What the columns hold of the row group, as they note it here.
  @exclusivity(unchecked) var heldByteCount = 0
  /// The uncompressed bytes of the page that is being made.
  var body = ByteBuffer(capacity: 1 << 16)
  private let context: OpaquePointer  // ZSTD_CCtx *
  private var compressed = ByteBuffer(capacity: 1 << 16)
  private var header = ThriftWriter()
  private let crc = CRC32()

  /// - Parameter level: 1…22.
  init(level: Int) {
    guard let context = ZSTD_createCCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
    Self.check(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Int32(level)))
    // The page has a checksum of its own.
    Self.check(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0))
  }

  deinit { ZSTD_freeCCtx(self.context) }

  /// The settings and buffers are this type's own, so an error is one of the program.
  @discardableResult
  private static func check(_ result: Int) -> Int {
    guard ZSTD_isError(result) == 0 else {
      preconditionFailure("zstd: \(String(cString: ZSTD_getErrorName(result)))")
    }
    return result
  }

  /// Levels, which follow their length in a page of version 1.
  func append(levels: borrowing ByteBuffer) {
    self.body.append(littleEndian: UInt32(levels.count))
    self.body.append(levels.bytes)
  }

  /// Appends the page that `body` has, with its header, and empties `body`.
  ///
  /// - Returns: the bytes that it would have without compression.
  func finish(_ kind: Kind, into pages: inout ByteBuffer) -> Int {
    let body = self.body.raw
    let target = self.compressed.reserve(ZSTD_compressBound(body.count))
    let byteCount = Self.check(
      ZSTD_compress2(
        self.context, target, self.compressed.capacity, body.baseAddress, body.count))
    let content = UnsafeRawBufferPointer(start: target, count: byteCount)
    let checksum = Int32(bitPattern: self.crc.value(of: content))
    self.header.removeAll()
    self.header.structure { header in
      switch kind {
      case .data: header.integer(1, Int32(0))
      case .dictionary: header.integer(1, Int32(2))
      }
      header.integer(2, Int32(body.count))
      header.integer(3, Int32(byteCount))
      header.integer(4, checksum)
      switch kind {
      case .data(let levelCount, let encoding):
        header.structure(5) { data in
          data.integer(1, Int32(levelCount))
          data.integer(2, encoding.rawValue)
          data.integer(3, Encoding.hybrid.rawValue)
          data.integer(4, Encoding.hybrid.rawValue)
        }
      case .dictionary(let valueCount):
        header.structure(7) { dictionary in
          dictionary.integer(1, Int32(valueCount))
          dictionary.integer(2, Encoding.plain.rawValue)
        }
      }
    }
    let uncompressedByteCount = self.header.output.count + body.count
    pages.append(self.header.output.bytes)
    pages.append(raw: content)
    self.body.removeAll()
    return uncompressedByteCount
  }
}
