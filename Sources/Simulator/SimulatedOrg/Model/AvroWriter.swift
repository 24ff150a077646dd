/// Avro binary encoding, written from the Avro specification ("Binary Encoding") for what the service uses.
enum AvroWriter {
  @inline(__always)
  static func appendLong(_ value: Int64, to bytes: inout [UInt8]) {
    var rest = UInt64(bitPattern: (value << 1) ^ (value >> 63))
    while rest > 0x7f {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  static func appendDouble(_ value: Double, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
  }

  static func appendString(_ text: [UInt8], to bytes: inout [UInt8]) {
    Self.appendLong(Int64(text.count), to: &bytes)
    bytes.append(contentsOf: text)
  }

  /// Items as one block, then the end mark.
  static func appendStringArray(_ items: [[UInt8]], to bytes: inout [UInt8]) {
    if !items.isEmpty {
      Self.appendLong(Int64(items.count), to: &bytes)
      for item in items { Self.appendString(item, to: &bytes) }
    }
    bytes.append(0)
  }
}
