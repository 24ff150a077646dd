/// Finds the members of a JSON object in a line of a file (RFC 8259), without copying.
///
/// Checks members, and strings at any depth. In arrays and objects within values, only the brackets
/// are matched; such values are compared as text, or parsed if they differ.
struct ObjectScanner {
  struct Member {
    /// Between the quotes, with escapes unchanged.
    var key: Range<Int>
    var value: Range<Int>
  }

  /// The place where the line stops being a JSON object.
  struct Fault: Error {
    /// The distance from the beginning of the line, in bytes.
    var offset: Int
  }

  private static let maxDepth = 128

  private let text: UnsafeBufferPointer<UInt8>
  private var offset = 0

  private init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

  /// Replaces `members` by those of the line's object.
  static func scan(
    _ line: UnsafeBufferPointer<UInt8>, into members: inout [Member]
  ) throws(Fault) {
    members.removeAll(keepingCapacity: true)
    var scanner = Self(line)
    try scanner.object(&members)
  }

  /// The elements of the array in the text.
  static func elements(
    _ text: UnsafeBufferPointer<UInt8>, into elements: inout [Range<Int>]
  ) throws(Fault) {
    elements.removeAll(keepingCapacity: true)
    var scanner = Self(text)
    try scanner.expect(UInt8(ascii: "["))
    scanner.skipSpace()
    if scanner.skip(UInt8(ascii: "]")) { return try scanner.end() }
    repeat {
      scanner.skipSpace()
      elements.append(try scanner.value())
      scanner.skipSpace()
    } while scanner.skip(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "]"))
    try scanner.end()
  }

  private mutating func object(_ members: inout [Member]) throws(Fault) {
    self.skipSpace()
    try self.expect(UInt8(ascii: "{"))
    self.skipSpace()
    if self.skip(UInt8(ascii: "}")) { return try self.end() }
    repeat {
      self.skipSpace()
      let key = try self.string()
      self.skipSpace()
      try self.expect(UInt8(ascii: ":"))
      self.skipSpace()
      let value = try self.value()
      members.append(Member(key: key.lowerBound + 1..<key.upperBound - 1, value: value))
      self.skipSpace()
    } while self.skip(UInt8(ascii: ","))
    try self.expect(UInt8(ascii: "}"))
    try self.end()
  }

  private mutating func end() throws(Fault) {
    self.skipSpace()
    guard self.offset == self.text.count else { throw self.fault }
  }

  private var fault: Fault { Fault(offset: self.offset) }

  @inline(__always)
  private var next: UInt8? { self.offset < self.text.count ? self.text[self.offset] : nil }

  @inline(__always)
  private mutating func skip(_ byte: UInt8) -> Bool {
    guard self.next == byte else { return false }
    self.offset += 1
    return true
  }

  @inline(__always)
  private mutating func expect(_ byte: UInt8) throws(Fault) {
    guard self.skip(byte) else { throw self.fault }
  }

  @inline(__always)
  private mutating func skipSpace() {
    while let byte = self.next, byte == 0x20 || byte == 0x09 || byte == 0x0D { self.offset += 1 }
  }

  private mutating func value() throws(Fault) -> Range<Int> {
    let start = self.offset
    switch self.next {
    case UInt8(ascii: "\""): return try self.string()
    case UInt8(ascii: "{"), UInt8(ascii: "["): try self.nested()
    case UInt8(ascii: "t"): try self.literal("true")
    case UInt8(ascii: "f"): try self.literal("false")
    case UInt8(ascii: "n"): try self.literal("null")
    default: try self.number()
    }
    return start..<self.offset
  }

  private mutating func literal(_ word: StaticString) throws(Fault) {
    for index in 0..<word.utf8CodeUnitCount { try self.expect(word.utf8Start[index]) }
  }

  private mutating func number() throws(Fault) {
    _ = self.skip(UInt8(ascii: "-"))
    try self.digits()
    if self.skip(UInt8(ascii: ".")) { try self.digits() }
    if self.skip(UInt8(ascii: "e")) || self.skip(UInt8(ascii: "E")) {
      if !self.skip(UInt8(ascii: "-")) { _ = self.skip(UInt8(ascii: "+")) }
      try self.digits()
    }
  }

  private mutating func digits() throws(Fault) {
    let start = self.offset
    while let byte = self.next, byte >= 0x30, byte <= 0x39 { self.offset += 1 }
    guard self.offset > start else { throw self.fault }
  }

  /// Includes both quotes.
  private mutating func string() throws(Fault) -> Range<Int> {
    let start = self.offset
    try self.expect(UInt8(ascii: "\""))
    while let byte = self.next {
      switch byte {
      case UInt8(ascii: "\""):
        self.offset += 1
        return start..<self.offset
      case UInt8(ascii: "\\"):
        self.offset += 1
        try self.escape()
      case 0..<0x20: throw self.fault
      default: self.offset += 1
      }
    }
    throw self.fault
  }

  private mutating func escape() throws(Fault) {
    guard let byte = self.next else { throw self.fault }
    self.offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return
    case UInt8(ascii: "u"):
      for _ in 0..<4 {
        switch self.next ?? 0 {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: self.offset += 1
        default: throw self.fault
        }
      }
    default: throw self.fault
    }
  }

  private mutating func nested() throws(Fault) {
    var open: [UInt8] = []
    repeat {
      guard let byte = self.next else { throw self.fault }
      switch byte {
      case UInt8(ascii: "\""):
        _ = try self.string()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard open.count < Self.maxDepth else { throw self.fault }
        // In ASCII, a closing bracket is two places after its opening one.
        open.append(byte + 2)
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard open.popLast() == byte else { throw self.fault }
      case 0..<0x20 where byte != 0x09 && byte != 0x0D: throw self.fault
      default: break
      }
      self.offset += 1
    } while !open.isEmpty
  }
}
