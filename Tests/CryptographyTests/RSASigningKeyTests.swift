import FoundationEssentials
import TestSupport
import Testing

@testable import Cryptography

@Suite("RSA keys for signatures")
struct RSASigningKeyTests {
  let files: SigningKeyFiles
  init() throws { self.files = try SigningKeyFiles() }

  /// Makes a file with `openssl`, whose arguments name it as `OUT` and the key as `KEY`.
  private func make(_ name: String, _ arguments: [String]) throws -> String {
    let path = self.files.path(name)
    try runProgram(
      ["openssl"]
        + arguments.map {
          switch $0 {
          case "OUT": path
          case "KEY": self.files.privateKey
          default: $0
          }
        })
    return path
  }

  private func refusal(_ path: String) throws -> SigningKeyError {
    try #require(throws: SigningKeyError.self) {
      _ = try RSASigningKey(pem: try SigningKeyFiles.content(path), file: path)
    }
  }

  private func verifies(_ signature: [UInt8], _ message: [UInt8]) throws -> Bool {
    let (signed, message) = (Data(signature), Data(message))
    try signed.write(to: URL(filePath: self.files.path("signature")))
    try message.write(to: URL(filePath: self.files.path("message")))
    do {
      try runProgram(
        "openssl", "dgst", "-sha256", "-verify", self.files.publicKey, "-signature",
        self.files.path("signature"), self.files.path("message"))
      return true
    } catch is ProgramFailure { return false }
  }

  @Test("PKCS#8 and PKCS#1 keys give the same signature, which openssl verifies")
  func signs() throws {
    let traditional = try self.make(
      "rsa.pem", ["rsa", "-in", "KEY", "-traditional", "-out", "OUT"])
    #expect(
      String(decoding: try SigningKeyFiles.content(traditional), as: UTF8.self)
        .hasPrefix("-----BEGIN RSA PRIVATE KEY-----"))
    let message = Array("header.claims".utf8)
    let signature = try RSASigningKey(
      pem: SigningKeyFiles.content(self.files.privateKey), file: nil
    ).sign(message)
    #expect(signature.count == 256)
    #expect(try self.verifies(signature, message))
    #expect(try !self.verifies(signature, message + [0]))
    let other = try RSASigningKey(pem: SigningKeyFiles.content(traditional), file: nil)
    // PKCS#1 v1.5 has no random part.
    #expect(other.sign(message) == signature)
  }

  @Test("The file may also hold the certificate and have CRLF line ends")
  func surroundings() throws {
    let key = try SigningKeyFiles.content(self.files.privateKey)
    let certificate = try SigningKeyFiles.content(self.files.certificate)
    let lines = key.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] }
    for pem in [certificate + key, key + certificate, Array("Bag: x\n".utf8) + key, lines] {
      _ = try RSASigningKey(pem: pem, file: nil)
    }
  }

  @Test(
    "An encrypted key is refused with the command that decrypts it",
    arguments: [
      ["pkcs8", "-topk8", "-in", "KEY", "-passout", "pass:hidden", "-out", "OUT"],
      ["rsa", "-in", "KEY", "-traditional", "-aes256", "-passout", "pass:hidden", "-out", "OUT"],
    ])
  func encrypted(arguments: [String]) throws {
    let path = try self.make("it's.pem", arguments)
    let error = try self.refusal(path)
    #expect(error.code == .encrypted)
    // The command does what the message promises.
    let start = try #require(error.message.firstRange(of: "(umask"))
    let end = try #require(error.message.firstRange(of: ") and name"))
    let command = error.message[start.upperBound..<end.lowerBound]
    try runProgram("sh", "-c", "(umask\(command) -passin pass:hidden)")
    _ = try RSASigningKey(pem: SigningKeyFiles.content("\(path).decrypted"), file: nil)
  }

  @Test(
    "Keys of another kind or an unusable size are refused by kind",
    arguments: [
      (["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "OUT"], "a key for EC"),
      (
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "OUT"], "EC"
      ),
      (["genpkey", "-algorithm", "ED25519", "-out", "OUT"], "ED25519"),
      (["genpkey", "-algorithm", "RSA-PSS", "-out", "OUT"], "RSA-PSS"),
      (["genrsa", "-out", "OUT", "1024"], "1024 bits"),
      (["pkey", "-in", "KEY", "-pubout", "-out", "OUT"], "public key"),
      (["rsa", "-in", "KEY", "-RSAPublicKey_out", "-out", "OUT"], "public key"),
      (["req", "-x509", "-new", "-key", "KEY", "-subj", "/CN=x", "-out", "OUT"], "a certificate"),
      (["req", "-new", "-key", "KEY", "-subj", "/CN=x", "-out", "OUT"], "certificate request"),
      (["pkey", "-in", "KEY", "-outform", "DER", "-out", "OUT"], "binary"),
    ] as [([String], String)])
  func otherKinds(arguments: [String], words: String) throws {
    let error = try self.refusal(try self.make("other", arguments))
    #expect(error.message.contains(words), "\(error)")
  }

  @Test(
    "Other texts are refused",
    arguments: [
      ("", "is empty"), (" \n\n", "is empty"), ("secret", "no PEM"),
      ("-----BEGIN PRIVATE KEY-----\nAAAA\n", "no PEM"),
      ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "damaged"),
      ("-----BEGIN OPENSSH PRIVATE KEY-----\nA\n-----END OPENSSH PRIVATE KEY-----", "ssh-keygen"),
      ("PuTTY-User-Key-File-3: ssh-rsa\n", "PuTTY"),
      (String(repeating: "x", count: 70_000), "64 KiB"),
    ])
  func texts(text: String, words: String) throws {
    let error = try #require(throws: SigningKeyError.self) {
      _ = try RSASigningKey(pem: Array(text.utf8), file: nil)
    }
    #expect(error.message.contains(words), "\(error)")
    #expect(!error.message.contains("secret"))
  }

  @Test("A key that is truncated anywhere is refused")
  func cut() throws {
    let pem = try SigningKeyFiles.content(self.files.privateKey)
    for count in stride(from: 0, to: pem.count - 1, by: 61) {
      #expect(throws: SigningKeyError.self) {
        _ = try RSASigningKey(pem: Array(pem[..<count]), file: nil)
      }
    }
  }

  @Test("No description prints the key")
  func printing() throws {
    let key = try RSASigningKey(pem: SigningKeyFiles.content(self.files.privateKey), file: nil)
    var text = ""
    dump([key], to: &text)
    #expect("\(key) \(String(reflecting: key))" == "RSA key (redacted) RSA key (redacted)")
    #expect(text.contains("redacted"))
    #expect(Mirror(reflecting: key).children.isEmpty)
  }
}
