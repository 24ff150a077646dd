internal import COpenSSL

/// Owns one running computation of libcrypto.
struct DigestContext: ~Copyable {
  private let context: OpaquePointer  // EVP_MD_CTX *
  private let byteCount: Int

  /// - Parameter function: from `EVP_sha256()` and its like; the library owns it.
  init(_ function: OpaquePointer) throws(DigestError) {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL: out of memory") }
    guard EVP_DigestInit_ex(context, function, nil) == 1 else {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
      throw DigestError(
        message: "OpenSSL does not offer this hash function; a FIPS configuration may forbid it")
    }
    self.context = context
    self.byteCount = Int(EVP_MD_get_size(function))
  }

  private init(copyOf other: borrowing DigestContext) {
    guard let context = EVP_MD_CTX_new(), EVP_MD_CTX_copy_ex(context, other.context) == 1 else {
      preconditionFailure("OpenSSL: out of memory")
    }
    self.context = context
    self.byteCount = other.byteCount
  }

  deinit { EVP_MD_CTX_free(self.context) }

  borrowing func copy() -> DigestContext { DigestContext(copyOf: self) }

  func update(_ bytes: UnsafeRawBufferPointer) {
    guard EVP_DigestUpdate(self.context, bytes.baseAddress, bytes.count) == 1 else {
      preconditionFailure("OpenSSL: an initialised digest refused data")
    }
  }

  /// Ends the computation; the context is of no use afterwards.
  consuming func finish() -> HashValue {
    HashValue(
      bytes: [UInt8](unsafeUninitializedCapacity: self.byteCount) { bytes, count in
        guard EVP_DigestFinal_ex(self.context, bytes.baseAddress, nil) == 1 else {
          preconditionFailure("OpenSSL: an initialised digest gave no result")
        }
        count = self.byteCount
      })
  }
}

/// The system's OpenSSL refuses a hash function.
public struct DigestError: Error, Sendable, CustomStringConvertible {
  public let message: String

  public var description: String { self.message }
}
