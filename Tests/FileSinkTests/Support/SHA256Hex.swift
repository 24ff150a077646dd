import Cryptography

enum SHA256Hex {
  static func of(_ bytes: [UInt8]) -> String { SHA256.hash(of: bytes).hex }
}
