internal import COpenSSL

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1) under one key. Used by one thread at a time; prints
/// without its key.
package final class HMACSHA256 {
  private let context: OpaquePointer  // EVP_MAC_CTX *
  private let key: [UInt8]

  /// The size of a result.
  package static let byteCount = 32

  package init(key: [UInt8]) {
    self.key = key
    // Every OpenSSL 3 provider has HMAC and SHA-256, the FIPS one included.
    guard let mac = EVP_MAC_fetch(nil, "HMAC", nil) else {
      preconditionFailure("OpenSSL does not offer HMAC")
    }
    defer { EVP_MAC_free(mac) }
    guard let context = EVP_MAC_CTX_new(mac) else { preconditionFailure("OpenSSL: out of memory") }
    self.context = context
    var name = "SHA256".utf8CString
    let isReady = name.withUnsafeMutableBufferPointer { name in
      let parameters = [
        OSSL_PARAM_construct_utf8_string("digest", name.baseAddress, 0),
        OSSL_PARAM_construct_end(),
      ]
      return EVP_MAC_init(context, key, key.count, parameters) == 1
    }
    guard isReady else { preconditionFailure("OpenSSL refuses HMAC with SHA-256") }
  }

  deinit { EVP_MAC_CTX_free(self.context) }

  /// Writes the code of a message, `byteCount` bytes.
  package func authenticate(
    _ message: UnsafeBufferPointer<UInt8>, into output: UnsafeMutablePointer<UInt8>
  ) {
    var count = 0
    // With the key again: releases before 3.0.3 do not start again without it.
    guard EVP_MAC_init(self.context, self.key, self.key.count, nil) == 1,
      EVP_MAC_update(self.context, message.baseAddress, message.count) == 1,
      EVP_MAC_final(self.context, output, &count, Self.byteCount) == 1, count == Self.byteCount
    else { preconditionFailure("OpenSSL: HMAC with an accepted key failed") }
  }
}

extension HMACSHA256 {
  /// The code of one message.
  package static func code(of message: [UInt8], key: [UInt8]) -> HashValue {
    let mac = HMACSHA256(key: key)
    return HashValue(
      bytes: [UInt8](unsafeUninitializedCapacity: Self.byteCount) { bytes, count in
        // The closure is called with room for as many bytes as it was asked for.
        guard let output = bytes.baseAddress else { return }
        message.withUnsafeBufferPointer { mac.authenticate($0, into: output) }
        count = Self.byteCount
      })
  }
}

extension HMACSHA256: CustomStringConvertible, CustomReflectable {
  package var description: String { "HMAC-SHA-256 (key redacted)" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
