internal import CZlib
internal import GRPCCore

/// Undoes the compression of messages: gzip (RFC 1952) and what HTTP calls deflate (RFC 1950). Used
/// by one task at a time.
final class MessageInflater {
  /// The names of the methods in `grpc-accept-encoding`.
  static let acceptedEncodings = "identity, deflate, gzip"

  static func accepts(_ encoding: String) -> Bool { encoding == "gzip" || encoding == "deflate" }

  /// How much deflate can shrink data at most.
  private static let maxRatio = 1032
  private static let anyHeader = 15 + 32

  private let stream: UnsafeMutablePointer<z_stream>  // does not move: zlib points back to it

  init() {
    self.stream = .allocate(capacity: 1)
    self.stream.initialize(to: z_stream())
    let code = c_inflate_init(self.stream, Int32(Self.anyHeader))
    precondition(code == Z_OK, "zlib: out of memory")
  }

  deinit {
    inflateEnd(self.stream)
    self.stream.deallocate()
  }

  /// The message that was compressed to `bytes`.
  /// - Throws: `resourceExhausted` as soon as it turns out longer than `limit`, for which no more
  ///   memory is taken than that; `internalError` when the bytes are damaged or cut off.
  func inflate(_ bytes: [UInt8], limit: Int) throws(RPCError) -> [UInt8] {
    inflateReset(self.stream)
    // One byte above the limit shows that it is exceeded.
    let capacity = limit < Int.max ? limit + 1 : limit
    var output = [UInt8](repeating: 0, count: min(Self.expectedByteCount(bytes), capacity))
    var (consumed, produced) = (0, 0)
    while true {
      if produced == output.count {
        guard produced < capacity else {
          throw RPCError(
            code: .resourceExhausted,
            message: "The server sent a compressed message of more than \(limit) bytes.")
        }
        let growth = min(max(output.count, 4096), capacity - output.count)
        output.append(contentsOf: repeatElement(0, count: growth))
      }
      let code = self.step(bytes, &consumed, &output, &produced)
      switch code {
      case Z_OK: continue
      // Room is given above, so it is the input that has ended.
      case Z_BUF_ERROR where consumed == bytes.count:
        throw Self.damaged("it ends too early")
      case Z_BUF_ERROR: continue
      // RFC 1952 section 2.2: a file is a series of members.
      case Z_STREAM_END where consumed < bytes.count: inflateReset(self.stream)
      case Z_STREAM_END:
        guard produced <= limit else { continue }
        output.removeLast(output.count - produced)
        // What the application keeps is not to cost a multiple of its size.
        return output.capacity > 2 * produced ? Array(output[...]) : output
      case Z_MEM_ERROR: preconditionFailure("zlib: out of memory")
      default: throw Self.damaged(self.stream.pointee.msg.map { String(cString: $0) } ?? "\(code)")
      }
    }
  }

  /// Inflates as far as input and room go.
  private func step(
    _ bytes: [UInt8], _ consumed: inout Int, _ output: inout [UInt8], _ produced: inout Int
  ) -> Int32 {
    bytes.withUnsafeBytes { input in
      output.withUnsafeMutableBytes { output in
        let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
        let room = UnsafeMutableRawBufferPointer(rebasing: output[produced...])
        // zlib does not write to its input; the type of the field is older than `const`.
        self.stream.pointee.next_in = UnsafeMutablePointer(
          mutating: rest.baseAddress?.assumingMemoryBound(to: UInt8.self))
        self.stream.pointee.avail_in = UInt32(clamping: rest.count)
        self.stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        self.stream.pointee.avail_out = UInt32(clamping: room.count)
        let code = CZlib.inflate(self.stream, Z_NO_FLUSH)
        consumed += Int(UInt32(clamping: rest.count) - self.stream.pointee.avail_in)
        produced += Int(UInt32(clamping: room.count) - self.stream.pointee.avail_out)
        return code
      }
    }
  }

  /// A gzip member ends with the length of its content modulo 2^32, which usually is the length of
  /// the message; believed no further than deflate could make it true.
  private static func expectedByteCount(_ bytes: [UInt8]) -> Int {
    let most = bytes.count.multipliedReportingOverflow(by: Self.maxRatio)
    guard bytes.starts(with: [0x1f, 0x8b]), bytes.count >= 18, !most.overflow else {
      return min(4 * bytes.count + 64, 1 << 20)
    }
    let length = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    return min(max(length, 64), most.partialValue)
  }

  private static func damaged(_ reason: String) -> RPCError {
    RPCError(
      code: .internalError, message: "The server sent a damaged compressed message: \(reason).")
  }
}
