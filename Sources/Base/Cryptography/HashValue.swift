/// The result of a hash function.
public struct HashValue: Hashable, Sendable {
  public let bytes: [UInt8]

  public init(bytes: [UInt8]) { self.bytes = bytes }

  /// Lower-case hexadecimal digits, two per byte.
  public var hex: String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: self.bytes.count * 2) { text in
      for (index, byte) in self.bytes.enumerated() {
        text[index * 2] = digits.utf8Start[Int(byte >> 4)]
        text[index * 2 + 1] = digits.utf8Start[Int(byte & 15)]
      }
      return self.bytes.count * 2
    }
  }
}

extension HashValue: CustomStringConvertible {
  public var description: String { self.hex }
}
