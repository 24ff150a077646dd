internal import CZlib
internal import Foundation

extension HTTPResponse {
  /// The same answer with a body in gzip (RFC 1952).
  func compressed() -> HTTPResponse {
    guard let body = Self.gzip(self.body) else { return self }
    var response = self
    response.body = body
    response.headers.append(("Content-Encoding", "gzip"))
    return response
  }

  /// Nil without enough memory.
  private static func gzip(_ body: Data) -> Data? {
    var stream = z_stream()
    // 15: the largest window; 16 more: with the head and the end of gzip.
    guard c_deflate_init(&stream, 15 + 16) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    var output = Data(count: Int(deflateBound(&stream, UInt(body.count))))
    let status = output.withUnsafeMutableBytes { output in
      body.withUnsafeBytes { input in
        stream.next_in = UnsafeMutablePointer(
          mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
        stream.avail_out = UInt32(output.count)
        return deflate(&stream, Z_FINISH)
      }
    }
    guard status == Z_STREAM_END else { return nil }
    return output.prefix(Int(stream.total_out))
  }
}
