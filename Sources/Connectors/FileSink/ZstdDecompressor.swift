internal import CZstd

/// Reads zstd frames piece by piece (RFC 8878).
struct ZstdDecompressor: ~Copyable {
  /// The library's description of the fault in the input.
  struct Fault: Error { var reason: String }

  private let context: OpaquePointer  // ZSTD_DCtx *

  /// Frames with a larger window are refused: 8 MiB is the largest that level 19 uses, and sixteen
  /// times what this program writes.
  private static let maxWindowLog: Int32 = 23

  init() {
    guard let context = ZSTD_createDCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
    guard
      ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.maxWindowLog)) == 0
    else { preconditionFailure("zstd: the window cannot be limited") }
  }

  deinit { ZSTD_freeDCtx(self.context) }

  struct Step {
    var consumed: Int
    var produced: Int
    /// The consumed input ends a frame, and its output is complete.
    var isFrameEnd: Bool
  }

  mutating func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(Fault) -> Step {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    let rest = ZSTD_decompressStream(self.context, &target, &source)
    guard ZSTD_isError(rest) == 0 else {
      throw Fault(reason: String(cString: ZSTD_getErrorName(rest)))
    }
    return Step(consumed: source.pos, produced: target.pos, isFrameEnd: rest == 0)
  }
}
