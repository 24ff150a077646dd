package import Avro
internal import Cryptography

extension Schema {
  /// The ID that the service gives a schema: the MD5 of its canonical form in base64url
  /// (EventSchemas.md#schema-id). Nil where OpenSSL has no MD5.
  package var serviceID: String? { (try? self.md5Fingerprint())?.bytes.base64URL }
}

extension [UInt8] {
  /// RFC 4648 section 5, without padding.
  fileprivate var base64URL: String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: self.count, by: 3) {
      let group = self[start..<Swift.min(start + 3, self.count)]
      let bits = group.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
      for index in 0...group.count { text.append(alphabet[bits >> (18 - 6 * index) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
