internal import CZlib
internal import GRPCCore

/// Compresses messages of a request, as an application asked for. Used by one task at a time.
final class MessageDeflater {
  private let stream: UnsafeMutablePointer<z_stream>  // does not move: zlib points back to it
  /// The name of the method in `grpc-encoding`.
  let encoding: String

  /// Nil for no compression, and for one that this transport does not know, as it is a wish only.
  init?(_ algorithm: CompressionAlgorithm?) {
    let windowBits: Int32
    switch algorithm {
    case .gzip: (self.encoding, windowBits) = ("gzip", 15 + 16)
    case .deflate: (self.encoding, windowBits) = ("deflate", 15)
    default: return nil
    }
    self.stream = .allocate(capacity: 1)
    self.stream.initialize(to: z_stream())
    let code = c_deflate_init(self.stream, windowBits)
    precondition(code == Z_OK, "zlib: out of memory")
  }

  deinit {
    deflateEnd(self.stream)
    self.stream.deallocate()
  }

  /// - Precondition: `bytes` is shorter than 4 GiB.
  func deflate(_ bytes: [UInt8]) -> [UInt8] {
    deflateReset(self.stream)
    let bound = Int(deflateBound(self.stream, UInt(bytes.count)))
    return bytes.withUnsafeBytes { input in
      [UInt8](unsafeUninitializedCapacity: bound) { output, count in
        // zlib does not write to its input; the type of the field is older than `const`.
        self.stream.pointee.next_in = UnsafeMutablePointer(
          mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        self.stream.pointee.avail_in = UInt32(input.count)
        self.stream.pointee.next_out = output.baseAddress
        self.stream.pointee.avail_out = UInt32(output.count)
        let code = CZlib.deflate(self.stream, Z_FINISH)
        precondition(code == Z_STREAM_END, "zlib: \(code) in spite of enough room")
        count = output.count - Int(self.stream.pointee.avail_out)
      }
    }
  }
}
