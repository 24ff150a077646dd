internal import Glibc

/// The places of trusted certificates.
struct CertificatePaths: Sendable {
  /// Both nil: as curl was built.
  var file: String?
  var directory: String?

  /// A named file counts alone; else what OpenSSL's variables say; else the system's hashed
  /// directory, of which only the needed file is read (a bundle costs 20 ms to load); else curl's
  /// default.
  init(caFile: String?) {
    if let caFile {
      self.file = caFile
      return
    }
    self.file = Self.environment("SSL_CERT_FILE")
    self.directory = Self.environment("SSL_CERT_DIR")
    let system = "/etc/ssl/certs"
    if self.file == nil, self.directory == nil, Self.isHashed(system) { self.directory = system }
  }

  var isCurlDefault: Bool { self.file == nil && self.directory == nil }

  private static func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// True when the directory has names such as `5ed36f99.0`, made by `openssl rehash`.
  private static func isHashed(_ path: String) -> Bool {
    guard let directory = opendir(path) else { return false }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        bytes.prefix { $0 != 0 }.map { $0 }
      }
      let isHash = name.prefix(8).allSatisfy { byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
      }
      if name.count == 10, isHash, name[8] == UInt8(ascii: "."), name[9] == UInt8(ascii: "0") {
        return true
      }
    }
    return false
  }
}
