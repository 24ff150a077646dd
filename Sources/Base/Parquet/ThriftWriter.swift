internal import Bytes

/// Thrift's compact protocol (thrift-compact-protocol.md), as far as the structures of Parquet need it.
struct ThriftWriter: ~Copyable {
  /// The types of fields and of elements.
  enum Kind: UInt8 {
    case yes = 1
    case no = 2
    case int8 = 3
    case int16 = 4
    case int32 = 5
    case int64 = 6
    case double = 7
    case binary = 8
    case list = 9
    case set = 10
    case map = 11
    case structure = 12
  }

  private(set) var output = ByteBuffer(capacity: 256)
  /// The number of the last field of the current structure.
  private var lastField: Int16 = 0

  mutating func removeAll() { self.output.removeAll() }

  /// A structure that is no field: the content of a file's end, a page's header, an element.
  mutating func structure(_ body: (inout ThriftWriter) -> Void) {
    let outer = self.lastField
    self.lastField = 0
    body(&self)
    self.output.append(UInt8(0))
    self.lastField = outer
  }

  mutating func structure(_ field: Int16, _ body: (inout ThriftWriter) -> Void) {
    self.field(field, .structure)
    self.structure(body)
  }

  mutating func integer(_ field: Int16, _ value: Int32) {
    self.field(field, .int32)
    self.varint(zigzag(Int64(value)))
  }

  mutating func integer(_ field: Int16, _ value: Int64) {
    self.field(field, .int64)
    self.varint(zigzag(value))
  }

  mutating func small(_ field: Int16, _ value: Int16) {
    self.field(field, .int16)
    self.varint(zigzag(Int64(value)))
  }

  mutating func byte(_ field: Int16, _ value: Int8) {
    self.field(field, .int8)
    self.output.append(UInt8(bitPattern: value))
  }

  mutating func boolean(_ field: Int16, _ value: Bool) { self.field(field, value ? .yes : .no) }

  mutating func text(_ field: Int16, _ value: String) {
    self.field(field, .binary)
    self.text(value)
  }

  mutating func bytes(_ field: Int16, _ value: [UInt8]) {
    self.field(field, .binary)
    self.varint(UInt64(value.count))
    self.output.append(value)
  }

  /// Elements follow, each written by `text`, `integer` or `structure` without a field.
  mutating func list(_ field: Int16, _ kind: Kind, count: Int) {
    self.field(field, .list)
    if count < 15 {
      self.output.append(UInt8(count) << 4 | kind.rawValue)
    } else {
      self.output.append(0xF0 | kind.rawValue)
      self.varint(UInt64(count))
    }
  }

  mutating func text(_ value: String) {
    self.varint(UInt64(value.utf8.count))
    self.output.append(utf8: value)
  }

  mutating func integer(_ value: Int32) { self.varint(zigzag(Int64(value))) }

  /// Structures that were written elsewhere.
  mutating func append(_ structures: UnsafeBufferPointer<UInt8>) { self.output.append(structures) }

  private mutating func field(_ number: Int16, _ kind: Kind) {
    let step = number - self.lastField
    if step > 0, step <= 15 {
      self.output.append(UInt8(step) << 4 | kind.rawValue)
    } else {
      self.output.append(kind.rawValue)
      self.varint(zigzag(Int64(number)))
    }
    self.lastField = number
  }

  private mutating func varint(_ value: UInt64) { self.output.appendVarint(value) }
}

private func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: value << 1 ^ value >> 63) }

extension ByteBuffer {
  /// Seven bits a byte, the least significant first (ULEB128).
  mutating func appendVarint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      self.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    self.append(UInt8(rest))
  }

  /// The bytes of an integer, the least significant first.
  mutating func append<Integer: FixedWidthInteger & BitwiseCopyable>(littleEndian value: Integer) {
    let byteCount = Integer.bitWidth / 8
    UnsafeMutableRawPointer(self.reserve(byteCount)).storeBytes(
      of: value.littleEndian, as: Integer.self)
    self.commit(byteCount)
  }

  mutating func append(raw bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    UnsafeMutableRawPointer(self.reserve(bytes.count)).copyMemory(
      from: start, byteCount: bytes.count)
    self.commit(bytes.count)
  }

  var raw: UnsafeRawBufferPointer { UnsafeRawBufferPointer(self.bytes) }
}
