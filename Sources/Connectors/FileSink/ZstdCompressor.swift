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
  /// The last input, to which blocks refer; nil if the library has its own copy of it, because it
  /// cannot be used without.
  private let ring: UnsafeMutableRawBufferPointer?
  private let blockByteCount: Int
  /// The input in the ring that is not compressed yet, at most a block.
  private var block = 0..<0
  let window: Window

  /// How far back a match may be. The buffers of a compressor are in proportion.
  ///
  /// Measured with libzstd 1.5.4, level 1 and lines of changes in pieces of 10 to 100: 1.3 MB at
  /// 512 KiB; 0.5 MB and 2 to 8 % more output at 64 KiB; 0.3 MB and 6 to 16 % more at 32 KiB;
  /// 0.15 MB and 15 to 30 % more at 16 KiB. Higher levels take up to twice the memory; by default,
  /// level 19 would take 80 MB.
  enum Window: UInt32 {
    case large = 19
    case medium = 16
    case small = 15
    case smallest = 14

    /// The window of a file, so that hundreds of them can be open at the same time.
    ///
    /// - Parameter count: the number of files that are open already.
    init(besides count: Int) {
      self = count < 8 ? .large : count < 24 ? .medium : count < 64 ? .small : .smallest
    }

    /// While a block follows the ring's end, the window is in two parts, which is slower. The shorter
    /// the ring, the more often.
    var ringByteCount: Int { self == .large ? 1 << 20 : 3 << Int(self.rawValue) }
  }

  /// - Parameters:
  ///   - level: 1…22.
  ///   - copiesInput: uses the streaming interface of the library, which copies its input once more.
  init(level: Int, window: Window, copiesInput: Bool = czstd_has_bufferless() == 0) {
    guard let context = ZSTD_createCCtx() else { preconditionFailure("zstd: out of memory") }
    self.context = context
    self.window = window
    let windowLog = window.rawValue
    // Level 1 already has smaller tables, except for small windows.
    let tableLog = level > 1 || windowLog < Window.medium.rawValue ? windowLog - 2 : 0
    self.blockByteCount = min(1 << 17, 1 << Int(windowLog))
    guard copiesInput else {
      self.ring = .allocate(byteCount: window.ringByteCount, alignment: 64)
      Self.check(czstd_begin(context, Int32(level), windowLog, tableLog))
      return
    }
    self.ring = nil
    Self.set(context, ZSTD_c_compressionLevel, Int32(level))
    Self.set(context, ZSTD_c_windowLog, Int32(windowLog))
    if tableLog > 0 {
      Self.set(context, ZSTD_c_hashLog, Int32(tableLog))
      Self.set(context, ZSTD_c_chainLog, Int32(tableLog))
    }
    Self.set(context, ZSTD_c_contentSizeFlag, 0)
    Self.set(context, ZSTD_c_checksumFlag, 0)
  }

  deinit {
    ZSTD_freeCCtx(self.context)
    self.ring?.deallocate()
  }

  private static func set(_ context: OpaquePointer, _ parameter: ZSTD_cParameter, _ value: Int32) {
    Self.check(ZSTD_CCtx_setParameter(context, parameter, value))
  }

  /// The settings and buffers are this type's own, so an error is one of the program.
  private static func check(_ result: Int) {
    guard ZSTD_isError(result) == 0 else {
      preconditionFailure("zstd: \(String(cString: ZSTD_getErrorName(result)))")
    }
  }

  /// Bytes of memory in use.
  var memoryByteCount: Int { ZSTD_sizeof_CCtx(self.context) + (self.ring?.count ?? 0) }

  /// Compresses `input`; passes output to `write` in chunks of at most `buffer`'s size, which
  /// `write` has to consume at once.
  ///
  /// - Parameters:
  ///   - flushing: writes all buffered input.
  ///   - buffer: of `outputByteCount` bytes.
  mutating func compress(
    _ input: UnsafeBufferPointer<UInt8>, flushing: Bool,
    through buffer: UnsafeMutableRawBufferPointer,
    write: (UnsafeRawBufferPointer) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    guard let ring else {
      return try self.copy(input, flushing: flushing, through: buffer, write: write)
    }
    var rest = UnsafeRawBufferPointer(input)
    while true {
      let piece = UnsafeRawBufferPointer(
        rebasing: rest.prefix(self.blockByteCount - self.block.count))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
      UnsafeMutableRawBufferPointer(rebasing: ring[self.block.upperBound...])
        .copyMemory(from: piece)
      self.block = self.block.lowerBound..<self.block.upperBound + piece.count
      if self.block.count == self.blockByteCount || flushing && !self.block.isEmpty {
        try self.compressBlock(of: ring, through: buffer, write: write)
      }
      if rest.isEmpty { return }
    }
  }

  private mutating func compressBlock(
    of ring: UnsafeMutableRawBufferPointer, through buffer: UnsafeMutableRawBufferPointer,
    write: (UnsafeRawBufferPointer) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    let block = UnsafeRawBufferPointer(rebasing: ring[self.block])
    let count = czstd_continue(
      self.context, buffer.baseAddress, buffer.count, block.baseAddress, block.count)
    Self.check(count)
    // What is overwritten from here on is further back than the window reaches.
    let next = ring.count - self.block.upperBound < self.blockByteCount ? 0 : self.block.upperBound
    self.block = next..<next
    try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
  }

  private func copy(
    _ input: UnsafeBufferPointer<UInt8>, flushing: Bool,
    through buffer: UnsafeMutableRawBufferPointer,
    write: (UnsafeRawBufferPointer) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    let directive = flushing ? ZSTD_e_flush : ZSTD_e_continue
    while true {
      var target = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
      let rest = ZSTD_compressStream2(self.context, &target, &source, directive)
      Self.check(rest)
      if target.pos > 0 { try write(UnsafeRawBufferPointer(rebasing: buffer[..<target.pos])) }
      if flushing ? rest == 0 : source.pos == source.size { return }
    }
  }

  /// A buffer of this size holds a whole block.
  static var outputByteCount: Int { ZSTD_CStreamOutSize() }
}
