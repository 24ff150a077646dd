internal import COpenSSL

/// SHA-256 (FIPS 180-4), computed as bytes come.
package struct SHA256: ~Copyable {
  private var context: DigestContext

  package init() {
    do {
      self.context = try DigestContext(EVP_sha256())
    } catch {
      // Every OpenSSL 3 provider has SHA-256, the FIPS one included; TLS would not start without.
      preconditionFailure("\(error)")
    }
  }

  private init(_ context: consuming DigestContext) { self.context = context }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) { self.context.update(bytes) }

  package mutating func update(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.context.update(UnsafeRawBufferPointer(bytes))
  }

  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { self.context.update($0) }
  }

  /// A second computation that continues from here.
  package borrowing func copy() -> SHA256 { SHA256(self.context.copy()) }

  /// The hash of the bytes so far; more may follow.
  package borrowing func snapshot() -> HashValue { self.context.copy().finish() }

  package static func hash(of bytes: [UInt8]) -> HashValue {
    var hash = SHA256()
    hash.update(bytes)
    return hash.snapshot()
  }

  package static func hash(of bytes: UnsafeRawBufferPointer) -> HashValue {
    var hash = SHA256()
    hash.update(bytes)
    return hash.snapshot()
  }
}
