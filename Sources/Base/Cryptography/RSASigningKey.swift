internal import COpenSSL

/// A private RSA key that signs (RSASSA-PKCS1-v1_5 with SHA-256, RFC 8017 section 8.2). Prints
/// without its value.
///
/// Used from any thread: OpenSSL counts references to a key atomically, and signing does not change
/// it.
package final class RSASigningKey: @unchecked Sendable {
  // Guard: immutable after `init`; every signature has a context of its own.
  private let key: OpaquePointer  // EVP_PKEY *

  /// PKCS#1 of 16,384 bits takes 13 KB; certificates may stand beside it.
  static let maxByteCount = 64 << 10
  /// RFC 7518 section 3.3 requires 2,048; a signature with more than 8,192 takes a second.
  static let bitCounts = 2048...8192

  /// Takes a key in PEM form, PKCS#1 (`RSA PRIVATE KEY`) or PKCS#8 (`PRIVATE KEY`), unencrypted.
  ///
  /// What stands beside it, such as the certificate, is skipped.
  ///
  /// - Parameter file: where the key comes from, for the commands in messages; nil when it is not
  ///   in a file.
  package init(pem: [UInt8], file: String?) throws(SigningKeyError) {
    let block = try PEMBlock.privateKey(in: pem, file: file)
    guard let key = Self.read(block.bytes) else {
      throw SigningKeyError(
        .unreadable,
        "cannot be read: the text between BEGIN and END is damaged; copy the file again, with its "
          + "line ends")
    }
    do throws(SigningKeyError) {
      try Self.check(key)
    } catch {
      EVP_PKEY_free(key)
      throw error
    }
    self.key = key
  }

  deinit { EVP_PKEY_free(self.key) }

  /// The signature of a message, as long as the key's modulus.
  package func sign(_ message: [UInt8]) -> [UInt8] {
    defer { ERR_clear_error() }
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL: out of memory") }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, self.key) == 1 else {
      preconditionFailure("OpenSSL: RSA with SHA-256 was refused for a key that was accepted")
    }
    var count = Int(EVP_PKEY_get_size(self.key))
    return [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      guard
        EVP_DigestSign(context, bytes.baseAddress, &count, message, message.count) == 1
      else { preconditionFailure("OpenSSL: signing failed with a key that was accepted") }
      filled = count
    }
  }

  /// The `EVP_PKEY *` of a PEM text, which the caller frees; nil when OpenSSL cannot read it.
  private static func read(_ pem: [UInt8]) -> OpaquePointer? {
    defer { ERR_clear_error() }
    guard let input = BIO_new_mem_buf(pem, Int32(pem.count)) else {
      preconditionFailure("OpenSSL: out of memory")
    }
    defer { BIO_free(input) }
    // Without a callback of ours, OpenSSL would ask for a passphrase on the terminal.
    return PEM_read_bio_PrivateKey(input, nil, { _, _, _, _ in -1 }, nil)
  }

  private static func check(_ key: OpaquePointer) throws(SigningKeyError) {
    defer { ERR_clear_error() }
    guard EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA else {
      let name = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "an unknown kind"
      throw PEMBlock.otherAlgorithm(name)
    }
    let bitCount = Int(EVP_PKEY_get_bits(key))
    guard Self.bitCounts.contains(bitCount) else {
      throw SigningKeyError(
        .size,
        "is an RSA key of \(bitCount) bits, and keys from \(Self.bitCounts.lowerBound) to "
          + "\(Self.bitCounts.upperBound) bits are accepted; make another with openssl genrsa 2048, "
          + "and upload its certificate to the app")
    }
    // A system policy (FIPS, crypto-policies) may forbid what the key is for.
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL: out of memory") }
    defer { EVP_MD_CTX_free(context) }
    var count = 0
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
      EVP_DigestSign(context, nil, &count, [UInt8(0)], 1) == 1
    else {
      throw SigningKeyError(
        .unreadable, "cannot sign: the system's OpenSSL refuses RSA with SHA-256 for this key")
    }
    // A key whose numbers do not belong together fails here and not in the middle of a run.
    let isSound = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { bytes in
      EVP_DigestSign(context, bytes.baseAddress, &count, [UInt8(0)], 1) == 1
    }
    guard isSound else {
      throw SigningKeyError(.unreadable, "cannot sign: its numbers do not belong together")
    }
  }
}

extension RSASigningKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "RSA key (redacted)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
