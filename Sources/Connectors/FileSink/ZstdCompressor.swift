internal import CZstd
internal import DurableFiles
internal import Pipeline

/// Writes one zstd frame (RFC 8878), without content size and checksum.
///
/// After `flush` the output so far decodes to all input so far, and the frame is complete once
/// `endOfFrame` is appended. So the end of a frame is known in advance.
struct ZstdCompressor: ~Copyable {
  /// An empty last block of raw type: 3 bytes of block header (RFC 8878, section 3.1.1.2).
  static let endOfFrame: [UInt8] = [0x01, 0x00, 0x00]

  private let context: OpaquePointer  // ZSTD_CCtx *

  /// - Parameters:
  ///   - level: 1…22.
  ///   - isSmall: a window of 64 KiB instead of 512 KiB.
  ///
  /// Memory, measured with libzstd 1.5.4: small 0.5–0.6 MB (1 MB from level 16), otherwise 1.3 MB
  /// at level 1 and 2–3 MB above. By default, level 19 would take 80 MB.
  init(level: Int, isSmall: Bool) {
    guard let context = ZSTD_createCCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
    let windowLog: Int32 = isSmall ? 16 : 19
    Self.set(context, ZSTD_c_compressionLevel, Int32(level))
    Self.set(context, ZSTD_c_windowLog, windowLog)
    if level > 1 {
      // Level 1 already has smaller tables.
      Self.set(context, ZSTD_c_hashLog, windowLog - 2)
      Self.set(context, ZSTD_c_chainLog, windowLog - 2)
    }
    Self.set(context, ZSTD_c_contentSizeFlag, 0)
    Self.set(context, ZSTD_c_checksumFlag, 0)
  }

  deinit { ZSTD_freeCCtx(self.context) }

  private static func set(_ context: OpaquePointer, _ parameter: ZSTD_cParameter, _ value: Int32) {
    guard ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0 else {
      preconditionFailure("zstd: parameter \(parameter.rawValue) cannot be \(value)")
    }
  }

  /// Bytes of memory in use.
  var memoryByteCount: Int { ZSTD_sizeof_CCtx(self.context) }

  /// Compresses `input`; passes output to `write` in chunks of at most `buffer`'s size, which
  /// `write` has to consume at once.
  ///
  /// - Parameter flushing: writes all buffered input.
  mutating func compress(
    _ input: UnsafeBufferPointer<UInt8>, flushing: Bool,
    through buffer: UnsafeMutableRawBufferPointer,
    write: (UnsafeRawBufferPointer) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    let directive = flushing ? ZSTD_e_flush : ZSTD_e_continue
    while true {
      var target = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
      let rest = ZSTD_compressStream2(self.context, &target, &source, directive)
      guard ZSTD_isError(rest) == 0 else {
        preconditionFailure("zstd: \(String(cString: ZSTD_getErrorName(rest)))")
      }
      if target.pos > 0 { try write(UnsafeRawBufferPointer(rebasing: buffer[..<target.pos])) }
      if flushing ? rest == 0 : source.pos == source.size { return }
    }
  }

  /// A buffer of this size holds a whole block.
  static var outputByteCount: Int { ZSTD_CStreamOutSize() }
}
