import Bytes
import Testing

@Suite("ASCII characters and the texts of bytes")
struct ASCIITests {
  @Test("Digits, letters and parts of names are those of ASCII")
  func kinds() {
    func characters(_ kind: (UInt8) -> Bool) -> String {
      String(decoding: (UInt8.min ... .max).filter(kind), as: UTF8.self)
    }
    let (digits, upper) = ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    #expect(characters(\.isDigit) == digits)
    #expect(characters(\.isUpperCaseLetter) == upper)
    #expect(characters(\.isLetter) == upper + upper.lowercased())
    #expect(characters(\.isAlphanumeric) == digits + upper + upper.lowercased())
    #expect(characters(\.isWordCharacter) == digits + upper + "_" + upper.lowercased())
    #expect(characters { $0.hexDigit != nil } == digits + "ABCDEFabcdef")
  }

  @Test("Bytes are two hexadecimal digits each, read in either case")
  func hexadecimal() {
    let bytes = Array(UInt8.min ... .max)
    #expect([0x0F, 0xA0].hex == "0fa0" && [UInt8]().hex == "")
    #expect([UInt8](hex: bytes.hex.utf8) == bytes)
    #expect([UInt8](hex: bytes.hex.uppercased().utf8) == bytes)
    for text in ["0", "0g", "+1", "0x", "é"] { #expect([UInt8](hex: text.utf8) == nil) }
  }

  @Test("All but the unreserved characters is percent-encoded, and decoded again")
  func percentEncoding() {
    let text = "a+b 'é'\n-._~"
    let encoded = PercentEncoding.encoded(text)
    #expect(encoded == "a%2Bb%20%27%C3%A9%27%0A-._~")
    let decoded = PercentEncoding.decoded(encoded)
    #expect(decoded.bytes == Array(text.utf8) && decoded.isValid)
  }

  @Test(
    "A % that begins no escape stays, and the text is not valid", arguments: ["%", "%2", "%+1"])
  func damaged(text: String) {
    let decoded = PercentEncoding.decoded(text)
    #expect(decoded.bytes == Array(text.utf8) && !decoded.isValid)
  }
}
