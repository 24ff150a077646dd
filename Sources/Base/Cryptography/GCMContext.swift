internal import COpenSSL

/// Owns one computation of AES-256-GCM.
struct GCMContext: ~Copyable {
  private let context: OpaquePointer  // EVP_CIPHER_CTX *

  init() {
    guard let context = EVP_CIPHER_CTX_new() else { preconditionFailure("OpenSSL: out of memory") }
    self.context = context
  }

  deinit { EVP_CIPHER_CTX_free(self.context) }

  /// - Parameters:
  ///   - output: room for as many bytes as `text` has.
  ///   - tag: room for `tagByteCount` bytes.
  func encrypt(
    _ text: [UInt8], key: [UInt8], nonce: UnsafePointer<UInt8>, context: [UInt8],
    into output: UnsafeMutablePointer<UInt8>, tag: UnsafeMutablePointer<UInt8>, tagByteCount: Int
  ) {
    var count: Int32 = 0
    // Every OpenSSL 3 provider has AES-256-GCM, the FIPS one included.
    guard EVP_EncryptInit_ex(self.context, EVP_aes_256_gcm(), nil, key, nonce) == 1,
      EVP_EncryptUpdate(self.context, nil, &count, context, Int32(context.count)) == 1,
      EVP_EncryptUpdate(self.context, output, &count, text, Int32(text.count)) == 1,
      EVP_EncryptFinal_ex(self.context, output + Int(count), &count) == 1,
      EVP_CIPHER_CTX_ctrl(self.context, EVP_CTRL_GCM_GET_TAG, Int32(tagByteCount), tag) == 1
    else { preconditionFailure("OpenSSL: AES-256-GCM refused to encrypt") }
  }

  /// - Returns: nil when the tag is not that of these bytes, nonce and context.
  func decrypt(
    _ sealed: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8], tag: inout [UInt8]
  ) -> [UInt8]? {
    defer { ERR_clear_error() }
    var isWhole = false
    let text = [UInt8](unsafeUninitializedCapacity: max(sealed.count, 1)) { output, filled in
      var count: Int32 = 0
      guard let start = output.baseAddress,
        EVP_DecryptInit_ex(self.context, EVP_aes_256_gcm(), nil, key, nonce) == 1,
        EVP_DecryptUpdate(self.context, nil, &count, context, Int32(context.count)) == 1,
        EVP_DecryptUpdate(self.context, start, &count, sealed, Int32(sealed.count)) == 1,
        EVP_CIPHER_CTX_ctrl(self.context, EVP_CTRL_GCM_SET_TAG, Int32(tag.count), &tag) == 1
      else { preconditionFailure("OpenSSL: AES-256-GCM refused to decrypt") }
      isWhole = EVP_DecryptFinal_ex(self.context, start + Int(count), &count) == 1
      filled = isWhole ? sealed.count : 0
    }
    return isWhole ? text : nil
  }
}
