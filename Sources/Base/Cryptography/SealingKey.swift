internal import Bytes
internal import COpenSSL

/// A key that seals texts so that only its holders can read them, and nobody can change them unseen
/// (AES-256-GCM, NIST SP 800-38D). Prints without its value.
package struct SealingKey: Sendable, Equatable {
  /// Names the key without telling it: 16 hexadecimal digits.
  package let id: String
  private let bytes: [UInt8]

  /// The length of the key.
  package static let byteCount = 32
  /// 96 bits, the length that the mode is made for. Random ones are safe for 2^32 texts of a key.
  private static let nonceByteCount = 12
  private static let tagByteCount = 16
  /// What a sealed text has more than the text.
  package static let overhead = Self.nonceByteCount + Self.tagByteCount

  /// - Returns: nil unless there are `byteCount` bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
    let named = Array("pubsub-etl key ID of AES-256-GCM\0".utf8) + bytes
    self.id = HashValue(bytes: Array(SHA256.hash(of: named).bytes.prefix(8))).hex
  }

  /// Takes 64 hexadecimal digits, or base64 with padding, as `openssl rand -hex 32` and
  /// `openssl rand -base64 32` print a key.
  package init?(text: String) {
    let isHex = text.utf8.count == 2 * Self.byteCount
    guard let bytes = isHex ? [UInt8](hex: text.utf8) : [UInt8](base64: text) else { return nil }
    self.init(bytes)
  }

  /// Seals a text under a nonce of its own.
  ///
  /// - Parameter context: what the text belongs to. It is not part of the result, and `open` must be
  ///   given the same.
  /// - Returns: nonce, ciphertext and tag.
  package func seal(_ text: [UInt8], context: [UInt8]) -> [UInt8] {
    let cipher = GCMContext()
    return [UInt8](unsafeUninitializedCapacity: text.count + Self.overhead) { sealed, count in
      // The closure is called with room for at least one byte, so there is an address.
      guard let nonce = sealed.baseAddress else { preconditionFailure("no room for a nonce") }
      // Every provider has a generator that is seeded by the system; TLS would not start without.
      guard RAND_bytes(nonce, Int32(Self.nonceByteCount)) == 1 else {
        preconditionFailure("OpenSSL gives no random numbers")
      }
      let body = nonce + Self.nonceByteCount
      cipher.encrypt(
        text, key: self.bytes, nonce: nonce, context: context, into: body,
        tag: body + text.count, tagByteCount: Self.tagByteCount)
      count = text.count + Self.overhead
    }
  }

  /// - Returns: nil for what this key has not sealed in this context.
  package func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? {
    guard sealed.count >= Self.overhead else { return nil }
    let cipher = GCMContext()
    let body = sealed[Self.nonceByteCount..<sealed.count - Self.tagByteCount]
    var tag = Array(sealed.suffix(Self.tagByteCount))
    return cipher.decrypt(
      Array(body), key: self.bytes, nonce: Array(sealed.prefix(Self.nonceByteCount)),
      context: context, tag: &tag)
  }
}

extension SealingKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "key \(self.id)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: ["id": self.id]) }
}
