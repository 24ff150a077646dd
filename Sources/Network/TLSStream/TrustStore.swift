import COpenSSL
import EventLoop
import Glibc

/// Loading the certificates a client trusts into an `SSL_CTX`.
enum TrustStore {
  static func load(_ trust: TLSContext.Trust, into context: OpaquePointer) throws(TLSError) {
    ERR_clear_error()
    switch trust {
    case .file(let path):
      guard SSL_CTX_load_verify_locations(context, path, nil) == 1 else {
        if let error = SystemCallError.exhaustion(opening: path) {
          ERR_clear_error()
          throw TLSError(.system, "trusted certificates '\(path)': \(error)")
        }
        let reason =
          access(path, R_OK) == 0
          ? "contains no certificate in PEM format (\(OpenSSLErrors.drain()))"
          : SystemCallError.text(of: errno)
        ERR_clear_error()
        throw TLSError(.badConfiguration, "trusted certificates '\(path)': \(reason)")
      }
      // An intermediate or leaf that is listed is trusted by itself, as in libcurl.
      X509_VERIFY_PARAM_set_flags(
        SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
    case .system:
      try Self.loadSystem(into: context)
    }
  }

  private static func loadSystem(into context: OpaquePointer) throws(TLSError) {
    if SystemTrust.isSetByEnvironment {
      guard SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw TLSError(
          .badConfiguration, "SSL_CERT_FILE or SSL_CERT_DIR: \(OpenSSLErrors.drain())")
      }
      return
    }
    // A hashed directory is read on demand; parsing a bundle costs 20 to 30 ms at every start.
    if let directory = X509_get_default_cert_dir().map({ String(cString: $0) }),
      SystemTrust.isHashed(directory), SSL_CTX_load_verify_locations(context, nil, directory) == 1
    {
      return
    }
    let standard = X509_get_default_cert_file().map { [String(cString: $0)] } ?? []
    for file in standard + SystemTrust.bundles where access(file, R_OK) == 0 {
      ERR_clear_error()
      if SSL_CTX_load_verify_locations(context, file, nil) == 1 { return }
    }
    ERR_clear_error()
    throw TLSError(
      .badConfiguration, SystemTrust.problem() ?? SystemTrust.missing)
  }

  /// The organization that issued a certificate, else its name; printable characters only.
  static func issuer(of certificate: OpaquePointer) -> String? {
    guard let name = X509_get_issuer_name(certificate) else { return nil }
    for part in [NID_organizationName, NID_commonName] {
      var text = [CChar](repeating: 0, count: 128)
      guard X509_NAME_get_text_by_NID(name, part, &text, Int32(text.count)) > 0 else { continue }
      let bytes = text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
      let printable = bytes.filter { (0x20...0x7e).contains($0) }
      if !printable.isEmpty { return String(decoding: printable, as: UTF8.self) }
    }
    return nil
  }
}
