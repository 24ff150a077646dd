import Cryptography
import Testing

@Suite("Sealed texts")
struct SealingKeyTests {
  private let key: SealingKey
  private let other: SealingKey

  init() throws {
    self.key = try #require(SealingKey(Array(0..<32)))
    self.other = try #require(SealingKey(Array(1...32)))
  }

  @Test("A sealed text of any length can be opened, and sealing it twice gives two texts")
  func roundTrips() {
    var generator = SystemRandomNumberGenerator()
    for count in Array(0...66) + [1000, 1 << 20] {
      let text = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let context = text.suffix(7).reversed() + [1]
      let sealed = self.key.seal(text, context: context)
      #expect(sealed.count == count + SealingKey.overhead)
      #expect(self.key.open(sealed, context: context) == text)
      #expect(self.key.seal(text, context: context) != sealed)
      #expect(self.key.open(sealed, context: context + [0]) == nil)
      #expect(self.other.open(sealed, context: context) == nil)
    }
  }

  @Test("A sealed text that is truncated or changed anywhere is refused")
  func damage() {
    let sealed = self.key.seal(Array("Anna Berg, +49 30 1234567".utf8), context: [1, 2, 3])
    for index in sealed.indices {
      #expect(self.key.open(Array(sealed[..<index]), context: [1, 2, 3]) == nil)
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << UInt8(bit)
        #expect(self.key.open(changed, context: [1, 2, 3]) == nil)
      }
    }
    #expect(self.key.open(sealed + [0], context: [1, 2, 3]) == nil)
  }

  @Test("Test case 16 of the GCM specification (McGrew and Viega) is opened")
  func vector() throws {
    let key = try #require(
      SealingKey(text: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"))
    let sealed = Self.bytes(
      "cafebabefacedbaddecaf888"
        + "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        + "76fc6ece0f4e1768cddf8853bb2d551b")
    let text = Self.bytes(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
    #expect(
      key.open(sealed, context: Self.bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2")) == text)
  }

  @Test(
    "A key is 64 hexadecimal digits or base64 of 32 bytes",
    arguments: [
      ("000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F", true),
      ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", true),
      ("", false), ("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e", false),
      ("+1+2+3+4+5+6+7+8+9+0+1+2+3+4+5+6+7+8+9+0+1+2+3+4+5+6+7+8+9+0+1+2", false),
      ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==", false),
      ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", false),
      ("a passphrase of thirty-two bytes", false),
    ])
  func texts(text: String, isKey: Bool) {
    #expect(SealingKey(text: text) == (isKey ? self.key : nil))
  }

  @Test("A key is named by its ID and never printed")
  func printing() {
    #expect(self.key.id != self.other.id && self.key.id.utf8.count == 16)
    var text = "\(self.key) \(String(reflecting: self.key)) "
    dump(self.key, to: &text)
    #expect(text.contains(self.key.id) && !text.contains("31") && !text.contains("1f"))
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex)
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(digits[$0...$0 + 1]), radix: 16)
    }
  }
}
