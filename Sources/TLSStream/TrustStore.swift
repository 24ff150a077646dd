import COpenSSL
import EventLoop
import Glibc

/// Loading the certificates a client trusts into an `SSL_CTX`.
enum TrustStore {
  /// Bundle files of the distributions, for systems without a hashed directory.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/ssl/cert.pem",
  ]

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
    if getenv(X509_get_default_cert_file_env()) != nil
      || getenv(X509_get_default_cert_dir_env()) != nil
    {
      guard SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw TLSError(
          .badConfiguration, "SSL_CERT_FILE or SSL_CERT_DIR: \(OpenSSLErrors.drain())")
      }
      return
    }
    // A hashed directory is read on demand; parsing a bundle costs 20 to 30 ms at every start.
    if let directory = X509_get_default_cert_dir().map({ String(cString: $0) }),
      Self.isHashed(directory), SSL_CTX_load_verify_locations(context, nil, directory) == 1
    {
      return
    }
    let standard = X509_get_default_cert_file().map { [String(cString: $0)] } ?? []
    for file in standard + Self.bundles where access(file, R_OK) == 0 {
      ERR_clear_error()
      if SSL_CTX_load_verify_locations(context, file, nil) == 1 { return }
    }
    ERR_clear_error()
    throw TLSError(
      .badConfiguration,
      "the system has no trusted certificates; install ca-certificates, or name a CA file")
  }

  /// Whether `directory` has at least one entry named like OpenSSL's subject hashes: `9f2ab1c4.0`.
  static func isHashed(_ directory: String) -> Bool {
    guard let handle = opendir(directory) else { return false }
    defer { closedir(handle) }
    while let entry = readdir(handle) {
      let isHash = withUnsafeBytes(of: &entry.pointee.d_name) { name in
        let name = name.prefix { $0 != 0 }
        guard name.count >= 10, name[8] == UInt8(ascii: ".") else { return false }
        return name.prefix(8).allSatisfy(Self.isHexDigit)
          && name.dropFirst(9).allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      }
      if isHash { return true }
    }
    return false
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }
}
