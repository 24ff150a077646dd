import Bytes
import TestSupport
import Testing

@Suite("Appending base64")
struct ByteBufferBase64Tests {
  @Test(
    "The examples of RFC 4648 section 10 and the characters + and / are encoded",
    arguments: [
      ([], ""), (Array("f".utf8), "Zg=="), (Array("fo".utf8), "Zm8="),
      (Array("foo".utf8), "Zm9v"), (Array("foob".utf8), "Zm9vYg=="),
      (Array("fooba".utf8), "Zm9vYmE="), (Array("foobar".utf8), "Zm9vYmFy"),
      ([0xFB, 0xFF, 0xBF], "+/+/"), ([0xFF], "/w=="), ([0xFF, 0xFF], "//8="),
    ] as [([UInt8], String)])
  func base64(bytes: [UInt8], expected: String) {
    #expect(appended { $0.appendBase64(bytes) } == expected)
  }
}

extension ByteBuffer {
  mutating func appendBase64(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { self.appendBase64($0) }
  }
}
