import Cryptography
import Testing

/// Vectors of RFC 4231, section 4.
@Suite("HMAC with SHA-256")
struct HMACTests {
  @Test(
    "One context gives the published codes twice",
    arguments: [
      (
        [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        [UInt8](repeating: 0xaa, count: 131),
        Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ])
  func vectors(key: [UInt8], message: [UInt8], hex: String) {
    let mac = HMACSHA256(key: key)
    for _ in 0..<2 {
      var code = [UInt8](repeating: 0, count: HMACSHA256.byteCount)
      message.withUnsafeBufferPointer { mac.authenticate($0, into: &code) }
      #expect(HashValue(bytes: code).hex == hex)
    }
    #expect(HMACSHA256.code(of: message, key: key).hex == hex)
  }
}
