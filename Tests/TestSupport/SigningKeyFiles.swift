import FoundationEssentials

/// Keys made for one test by the `openssl` program, in all the forms in which users have them.
package final class SigningKeyFiles: Sendable {
  private let directory: TemporaryDirectory

  /// PKCS#8, `-----BEGIN PRIVATE KEY-----`.
  package var privateKey: String { self.path("key.pem") }
  /// The public half of the same key.
  package var publicKey: String { self.path("key.pub") }
  /// Self-signed, of the same key.
  package var certificate: String { self.path("key.crt") }

  /// An RSA key of 2,048 bits.
  package init() throws {
    self.directory = try TemporaryDirectory()
    try runProgram("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-out", self.privateKey)
    try runProgram("openssl", "pkey", "-in", self.privateKey, "-pubout", "-out", self.publicKey)
    try runProgram(
      "openssl", "req", "-x509", "-new", "-key", self.privateKey, "-out", self.certificate,
      "-days", "2", "-subj", "/CN=pubsub-etl")
  }

  /// Where a file of that name is, or is to be made.
  package func path(_ name: String) -> String { "\(self.directory.path)/\(name)" }

  package static func content(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: path)))
  }
}
