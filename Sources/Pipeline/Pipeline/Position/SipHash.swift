/// SipHash-2-4 (Aumasson and Bernstein, 2012) of words, and of byte strings made into words.
///
/// Stored with positions, so it must not change. Its key is that of the paper's test vectors.
struct SipHash {
  private var v0: UInt64 = 0x736f_6d65_7073_6575 ^ Self.key.0
  private var v1: UInt64 = 0x646f_7261_6e64_6f6d ^ Self.key.1
  private var v2: UInt64 = 0x6c79_6765_6e65_7261 ^ Self.key.0
  private var v3: UInt64 = 0x7465_6462_7974_6573 ^ Self.key.1
  private var wordCount: UInt64 = 0

  private static let key: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)

  @inline(__always)
  mutating func add(_ word: UInt64) {
    self.v3 ^= word
    self.round()
    self.round()
    self.v0 ^= word
    self.wordCount += 1
  }

  /// Adds the number of bytes, then the bytes, filled up with zeros to a multiple of 8.
  @inline(__always)  // so that the state stays in registers
  mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.add(UInt64(bytes.count))
    let raw = UnsafeRawBufferPointer(bytes)
    var offset = 0
    while offset + 8 <= raw.count {
      self.add(UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      offset += 8
    }
    guard offset < raw.count else { return }
    var rest: UInt64 = 0
    for index in offset..<raw.count { rest |= UInt64(raw[index]) << UInt64((index - offset) * 8) }
    self.add(rest)
  }

  /// The hash of everything added; nothing may be added afterwards.
  @inline(__always)
  mutating func finish() -> UInt64 {
    // The last word has the number of bytes, modulo 256, in its highest byte.
    self.add(self.wordCount << 59)
    self.v2 ^= 0xFF
    for _ in 0..<4 { self.round() }
    return self.v0 ^ self.v1 ^ self.v2 ^ self.v3
  }

  @inline(__always)
  private mutating func round() {
    self.v0 &+= self.v1
    self.v1 = self.v1 << 13 | self.v1 >> 51
    self.v1 ^= self.v0
    self.v0 = self.v0 << 32 | self.v0 >> 32
    self.v2 &+= self.v3
    self.v3 = self.v3 << 16 | self.v3 >> 48
    self.v3 ^= self.v2
    self.v0 &+= self.v3
    self.v3 = self.v3 << 21 | self.v3 >> 43
    self.v3 ^= self.v0
    self.v2 &+= self.v1
    self.v1 = self.v1 << 17 | self.v1 >> 47
    self.v1 ^= self.v2
    self.v2 = self.v2 << 32 | self.v2 >> 32
  }
}
