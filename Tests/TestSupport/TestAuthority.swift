import FoundationEssentials
import Glibc

/// A certificate authority made for one test by the `openssl` program, and what it signs.
package final class TestAuthority: Sendable {
  private let directory: TemporaryDirectory

  /// PEM file of the authority's certificate.
  package var certificateFile: String { "\(self.directory.path)/ca.pem" }

  /// PEM files of a server.
  package struct Server: Sendable {
    package var certificateFile: String
    package var keyFile: String
  }

  package init() throws {
    self.directory = try TemporaryDirectory()
    let path = self.directory.path
    try runProgram(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-keyout", "\(path)/ca.key", "-out", "\(path)/ca.pem", "-days", "2", "-subj", "/CN=Test CA")
  }

  /// Makes a key and a certificate.
  /// - Parameters:
  ///   - names: subject alternative names in OpenSSL's form, such as `DNS:localhost,IP:127.0.0.1`.
  ///   - days: from now on; negative for a certificate that has expired.
  ///   - key: in OpenSSL's form, such as `rsa:1024`.
  ///   - isSelfSigned: has itself as its only authority.
  package func issue(
    _ names: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2, key: String = "ec",
    isSelfSigned: Bool = false
  ) throws -> Server {
    let base = "\(self.directory.path)/\(UInt64.random(in: 0 ... .max))"
    try Data("subjectAltName=\(names)\nbasicConstraints=critical,CA:FALSE\n".utf8)
      .write(to: URL(filePath: "\(base).ext"))
    let curve = key == "ec" ? ["-pkeyopt", "ec_paramgen_curve:P-256"] : []
    try runProgram(
      ["openssl", "req", "-newkey", key] + curve + [
        "-nodes", "-keyout", "\(base).key", "-out", "\(base).csr", "-subj", "/CN=test server",
      ])
    let ca = "\(self.directory.path)/ca"
    let signer =
      isSelfSigned
      ? ["-signkey", "\(base).key"]
      : [
        "-CA", "\(ca).pem", "-CAkey", "\(ca).key", "-set_serial",
        "\(UInt32.random(in: 1 ... .max))",
      ]
    try runProgram(
      ["openssl", "x509", "-req", "-in", "\(base).csr"] + signer + [
        "-days", "\(days)", "-extfile", "\(base).ext", "-out", "\(base).pem",
      ])
    return Server(certificateFile: "\(base).pem", keyFile: "\(base).key")
  }
}
