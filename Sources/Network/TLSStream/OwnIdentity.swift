import COpenSSL
import EventLoop
import Glibc

/// Loading the certificate chain and key that prove who we are into an `SSL_CTX`.
enum OwnIdentity {
  static func load(_ identity: TLSContext.Identity, into context: OpaquePointer) throws(TLSError) {
    ERR_clear_error()
    // Without it OpenSSL would ask on the terminal for the passphrase of an encrypted key.
    SSL_CTX_set_default_passwd_cb(context, noPassphrase)
    switch identity {
    case .files(let chain, let key):
      for file in [chain, key] where access(file, R_OK) != 0 {
        throw TLSError(
          .badConfiguration, "certificate or key '\(file)': \(SystemCallError.text(of: errno))")
      }
      guard SSL_CTX_use_certificate_chain_file(context, chain) == 1 else {
        try Self.checkDescriptors(chain)
        throw TLSError(
          .badConfiguration, "certificate chain '\(chain)': \(OpenSSLErrors.drain())")
      }
      guard SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 else {
        try Self.checkDescriptors(key)
        throw Self.keyError("private key '\(key)'")
      }
    case .pem(let chain, let key):
      try Self.withBIO(chain) { bio throws(TLSError) in try Self.loadChain(bio, into: context) }
      try Self.withBIO(key) { bio throws(TLSError) in try Self.loadKey(bio, into: context) }
    }
    guard SSL_CTX_check_private_key(context) == 1 else {
      throw TLSError(
        .badConfiguration,
        "the private key does not belong to the certificate: "
          + OpenSSLErrors.drain())
    }
  }

  /// Gives a copy of `pem` to OpenSSL as an input that it can read from.
  private static func withBIO(
    _ pem: [UInt8], _ body: (OpaquePointer?) throws(TLSError) -> Void
  ) throws(TLSError) {
    let bio = BIO_new(BIO_s_mem())  // BIO *
    defer { BIO_free(bio) }
    guard BIO_write(bio, pem, Int32(clamping: pem.count)) == pem.count else {
      throw TLSError(.badConfiguration, "PEM text: \(OpenSSLErrors.drain())")
    }
    try body(bio)
  }

  private static func loadChain(
    _ bio: OpaquePointer?, into context: OpaquePointer
  ) throws(TLSError) {
    var count = 0
    while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
      if count == 0 {
        let code = SSL_CTX_use_certificate(context, certificate)  // takes a reference of its own
        X509_free(certificate)
        guard code == 1 else {
          throw TLSError(.badConfiguration, "certificate: \(OpenSSLErrors.drain())")
        }
      } else if c_SSL_CTX_add0_chain_cert(context, certificate) != 1 {  // takes over ours
        X509_free(certificate)
        throw TLSError(.badConfiguration, "certificate \(count + 1): \(OpenSSLErrors.drain())")
      }
      count += 1
    }
    guard count > 0 else {
      throw TLSError(.badConfiguration, "certificate chain: \(OpenSSLErrors.drain())")
    }
    ERR_clear_error()  // the end of the text was reported as "no start line"
  }

  private static func loadKey(
    _ bio: OpaquePointer?, into context: OpaquePointer
  ) throws(TLSError) {
    guard let key = PEM_read_bio_PrivateKey(bio, nil, noPassphrase, nil) else {
      throw Self.keyError("private key")
    }
    defer { EVP_PKEY_free(key) }
    guard SSL_CTX_use_PrivateKey(context, key) == 1 else { throw Self.keyError("private key") }
  }

  /// Throws when a file cannot be opened because no descriptor is free.
  private static func checkDescriptors(_ file: String) throws(TLSError) {
    guard let error = SystemCallError.exhaustion(opening: file) else { return }
    ERR_clear_error()
    throw TLSError(.system, "certificate or key '\(file)': \(error)")
  }

  /// Why the call before could not use a key.
  private static func keyError(_ key: String) -> TLSError {
    let isMismatch = ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH
    let reasons = OpenSSLErrors.drain()
    return TLSError(
      .badConfiguration,
      isMismatch
        ? "\(key): the private key does not belong to the certificate"
        : "\(key): \(reasons); expected a PEM key without passphrase")
  }
}

/// There is none: encrypted keys are not accepted.
private func noPassphrase(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ isWriting: Int32,
  _ argument: UnsafeMutableRawPointer?
) -> Int32 { -1 }
