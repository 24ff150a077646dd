/// Length-delimited protobuf fields, for the messages that are sent once per hundred events or more often.
/// Field numbers below 16 only.
package enum WireWriter {
  static func varintSize(_ value: Int) -> Int {
    var size = 1
    var rest = value >> 7
    while rest > 0 {
      size += 1
      rest >>= 7
    }
    return size
  }

  /// Size of a field of `count` bytes, tag and length included; an empty field is not written.
  static func fieldSize(_ count: Int) -> Int {
    count == 0 ? 0 : 1 + Self.varintSize(count) + count
  }

  package static func appendVarint(_ value: UInt64, to bytes: inout [UInt8]) {
    var rest = value
    while rest > 0x7f {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  package static func appendLength(field: UInt8, count: Int, to bytes: inout [UInt8]) {
    bytes.append(field << 3 | 2)
    Self.appendVarint(UInt64(count), to: &bytes)
  }

  package static func appendField(_ field: UInt8, _ value: [UInt8], to bytes: inout [UInt8]) {
    if value.isEmpty { return }
    Self.appendLength(field: field, count: value.count, to: &bytes)
    bytes.append(contentsOf: value)
  }
}
