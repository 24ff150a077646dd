/// Replay IDs as this service makes them: 8-byte big-endian number, then two zero bytes.
package enum ReplayPosition {
  package static let byteCount = 10

  package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    bytes.append(0)
    bytes.append(0)
  }

  package static func bytes(_ number: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    Self.append(number, to: &bytes)
    return bytes
  }

  /// The number of an ID sent by a client: 10 bytes, or the 8-byte form that is accepted too. Nil if malformed.
  static func number(_ bytes: some Collection<UInt8>) -> UInt64? {
    guard bytes.count == 8 || bytes.count == 10, bytes.dropFirst(8).allSatisfy({ $0 == 0 }) else {
      return nil
    }
    return bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
