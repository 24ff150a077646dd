internal import COpenSSL

/// MD5 (RFC 1321), for identifiers that formats define by it; not for security.
package struct MD5: ~Copyable {
  private var context: DigestContext

  /// Throws where OpenSSL runs in FIPS mode, which has no MD5.
  package init() throws(DigestError) { self.context = try DigestContext(EVP_md5()) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) { self.context.update(bytes) }

  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { self.context.update($0) }
  }

  /// The hash of the bytes so far; more may follow.
  package borrowing func snapshot() -> HashValue { self.context.copy().finish() }

  package static func hash(of bytes: [UInt8]) throws(DigestError) -> HashValue {
    var hash = try MD5()
    hash.update(bytes)
    return hash.snapshot()
  }
}
