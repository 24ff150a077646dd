import GRPCCore
import Testing

@testable import HTTP2Transport

@Suite("Inflating messages")
struct MessageInflaterTests {
  let text = Array(String(repeating: "some text, and more; ", count: 40).utf8)

  func noise(_ count: Int) -> [UInt8] {
    var state: UInt32 = 7
    return (0..<count).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(truncatingIfNeeded: state >> 24)
    }
  }

  func deflated(_ bytes: [UInt8], _ algorithm: CompressionAlgorithm = .gzip) throws -> [UInt8] {
    try #require(MessageDeflater(algorithm)).deflate(bytes)
  }

  @Test(
    "A compressed message inflates to the original",
    arguments: [CompressionAlgorithm.gzip, .deflate])
  func roundTrip(algorithm: CompressionAlgorithm) throws {
    let inflater = MessageInflater()
    let deflater = try #require(MessageDeflater(algorithm))
    for message in [[], [1], self.text, self.noise(100_000), [UInt8](repeating: 0, count: 3 << 20)]
    {
      #expect(try inflater.inflate(deflater.deflate(message), limit: message.count) == message)
      #expect(try inflater.inflate(deflater.deflate(message), limit: .max) == message)
    }
    #expect(deflater.encoding == (algorithm == .gzip ? "gzip" : "deflate"))
    #expect(MessageDeflater(CompressionAlgorithm.none) == nil)
    #expect(MessageDeflater(nil) == nil)
  }

  /// Made by Python's gzip and zlib.
  @Test("Messages that other software compressed are inflated") func otherCompressors() throws {
    let gzip: [UInt8] = [
      0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff,  // header: deflate, no time, best compression
      0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0,  // "hello"
      0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0,  // CRC-32, length
    ]
    let zlib: [UInt8] = [
      0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 6, 0x2c, 2, 0x15,
    ]
    let inflater = MessageInflater()
    #expect(try inflater.inflate(gzip, limit: 100) == Array("hello".utf8))
    #expect(try inflater.inflate(zlib, limit: 100) == Array("hello".utf8))
    #expect(try inflater.inflate(gzip + gzip, limit: 100) == Array("hellohello".utf8))
  }

  @Test("A truncated or changed message is an error") func damage() throws {
    let inflater = MessageInflater()
    for algorithm in [CompressionAlgorithm.gzip, .deflate] {
      let whole = try self.deflated(self.text, algorithm)
      for count in 0..<whole.count {
        let error = #expect(throws: RPCError.self) {
          try inflater.inflate(Array(whole.prefix(count)), limit: 10_000)
        }
        #expect(error?.code == .internalError)
      }
      for index in whole.indices {
        var changed = whole
        changed[index] ^= 0x10
        // Some bits mean nothing, such as the time in the header of gzip; none means another text.
        if let found = try? inflater.inflate(changed, limit: 10_000) { #expect(found == self.text) }
      }
      let more = #expect(throws: RPCError.self) {
        try inflater.inflate(whole + [1, 2, 3], limit: 10_000)
      }
      #expect(more?.code == .internalError)
      #expect(try inflater.inflate(whole, limit: 10_000) == self.text)
    }
  }

  @Test("A message that inflates above the limit is refused") func limit() throws {
    let inflater = MessageInflater()
    for algorithm in [CompressionAlgorithm.gzip, .deflate] {
      for size in [1, 1000, 1 << 20] {
        let bytes = try self.deflated([UInt8](repeating: 1, count: size), algorithm)
        let error = #expect(throws: RPCError.self) {
          try inflater.inflate(bytes, limit: size - 1)
        }
        #expect(error?.code == .resourceExhausted)
        #expect(error?.message.contains("\(size - 1)") == true)
        #expect(try inflater.inflate(bytes, limit: size).count == size)
      }
    }
    // Members of which each is within the limit.
    let member = try self.deflated([UInt8](repeating: 1, count: 60))
    let error = #expect(throws: RPCError.self) { try inflater.inflate(member + member, limit: 100) }
    #expect(error?.code == .resourceExhausted)
  }

  /// A length at the end that promises much costs no memory.
  @Test("A message with a false length in its trailer is refused") func falseLength() throws {
    let inflater = MessageInflater()
    var bytes = try self.deflated([1, 2, 3])
    bytes.replaceSubrange((bytes.count - 4)..., with: [255, 255, 255, 255])
    let error = #expect(throws: RPCError.self) { try inflater.inflate(bytes, limit: .max) }
    #expect(error?.code == .internalError)
  }
}
