internal import TLSStream

/// The places of trusted certificates.
struct CertificatePaths: Sendable {
  /// Both nil: as curl was built.
  var file: String?
  var directory: String?
  private let isSystem: Bool

  /// A named file counts alone; else what OpenSSL's variables say; else the system's hashed
  /// directory, of which only the needed file is read (a bundle costs 20 ms to load); else curl's
  /// default.
  init(caFile: String?) {
    self.isSystem = caFile == nil
    if let caFile {
      self.file = caFile
      return
    }
    self.file = SystemTrust.environment("SSL_CERT_FILE")
    self.directory = SystemTrust.environment("SSL_CERT_DIR")
    if self.file == nil, self.directory == nil, SystemTrust.isHashed(SystemTrust.directory) {
      self.directory = SystemTrust.directory
    }
  }

  var isCurlDefault: Bool { self.file == nil && self.directory == nil }

  /// Why no server is trusted, when the system's store is to blame.
  var problem: String? { self.isSystem ? SystemTrust.problem(needsFile: true) : nil }
}
