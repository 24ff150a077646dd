internal import Bytes

/// One block of a PEM text (RFC 7468): from its line BEGIN to its line END.
struct PEMBlock {
  /// What stands between `-----BEGIN ` and `-----`.
  var label: String
  /// Both lines and what is between them, each line ended.
  var bytes: [UInt8]

  /// Whether it is a PKCS#1 key with the header of an encrypted one (RFC 1421 section 4.6.1.1).
  private var hasEncryptionHeader: Bool {
    String(decoding: self.bytes, as: UTF8.self).contains("Proc-Type: 4,ENCRYPTED")
  }

  /// The first private key of a text, in a form that can be used without a passphrase.
  /// - Parameter file: for the commands in messages.
  static func privateKey(
    in pem: [UInt8], file: String?
  ) throws(SigningKeyError) -> PEMBlock {
    guard pem.count <= RSASigningKey.maxByteCount else {
      throw SigningKeyError(
        .tooLarge,
        "is longer than \(RSASigningKey.maxByteCount >> 10) KiB; give a PEM file with the private "
          + "key alone")
    }
    guard !pem.allSatisfy({ $0 <= 0x20 }) else {
      throw SigningKeyError(.empty, "is empty; give the private key in PEM form")
    }
    let blocks = Self.all(in: pem)
    guard let block = blocks.first(where: { $0.label.hasSuffix("PRIVATE KEY") }) else {
      throw Self.withoutKey(pem, blocks)
    }
    switch block.label {
    case _ where block.hasEncryptionHeader, "ENCRYPTED PRIVATE KEY":
      throw Self.encrypted(file)
    case "RSA PRIVATE KEY", "PRIVATE KEY": return block
    case "OPENSSH PRIVATE KEY":
      throw SigningKeyError(
        .otherFormat,
        "is in the format of OpenSSH; convert a copy with "
          + "ssh-keygen -p -N '' -m PEM -f \(Self.shellWord(file ?? "COPY.pem"))")
    case let label: throw Self.otherAlgorithm(String(label.dropLast(" PRIVATE KEY".utf8.count)))
    }
  }

  static func otherAlgorithm(_ name: String) -> SigningKeyError {
    SigningKeyError(
      .otherAlgorithm,
      "is a key for \(name), and Salesforce verifies RSA signatures only (RS256); make an RSA key "
        + "with openssl genrsa 2048, and upload its certificate to the app")
  }

  private static func encrypted(_ file: String?) -> SigningKeyError {
    let source = Self.shellWord(file ?? "KEY.pem")
    let copy = Self.shellWord(file.map { "\($0).decrypted" } ?? "KEY.decrypted.pem")
    return SigningKeyError(
      .encrypted,
      "is encrypted with a passphrase, which nobody can type during a run; decrypt it with "
        + "(umask 077; openssl pkey -in \(source) -out \(copy)) and name \(copy) instead")
  }

  private static func withoutKey(_ pem: [UInt8], _ blocks: [PEMBlock]) -> SigningKeyError {
    let remedy =
      "the key is the other file, which openssl wrote with -keyout or genrsa and which begins with "
      + "-----BEGIN PRIVATE KEY-----"
    switch blocks.first?.label {
    case "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE":
      return SigningKeyError(
        .notPrivate,
        "is a certificate and holds no private key; the certificate is uploaded to the app, and "
          + remedy)
    case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
      return SigningKeyError(
        .notPrivate, "is a certificate request and holds no private key; \(remedy)")
    case "PUBLIC KEY", "RSA PUBLIC KEY":
      return SigningKeyError(.notPrivate, "is a public key, which cannot sign; \(remedy)")
    case _?:
      return SigningKeyError(.notPEM, "holds no private key; \(remedy)")
    case nil: break
    }
    let text = String(decoding: pem.prefix(64), as: UTF8.self)
    if text.hasPrefix("PuTTY-User-Key-File") {
      return SigningKeyError(
        .otherFormat, "is in the format of PuTTY; export it as an OpenSSH key, and convert that")
    }
    // DER is a sequence, whose first byte is this.
    if pem[0] == 0x30 {
      return SigningKeyError(
        .otherFormat,
        "is binary (DER or PKCS#12), not PEM; convert it with openssl pkey -inform DER, or "
          + "openssl pkcs12 -nodes -nocerts")
    }
    return SigningKeyError(
      .notPEM, "is no PEM text with a line -----BEGIN PRIVATE KEY----- and one -----END …")
  }

  /// The complete blocks of a text, in order. Lines may end in any of the usual ways.
  private static func all(in pem: [UInt8]) -> [PEMBlock] {
    var blocks: [PEMBlock] = []
    var open: PEMBlock?
    for line in pem.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
      var line = line
      while let last = line.last, last <= 0x20 { line.removeLast() }
      let text = String(decoding: line, as: UTF8.self)
      if let label = Self.label(text, "-----BEGIN ") {
        open = PEMBlock(label: label, bytes: [])
      }
      open?.bytes += line
      open?.bytes.append(0x0A)
      // The header of an encrypted PKCS#1 key ends with an empty line, which the split dropped; the
      // key is refused anyway.
      if let block = open, Self.label(text, "-----END ") == block.label {
        blocks.append(block)
        open = nil
      }
    }
    return blocks
  }

  private static func label(_ line: String, _ start: String) -> String? {
    guard line.hasPrefix(start), line.hasSuffix("-----"), line.utf8.count > start.utf8.count + 5
    else { return nil }
    return String(line.dropFirst(start.utf8.count).dropLast(5))
  }

  /// A path as a shell takes it, quoted where it has to be.
  private static func shellWord(_ path: String) -> String {
    let isPlain = path.utf8.allSatisfy { $0.isWordCharacter || "/.-".utf8.contains($0) }
    return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
  }
}
