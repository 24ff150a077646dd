internal import GRPCCore

/// A name in lower case and its value.
struct HeaderField: Equatable {
  var name: String
  var value: String
}

extension Metadata {
  /// Names that HTTP/2 or gRPC itself uses: neither taken from nor given to the application.
  private static let reserved: Set<String> = [
    "te", "content-type", "user-agent", "connection", "keep-alive", "proxy-connection",
    "transfer-encoding", "upgrade", "host", "grpc-status", "grpc-message", "grpc-encoding",
    "grpc-accept-encoding",
  ]

  /// What a server sent, without the fields of the protocol.
  init(response fields: [HeaderField]) {
    self.init()
    self.reserveCapacity(fields.count)
    for field in fields where !field.name.hasPrefix(":") && !Self.reserved.contains(field.name) {
      guard field.name.hasSuffix("-bin") else {
        self.addString(field.value, forKey: field.name)
        continue
      }
      // Several binary values may share a line; base64 has no comma. They stay encoded: reading
      // `binaryValues` decodes them.
      for value in field.value.split(separator: ",", omittingEmptySubsequences: false) {
        self.addString(String(value.trimmed), forKey: field.name)
      }
    }
  }

  /// The fields for the wire.
  /// - Throws: `invalidArgument` naming the key when a key or value cannot be sent.
  func requestFields() throws(RPCError) -> [HeaderField] {
    var fields: [HeaderField] = []
    for (key, value) in self {
      let name = key.lowercased()
      guard !name.isEmpty, name.utf8.allSatisfy(Self.isNameByte) else {
        throw RPCError(
          code: .invalidArgument,
          message: "The metadata key '\(key)' contains a character that gRPC does not allow.")
      }
      if Self.reserved.contains(name) { continue }
      let text = value.encoded()
      guard text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
        throw RPCError(
          code: .invalidArgument,
          message: "The value of metadata key '\(key)' is not printable ASCII; use a '-bin' key.")
      }
      fields.append(HeaderField(name: name, value: text))
    }
    return fields
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}

extension Substring {
  /// Without spaces at both ends.
  fileprivate var trimmed: Substring {
    var text = self.drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return text
  }
}
