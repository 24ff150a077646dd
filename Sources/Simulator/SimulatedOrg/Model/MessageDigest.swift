internal import COpenSSL

/// MD5 and SHA-256 through OpenSSL's EVP interface.
package enum MessageDigest {
  private static let lowerHex = Array("0123456789abcdef".utf8)

  /// `schema_id` of the service: unpadded base64url of the MD5 of the canonical form
  /// (EventSchemas.md#schema-id).
  static func schemaID(ofCanonicalForm text: String) -> String {
    base64URL(Self.digest(Array(text.utf8)[...], EVP_md5(), byteCount: 16))
  }

  /// Lower-case hex of the SHA-256 of `bytes`, 64 characters.
  package static func sha256Hex(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    let digest = Self.digest(bytes, EVP_sha256(), byteCount: 32)
    return digest.flatMap { [Self.lowerHex[Int($0 >> 4)], Self.lowerHex[Int($0 & 15)]] }
  }

  private static func digest(
    _ bytes: ArraySlice<UInt8>, _ algorithm: OpaquePointer?, byteCount: Int
  ) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { output, count in
      let status = bytes.withUnsafeBytes {
        EVP_Digest($0.baseAddress, $0.count, output.baseAddress, nil, algorithm, nil)
      }
      precondition(status == 1, "EVP_Digest failed: no memory, or the algorithm is disabled")
      count = byteCount
    }
  }

  static func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let left = min(3, bytes.count - index)
      var group = UInt32(bytes[index]) << 16
      if left > 1 { group |= UInt32(bytes[index + 1]) << 8 }
      if left > 2 { group |= UInt32(bytes[index + 2]) }
      for position in 0...left {
        text.append(alphabet[Int(group >> (18 - 6 * UInt32(position))) & 63])
      }
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }
}
