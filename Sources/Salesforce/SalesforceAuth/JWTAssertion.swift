internal import Bytes
internal import Cryptography
internal import JSON

/// What the JWT bearer flow proves itself with (RFC 7523): claims, signed with the app's key.
struct JWTAssertion {
  /// Consumer key of the app.
  var issuer: String
  /// Username of the user.
  var subject: String
  /// URL of the login host that the kind of org belongs to.
  var audience: String
  /// When it expires, in seconds since 1970.
  var expiry: Int64

  /// Header, claims and signature, each in base64url without padding (RFC 7515 section 3.1).
  func signed(by key: RSASigningKey) -> String {
    let claims: JSONValue = [
      "iss": .string(self.issuer), "sub": .string(self.subject), "aud": .string(self.audience),
      "exp": .integer(self.expiry),
    ]
    let message =
      Self.base64URL(Array(#"{"alg":"RS256"}"#.utf8)) + "."
      + Self.base64URL(Array(claims.text().utf8))
    return message + "." + Self.base64URL(key.sign(Array(message.utf8)))
  }

  private static func base64URL(_ bytes: [UInt8]) -> String {
    var buffer = ByteBuffer(capacity: bytes.count / 3 * 4 + 4)
    bytes.withUnsafeBufferPointer { buffer.appendBase64($0) }
    let text = buffer.bytes.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: byte
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
