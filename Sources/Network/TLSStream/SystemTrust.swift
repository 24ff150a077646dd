import Glibc

/// Where this machine keeps the certificates of the authorities that it trusts.
package enum SystemTrust {
  /// The usual directory, in which OpenSSL finds a certificate by its hash.
  package static let directory = "/etc/ssl/certs"
  /// Bundle files of the distributions, for systems without a hashed directory.
  static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/ssl/cert.pem",
  ]
  static let missing =
    "this machine has no CA certificates, so it trusts no server: install the package "
    + "ca-certificates, or name certificates in SSL_CERT_FILE, SSL_CERT_DIR or tls.ca_file"

  /// Whether OpenSSL's variables name the certificates.
  static var isSetByEnvironment: Bool {
    getenv("SSL_CERT_FILE") != nil || getenv("SSL_CERT_DIR") != nil
  }

  /// A variable of the environment; nil when it is unset or empty.
  package static func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// Why no server's certificate can be verified: the store is missing or empty; nil when it has certificates.
  ///
  /// - Parameter needsFile: whether a bad SSL_CERT_FILE is a problem even if SSL_CERT_DIR is good.
  package static func problem(needsFile: Bool = false) -> String? {
    let file = Self.environment("SSL_CERT_FILE")
    let isBad = needsFile && file.map(Self.hasCertificates) == false
    return Self.problem(
      file: file, directories: isBad ? nil : Self.environment("SSL_CERT_DIR"),
      usual: (Self.directory, Self.bundles))
  }

  /// - Parameters:
  ///   - file: what SSL_CERT_FILE names.
  ///   - directories: what SSL_CERT_DIR names, separated by colons.
  static func problem(
    file: String?, directories: String?, usual: (directory: String, bundles: [String])
  ) -> String? {
    let named = directories?.split(separator: ":").map(String.init) ?? []
    if let file, Self.hasCertificates(file) { return nil }
    if named.contains(where: Self.isHashed) { return nil }
    let variables =
      [file.map { "SSL_CERT_FILE=\($0)" }, directories.map { "SSL_CERT_DIR=\($0)" }]
      .compactMap(\.self)
    guard variables.isEmpty else {
      return
        "\(variables.joined(separator: " and ")) has no CA certificates, so this program trusts "
        + "no server: correct or unset it, or set tls.ca_file"
    }
    let exists =
      Self.isHashed(usual.directory) || usual.bundles.contains(where: Self.hasCertificates)
    return exists ? nil : Self.missing
  }

  /// Whether a PEM file begins or continues with a certificate.
  private static func hasCertificates(_ path: String) -> Bool {
    guard let file = fopen(path, "re") else { return false }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), file) != nil {
      let bytes = line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
      if bytes.starts(with: "-----BEGIN ".utf8), bytes.count > 20,
        String(decoding: bytes, as: UTF8.self).contains("CERTIFICATE-----")
      {
        return true
      }
    }
    return false
  }

  /// Whether `directory` has at least one entry named like OpenSSL's subject hashes: `9f2ab1c4.0`.
  package static func isHashed(_ directory: String) -> Bool {
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
