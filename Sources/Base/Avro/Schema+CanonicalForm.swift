public import Cryptography

extension Schema {
  /// Parsing Canonical Form (specification, "Transforming into Parsing Canonical Form"): everything
  /// that determines how bytes are read, in a single spelling. Salesforce's schema IDs are digests
  /// of it.
  public var canonicalForm: String {
    var text = ""
    var defined: Set<Int> = []
    self.write(self.root, to: &text, defined: &defined)
    return text
  }

  /// CRC-64-AVRO of the canonical form ("Schema Fingerprints").
  public var fingerprint: UInt64 { Self.crc64(Array(self.canonicalForm.utf8)) }

  /// SHA-256 of the canonical form ("Schema Fingerprints").
  public var sha256Fingerprint: HashValue { SHA256.hash(of: Array(self.canonicalForm.utf8)) }

  /// MD5 of the canonical form ("Schema Fingerprints"). Throws if OpenSSL lacks MD5.
  public func md5Fingerprint() throws(DigestError) -> HashValue {
    try MD5.hash(of: Array(self.canonicalForm.utf8))
  }

  private func write(_ type: TypeID, to text: inout String, defined: inout Set<Int>) {
    let definition = self[type]
    if let name = definition.name, !defined.insert(type.index).inserted {
      text += "\"\(name.full)\""
      return
    }
    let name = definition.name?.full ?? ""
    switch definition.kind {
    case .record(let fields):
      text += "{\"name\":\"\(name)\",\"type\":\"record\",\"fields\":["
      for (index, field) in fields.enumerated() {
        text += "\(index == 0 ? "" : ","){\"name\":\"\(field.name)\",\"type\":"
        self.write(field.type, to: &text, defined: &defined)
        text += "}"
      }
      text += "]}"
    case .enumeration(let symbols, _):
      text += "{\"name\":\"\(name)\",\"type\":\"enum\",\"symbols\":["
      text += symbols.map { "\"\($0)\"" }.joined(separator: ",")
      text += "]}"
    case .fixed(let size):
      text += "{\"name\":\"\(name)\",\"type\":\"fixed\",\"size\":\(size)}"
    case .array(let items):
      text += "{\"type\":\"array\",\"items\":"
      self.write(items, to: &text, defined: &defined)
      text += "}"
    case .map(let values):
      text += "{\"type\":\"map\",\"values\":"
      self.write(values, to: &text, defined: &defined)
      text += "}"
    case .union(let branches):
      text += "["
      for (index, branch) in branches.enumerated() {
        if index > 0 { text += "," }
        self.write(branch, to: &text, defined: &defined)
      }
      text += "]"
    default:
      text += "\"\(definition.kind.label)\""
    }
  }

  private static let emptyFingerprint: UInt64 = 0xc15d_213a_a4d7_a795

  private static let table: [UInt64] = (0..<256).map { index in
    var value = UInt64(index)
    for _ in 0..<8 {
      value = value >> 1 ^ (Self.emptyFingerprint & (0 &- (value & 1)))
    }
    return value
  }

  static func crc64(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(Self.emptyFingerprint) { crc, byte in
      crc >> 8 ^ Self.table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)]
    }
  }
}
