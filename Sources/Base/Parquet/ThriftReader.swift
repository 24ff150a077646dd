/// Reads Thrift's compact protocol. The bytes may be hostile.
struct ThriftReader {
  struct Fault: Error {
    var reason: String
    init(_ reason: String) { self.reason = reason }
  }

  typealias Kind = ThriftWriter.Kind

  private let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0
  private var depth = 0

  /// The structures of Parquet are nested less deeply.
  private static let maxDepth = 16

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Calls `field` for each field of a structure; it has to take the value, or `skip` it.
  mutating func structure(
    _ field: (Int16, Kind, inout ThriftReader) throws(Fault) -> Void
  ) throws(Fault) {
    self.depth += 1
    defer { self.depth -= 1 }
    guard self.depth <= Self.maxDepth else { throw Fault("structures are nested too deeply") }
    var number: Int16 = 0
    while true {
      let head = try self.byte()
      if head == 0 { return }
      guard let kind = Kind(rawValue: head & 0x0F) else { throw Fault("a field has no known type") }
      if head >> 4 > 0 {
        let (next, isTooGreat) = number.addingReportingOverflow(Int16(head >> 4))
        guard !isTooGreat else { throw Fault("a field has no number") }
        number = next
      } else {
        guard let next = Int16(exactly: try self.zigzag()) else {
          throw Fault("a field has no number")
        }
        number = next
      }
      try field(number, kind, &self)
    }
  }

  /// The value of a field, or an element, that is a structure.
  mutating func structure(
    _ kind: Kind, _ field: (Int16, Kind, inout ThriftReader) throws(Fault) -> Void
  ) throws(Fault) {
    guard kind == .structure else { throw Fault("a field is no structure") }
    try self.structure(field)
  }

  /// An integer of any size.
  mutating func integer(_ kind: Kind) throws(Fault) -> Int64 {
    switch kind {
    case .int8: return Int64(Int8(bitPattern: try self.byte()))
    case .int16, .int32, .int64: return try self.zigzag()
    default: throw Fault("a field is no integer")
    }
  }

  /// An integer that counts or numbers something.
  mutating func count(_ kind: Kind) throws(Fault) -> Int {
    let value = try self.integer(kind)
    guard value >= 0 else { throw Fault("a count is negative") }
    return Int(value)
  }

  mutating func boolean(_ kind: Kind) throws(Fault) -> Bool {
    switch kind {
    case .yes: return true
    case .no: return false
    default: throw Fault("a field is no boolean")
    }
  }

  mutating func text(_ kind: Kind) throws(Fault) -> String {
    guard kind == .binary else { throw Fault("a field is no text") }
    let bytes = try self.take(try self.varint())
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Fault("a text is not UTF-8")
    }
    return text
  }

  /// Calls `element` for each element of a list.
  mutating func list(
    _ kind: Kind, _ element: (Kind, inout ThriftReader) throws(Fault) -> Void
  ) throws(Fault) {
    guard kind == .list else { throw Fault("a field is no list") }
    let head = try self.byte()
    let count = head >> 4 == 15 ? try self.varint() : UInt64(head >> 4)
    guard let kind = Kind(rawValue: head & 0x0F) else { throw Fault("a list has no known type") }
    // Every element has a byte at least, but for booleans, which have one as elements.
    guard count <= UInt64(self.bytes.count - self.offset) else {
      throw Fault("a list of \(count) elements is longer than the rest")
    }
    for _ in 0..<count { try element(kind, &self) }
  }

  /// Passes over a value that is of no interest.
  mutating func skip(_ kind: Kind) throws(Fault) {
    switch kind {
    case .yes, .no: break
    case .int8: _ = try self.byte()
    case .int16, .int32, .int64: _ = try self.varint()
    case .double: _ = try self.take(8)
    case .binary: _ = try self.take(try self.varint())
    case .list, .set:
      try self.list(.list) { (kind, reader) throws(Fault) in
        reader.depth += 1
        defer { reader.depth -= 1 }
        guard reader.depth <= Self.maxDepth else { throw Fault("lists are nested too deeply") }
        if kind == .yes || kind == .no { _ = try reader.byte() } else { try reader.skip(kind) }
      }
    case .structure:
      try self.structure { (_, kind, reader) throws(Fault) in try reader.skip(kind) }
    case .map: throw Fault("a field is a map")
    }
  }

  private mutating func byte() throws(Fault) -> UInt8 {
    guard self.offset < self.bytes.count else { throw Fault("it ends inside a field") }
    defer { self.offset += 1 }
    return self.bytes[self.offset]
  }

  private mutating func take(_ count: UInt64) throws(Fault) -> UnsafeRawBufferPointer {
    guard count <= UInt64(self.bytes.count - self.offset) else {
      throw Fault("it ends inside a field")
    }
    let start = self.offset
    self.offset += Int(count)
    return UnsafeRawBufferPointer(rebasing: self.bytes[start..<self.offset])
  }

  private mutating func varint() throws(Fault) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = try self.byte()
      guard shift < 63 || byte < 2 else { throw Fault("a number has more than 64 bits") }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
      shift += 7
      guard shift < 64 else { throw Fault("a number has more than 64 bits") }
    }
  }

  private mutating func zigzag() throws(Fault) -> Int64 {
    let value = try self.varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }
}
