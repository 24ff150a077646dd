internal import Bytes

/// The result of a hash function.
public struct HashValue: Hashable, Sendable {
  public let bytes: [UInt8]

  public init(bytes: [UInt8]) { self.bytes = bytes }

  /// Lowercase hexadecimal digits, two for each byte.
  public var hex: String { self.bytes.hex }
}

extension HashValue: CustomStringConvertible {
  public var description: String { self.hex }
}
