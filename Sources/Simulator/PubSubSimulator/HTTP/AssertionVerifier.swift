internal import COpenSSL
internal import Foundation
internal import SimulatedOrg

/// Judges assertions of the JWT bearer flow as the service does: the signature, then the claims.
///
/// Source: ServiceLogins.md#jwt-bearer. Used from any thread.
final class AssertionVerifier: @unchecked Sendable {
  // Guard: immutable after `init`; every verification has a context of its own.
  private let key: OpaquePointer  // EVP_PKEY *

  /// What the claims have to be.
  struct Claims {
    var issuer: String
    var subject: String
    var audience: String
  }

  struct Refusal: Equatable {
    var error: String
    var description: String
    static let malformed = Refusal(error: "invalid_grant", description: "invalid assertion")
  }

  /// The service's limit for `exp`, in seconds from now.
  private static let maxLifetime: Int64 = 180

  /// - Parameter file: PEM of a certificate, or of a public key.
  init(file: String) throws {
    guard let pem = FileManager.default.contents(atPath: file) else {
      throw SimulatorError(.configuration, "--jwt-certificate: \(file) cannot be read")
    }
    guard let key = Self.publicKey(pem) else {
      throw SimulatorError(
        .configuration,
        "--jwt-certificate: \(file) has neither a certificate nor a public key in PEM form")
    }
    self.key = key
  }

  deinit { EVP_PKEY_free(self.key) }

  /// Nil when the assertion is accepted.
  /// - Parameter now: seconds since 1970.
  func refusal(of assertion: String, expecting expected: Claims, at now: Int64) -> Refusal? {
    let parts = assertion.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = Self.decoded(parts[2])
    else { return .malformed }
    // No other algorithm: "none", and a secret that is the public key, are the known attacks.
    guard header["alg"] as? String == "RS256" else { return .malformed }
    guard claims["iss"] as? String == expected.issuer else {
      return Refusal(error: "invalid_client_id", description: "client identifier invalid")
    }
    guard self.verifies(signature, of: Data("\(parts[0]).\(parts[1])".utf8)) else {
      return .malformed
    }
    guard claims["aud"] as? String == expected.audience else {
      return Refusal(error: "invalid_grant", description: "audience is invalid")
    }
    guard let expiry = (claims["exp"] as? NSNumber)?.int64Value else { return .malformed }
    guard expiry > now else {
      return Refusal(error: "invalid_grant", description: "assertion expired")
    }
    guard expiry <= now + Self.maxLifetime else { return .malformed }
    guard claims["sub"] as? String == expected.subject else {
      return Refusal(
        error: "invalid_grant", description: "user hasn't approved this consumer")
    }
    return nil
  }

  private func verifies(_ signature: Data, of message: Data) -> Bool {
    defer { ERR_clear_error() }
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL: out of memory") }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, self.key) == 1 else { return false }
    return EVP_DigestVerify(
      context, Array(signature), signature.count, Array(message), message.count) == 1
  }

  private static func publicKey(_ pem: Data) -> OpaquePointer? {
    defer { ERR_clear_error() }
    func reading<Value>(_ body: (OpaquePointer?) -> Value?) -> Value? {
      let bytes = Array(pem)
      let input = BIO_new_mem_buf(bytes, Int32(bytes.count))
      defer { BIO_free(input) }
      return body(input)
    }
    let certified = reading { input -> OpaquePointer? in
      guard let certificate = PEM_read_bio_X509(input, nil, nil, nil) else { return nil }
      defer { X509_free(certificate) }
      return X509_get_pubkey(certificate)
    }
    return certified ?? reading { PEM_read_bio_PUBKEY($0, nil, nil, nil) }
  }

  private static func object(_ part: Substring) -> [String: Any]? {
    Self.decoded(part).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
  }

  /// Base64url without padding; nil for anything else.
  private static func decoded(_ part: Substring) -> Data? {
    guard !part.contains(where: { "+/=".contains($0) }) else { return nil }
    let text = part.replacing("-", with: "+").replacing("_", with: "/")
    return Data(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4))
  }
}
