internal import COpenSSL
internal import Foundation
internal import SimulatedOrg

/// A certificate authority of the simulator's own, and the server's certificate, as PEM files.
///
/// Made once per directory: a client keeps trusting a simulator that was restarted.
struct CertificateAuthority {
  let certificatePath: String
  let serverCertificatePath: String
  let serverKeyPath: String

  /// Names and addresses the server's certificate is for.
  private static let subjectNames = "DNS:localhost,IP:127.0.0.1,IP:::1"
  private static let day = 86_400

  /// Uses what is in the directory, or makes it.
  init(directory: String) throws {
    self.certificatePath = "\(directory)/ca.pem"
    self.serverCertificatePath = "\(directory)/server.pem"
    self.serverKeyPath = "\(directory)/server.key"
    let files = [self.certificatePath, self.serverCertificatePath, self.serverKeyPath]
    if files.allSatisfy({ FileManager.default.fileExists(atPath: $0) }) { return }
    let authorityKey = try PrivateKey()
    let authority = try Certificate(
      name: "pubsub-simulator CA", key: authorityKey, issuer: nil, days: 3650,
      extensions: [
        (NID_basic_constraints, "critical,CA:TRUE"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"), (NID_subject_key_identifier, "hash"),
      ])
    let serverKey = try PrivateKey()
    let server = try Certificate(
      name: "localhost", key: serverKey, issuer: (authority, authorityKey), days: 825,
      extensions: [
        (NID_basic_constraints, "critical,CA:FALSE"),
        (NID_key_usage, "critical,digitalSignature"), (NID_ext_key_usage, "serverAuth"),
        (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid:always"),
        (NID_subject_alt_name, Self.subjectNames),
      ])
    try Self.write(authority.pem(), to: self.certificatePath, mode: 0o644)
    try Self.write(server.pem(), to: self.serverCertificatePath, mode: 0o644)
    try Self.write(serverKey.pem(), to: self.serverKeyPath, mode: 0o600)
  }

  private static func write(_ bytes: [UInt8], to path: String, mode: Int) throws {
    guard
      FileManager.default.createFile(
        atPath: path, contents: Data(bytes), attributes: [.posixPermissions: mode])
    else { throw SimulatorError.system("create \(path)") }
  }

  // MARK: OpenSSL objects

  private final class PrivateKey {
    let pointer: OpaquePointer  // EVP_PKEY *

    /// A new key on P-256.
    init() throws {
      let context = EVP_PKEY_CTX_new_id(NID_X9_62_id_ecPublicKey, nil)
      defer { EVP_PKEY_CTX_free(context) }
      var key: OpaquePointer?
      guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
        EVP_PKEY_keygen(context, &key) == 1, let key
      else { throw CertificateAuthority.failure("make a key") }
      self.pointer = key
    }

    deinit { EVP_PKEY_free(self.pointer) }

    func pem() throws -> [UInt8] {
      try CertificateAuthority.text {
        PEM_write_bio_PrivateKey($0, self.pointer, nil, nil, 0, nil, nil)
      }
    }
  }

  private final class Certificate {
    let pointer: OpaquePointer  // X509 *

    init(
      name: String, key: PrivateKey, issuer: (certificate: Certificate, key: PrivateKey)?,
      days: Int, extensions: [(Int32, String)]
    ) throws {
      guard let certificate = X509_new() else {
        throw CertificateAuthority.failure("make a certificate")
      }
      self.pointer = certificate
      let subject = X509_get_subject_name(certificate)
      guard X509_set_version(certificate, 2) == 1,
        // 63 random bits: a client that has seen another authority of ours must not mix them up
        ASN1_INTEGER_set_uint64(
          X509_get_serialNumber(certificate), UInt64.random(in: 1...UInt64(Int64.max))) == 1,
        X509_gmtime_adj(X509_getm_notBefore(certificate), -CertificateAuthority.day) != nil,
        X509_gmtime_adj(X509_getm_notAfter(certificate), days * CertificateAuthority.day) != nil,
        X509_set_pubkey(certificate, key.pointer) == 1,
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1,
        X509_set_issuer_name(
          certificate, X509_get_subject_name(issuer?.certificate.pointer ?? certificate)) == 1
      else { throw CertificateAuthority.failure("fill the certificate of \(name)") }
      for (kind, value) in extensions {
        var context = X509V3_CTX()
        X509V3_set_ctx(
          &context, issuer?.certificate.pointer ?? certificate, certificate, nil, nil, 0)
        let item = X509V3_EXT_conf_nid(nil, &context, kind, value)
        defer { X509_EXTENSION_free(item) }
        guard item != nil, X509_add_ext(certificate, item, -1) == 1 else {
          throw CertificateAuthority.failure("add \(value) to the certificate of \(name)")
        }
      }
      guard X509_sign(certificate, (issuer?.key ?? key).pointer, EVP_sha256()) > 0 else {
        throw CertificateAuthority.failure("sign the certificate of \(name)")
      }
    }

    deinit { X509_free(self.pointer) }

    func pem() throws -> [UInt8] {
      try CertificateAuthority.text { PEM_write_bio_X509($0, self.pointer) }
    }
  }

  private static func text(_ write: (OpaquePointer?) -> Int32) throws -> [UInt8] {
    let memory = BIO_new(BIO_s_mem())  // BIO *
    defer { BIO_free(memory) }
    guard write(memory) == 1 else { throw Self.failure("write PEM") }
    var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
    guard BIO_read(memory, &bytes, Int32(bytes.count)) == bytes.count else {
      throw Self.failure("read PEM")
    }
    return bytes
  }

  private static func failure(_ what: String) -> SimulatorError {
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(ERR_get_error(), &text, text.count)
    ERR_clear_error()
    let reason = String(
      decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return SimulatorError(.tls, "OpenSSL could not \(what): \(reason)")
  }
}
