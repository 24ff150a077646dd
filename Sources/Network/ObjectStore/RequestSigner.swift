internal import Bytes
internal import Cryptography

/// Signs requests with AWS Signature Version 4 in their headers.
///
/// Source: "Signature Calculations for the Authorization Header" of the Amazon S3 API reference. The
/// caller encodes path and query once, and sends exactly what is signed here.
struct RequestSigner {
  typealias Headers = [(name: String, value: String)]

  var credentials: StoreCredentials
  var region: String
  /// `s3`.
  var service: String

  static let algorithm = "AWS4-HMAC-SHA256"

  /// What the signature covers, and how it comes about.
  struct Signature {
    var canonicalRequest: String
    var stringToSign: String
    var authorization: String
  }

  /// - Parameters:
  ///   - path: encoded, from the first slash on.
  ///   - query: as `canonicalQuery` makes it.
  ///   - headers: all that are signed, `host` and `x-amz-date` included; each name once.
  ///   - payloadHash: the SHA-256 of the body in hexadecimal digits.
  ///   - time: as in `x-amz-date`.
  func sign(
    _ method: String, path: String, query: String, headers: Headers, payloadHash: String,
    time: String
  ) -> Signature {
    let sorted = headers.map { ($0.name.lowercased(), Self.canonicalValue($0.value)) }
      .sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    let names = sorted.map(\.0).joined(separator: ";")
    let lines = sorted.map { "\($0.0):\($0.1)\n" }.joined()
    let request = "\(method)\n\(path)\n\(query)\n\(lines)\n\(names)\n\(payloadHash)"
    let date = String(time.prefix(8))
    let scope = "\(date)/\(self.region)/\(self.service)/aws4_request"
    let text =
      "\(Self.algorithm)\n\(time)\n\(scope)\n\(SHA256.hash(of: Array(request.utf8)).hex)"
    let signature = HMACSHA256.code(of: Array(text.utf8), key: self.key(date: date)).hex
    return Signature(
      canonicalRequest: request, stringToSign: text,
      authorization:
        "\(Self.algorithm) Credential=\(self.credentials.accessKeyID)/\(scope), "
        + "SignedHeaders=\(names), Signature=\(signature)")
  }

  private func key(date: String) -> [UInt8] {
    let words = [date, self.region, self.service, "aws4_request"]
    return words.reduce(Array("AWS4\(self.credentials.secretAccessKey)".utf8)) { key, word in
      HMACSHA256.code(of: Array(word.utf8), key: key).bytes
    }
  }

  /// A value as it is signed, and as it has to be sent: without space around it, and with single
  /// spaces inside.
  static func canonicalValue(_ value: String) -> String {
    value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
  }

  /// Encodes a query once, in the order in which it is signed. `=` is there without a value, too.
  static func canonicalQuery(_ items: [(name: String, value: String)]) -> String {
    items.map { (PercentEncoding.encoded($0.name), PercentEncoding.encoded($0.value)) }
      .sorted { left, right in
        left.0 == right.0
          ? left.1.utf8.lexicographicallyPrecedes(right.1.utf8)
          : left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
      }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }

  /// Encodes a path once; slashes stay.
  static func encodedPath(_ path: String) -> String {
    path.split(separator: "/", omittingEmptySubsequences: false)
      .map { PercentEncoding.encoded(String($0)) }.joined(separator: "/")
  }

  /// `20130524T000000Z`
  static func time(milliseconds: Int64) -> String {
    let text = UTCTime.timestamp(milliseconds: milliseconds)
    return text.prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" } + "Z"
  }
}
