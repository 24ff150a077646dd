import FoundationEssentials
import TestSupport
import Testing

@testable import TLSStream

@Suite("Store of trusted certificates")
struct SystemTrustTests {
  let directory: TemporaryDirectory
  let authority: TestAuthority
  init() throws {
    self.directory = try TemporaryDirectory()
    self.authority = try TestAuthority()
  }

  private var certificate: String { self.authority.certificateFile }

  private func file(_ name: String, _ text: String = "") throws -> String {
    let path = "\(self.directory.path)/\(name)"
    try Data(text.utf8).write(to: URL(filePath: path))
    return path
  }

  @Test("Without a certificate store, the message advises to install ca-certificates")
  func missing() throws {
    for bundle in ["\(self.directory.path)/none.crt", try self.file("empty.crt")] {
      let problem = SystemTrust.problem(
        file: nil, directories: nil, usual: (self.directory.path, [bundle]))
      #expect(problem?.contains("package ca-certificates") == true)
      #expect(problem?.contains("SSL_CERT_FILE, SSL_CERT_DIR or tls.ca_file") == true)
    }
  }

  @Test("A variable that names no certificates is named") func variables() throws {
    let empty = try self.file("empty.pem", "no certificate\n")
    for file in ["/no/such.pem", empty] {
      let problem = SystemTrust.problem(
        file: file, directories: nil, usual: (self.directory.path, [self.certificate]))
      #expect(problem?.contains("SSL_CERT_FILE=\(file) has no CA certificates") == true)
    }
    let problem = SystemTrust.problem(
      file: nil, directories: self.directory.path, usual: (self.directory.path, []))
    #expect(problem?.contains("SSL_CERT_DIR=\(self.directory.path)") == true)
  }

  @Test("A store with certificates has no problem") func present() throws {
    let usual = (directory: self.directory.path, bundles: [self.certificate])
    #expect(SystemTrust.problem(file: nil, directories: nil, usual: usual) == nil)
    #expect(
      SystemTrust.problem(file: self.certificate, directories: nil, usual: (usual.0, [])) == nil)
    _ = try self.file("9f2ab1c4.0")
    #expect(
      SystemTrust.problem(
        file: nil, directories: "/none:\(self.directory.path)", usual: ("/none", [])) == nil)
    #expect(
      SystemTrust.problem(file: nil, directories: nil, usual: (self.directory.path, [])) == nil)
  }
}
