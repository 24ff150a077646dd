internal import Bytes

/// Bounds of what `JSONValue(parsing:)` accepts.
public struct JSONLimits: Sendable, Equatable {
  /// Nesting of arrays and objects, from 1. Parsing recurses once per level.
  public var depth: Int
  /// Bytes of the text.
  public var byteCount: Int
  /// Values, those within arrays and objects included: each takes some fifty bytes of memory, whatever
  /// its text.
  public var valueCount: Int

  public init(depth: Int = 128, byteCount: Int = 16 << 20, valueCount: Int = 4_000_000) {
    self.depth = depth
    self.byteCount = byteCount
    self.valueCount = valueCount
  }
}

extension JSONValue {
  /// Reads one JSON text (RFC 8259, strictly: no comments, no trailing commas, valid UTF-8).
  ///
  /// Stricter than the RFC in two places it leaves open: an object with one name twice is refused,
  /// naming both places, and so is an escaped surrogate without its partner. A byte order mark at
  /// the start is skipped. Columns count Unicode scalars.
  ///
  /// - Throws: `JSONError` for the first mistake of the text.
  public init(parsing text: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
    var parser = JSONParser(text, limits: limits)
    self = try parser.parse()
  }

  /// Like `init(parsing:limits:)`, for text that is a `String` already.
  public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try self.init(parsing: Array(text.utf8), limits: limits)
  }
}

/// A recursive-descent parser; one function per rule of the grammar.
struct JSONParser {
  private let text: [UInt8]
  private let limits: JSONLimits
  private var valueCount = 0
  private var offset = 0
  private var line = 1
  private var lineStart = 0
  /// UTF-8 continuation bytes of the current line so far: what offset and column differ by.
  private var continuationCount = 0
  private var depth = 0

  init(_ text: [UInt8], limits: JSONLimits) {
    self.text = text
    self.limits = limits
  }

  mutating func parse() throws(JSONError) -> JSONValue {
    guard self.text.count <= self.limits.byteCount else {
      throw self.error(
        .limitExceeded,
        "the text has \(self.text.count) bytes; the limit is \(self.limits.byteCount)")
    }
    try self.checkUTF8()
    if self.text.starts(with: [0xEF, 0xBB, 0xBF]) {
      self.offset = 3
      self.lineStart = 3
    }
    self.skipWhitespace()
    let value = try self.value()
    self.skipWhitespace()
    guard self.offset == self.text.count else {
      throw self.error(
        .malformed, "the text ends after one value, but \(self.found) follows")
    }
    return value
  }

  private mutating func value() throws(JSONError) -> JSONValue {
    let position = self.position
    self.valueCount += 1
    guard self.valueCount <= self.limits.valueCount else {
      throw self.error(.limitExceeded, "there are more than \(self.limits.valueCount) values")
    }
    switch self.current {
    case UInt8(ascii: "{"): return JSONValue(.object(try self.members()), at: position)
    case UInt8(ascii: "["): return JSONValue(.array(try self.elements()), at: position)
    case UInt8(ascii: "\""): return JSONValue(.string(try self.string()), at: position)
    case UInt8(ascii: "t"):
      try self.literal("true")
      return JSONValue(.boolean(true), at: position)
    case UInt8(ascii: "f"):
      try self.literal("false")
      return JSONValue(.boolean(false), at: position)
    case UInt8(ascii: "n"):
      try self.literal("null")
      return JSONValue(.null, at: position)
    case let byte? where byte == UInt8(ascii: "-") || byte.isDigit:
      return JSONValue(.number(try self.number()), at: position)
    default: throw self.unexpected("expected a value", isAfterComma: self.hasComma)
    }
  }

  private mutating func members() throws(JSONError) -> [JSONMember] {
    let opening = self.position
    try self.enter()
    defer { self.depth -= 1 }
    self.skipWhitespace()
    if self.current == UInt8(ascii: "}") {
      self.offset += 1
      return []
    }
    var members: [JSONMember] = []
    // Names are compared one by one while they are few.
    var places: [String: JSONValue.Position] = [:]
    while true {
      let namePosition = self.position
      guard self.current == UInt8(ascii: "\"") else {
        throw self.unexpected(
          members.isEmpty
            ? "expected a name in double quotes or '}'"
            : "expected a name in double quotes after ','", isAfterComma: !members.isEmpty)
      }
      let name = try self.string()
      let earlier =
        members.count < 8
        ? members.first { $0.name == name }?.namePosition
        : places[name]
      if let earlier {
        throw JSONError(
          .duplicateName,
          "the name '\(name)' is listed twice in this object, first at line \(earlier.line), column \(earlier.column)",
          at: namePosition)
      }
      self.skipWhitespace()
      guard self.current == UInt8(ascii: ":") else {
        throw self.unexpected("expected ':' after the name")
      }
      self.offset += 1
      self.skipWhitespace()
      members.append(JSONMember(name, try self.value(), at: namePosition))
      if members.count == 8 {
        for member in members { places[member.name] = member.namePosition }
      } else if members.count > 8 {
        places[name] = namePosition
      }
      self.skipWhitespace()
      switch self.current {
      case UInt8(ascii: ","):
        self.offset += 1
        self.skipWhitespace()
      case UInt8(ascii: "}"):
        self.offset += 1
        return members
      default:
        throw self.missingComma(
          "expected ',' or '}' in the object of line \(opening.line), column \(opening.column)")
      }
    }
  }

  private mutating func elements() throws(JSONError) -> [JSONValue] {
    let opening = self.position
    try self.enter()
    defer { self.depth -= 1 }
    self.skipWhitespace()
    if self.current == UInt8(ascii: "]") {
      self.offset += 1
      return []
    }
    var elements: [JSONValue] = []
    while true {
      elements.append(try self.value())
      self.skipWhitespace()
      switch self.current {
      case UInt8(ascii: ","):
        self.offset += 1
        self.skipWhitespace()
      case UInt8(ascii: "]"):
        self.offset += 1
        return elements
      default:
        throw self.missingComma(
          "expected ',' or ']' in the array of line \(opening.line), column \(opening.column)")
      }
    }
  }

  private mutating func enter() throws(JSONError) {
    guard self.depth < self.limits.depth else {
      throw self.error(
        .limitExceeded, "arrays and objects are nested deeper than \(self.limits.depth) levels")
    }
    self.depth += 1
    self.offset += 1
  }

  private mutating func literal(_ word: StaticString) throws(JSONError) {
    let bytes = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    let start = self.position
    for byte in bytes {
      guard self.current == byte else {
        guard self.current != nil else { throw self.unexpected("expected '\(word)'") }
        throw JSONError(.malformed, "expected a value; did you mean '\(word)'?", at: start)
      }
      self.offset += 1
    }
  }

  private mutating func number() throws(JSONError) -> String {
    let start = self.offset
    if self.current == UInt8(ascii: "-") { self.offset += 1 }
    if self.current == UInt8(ascii: "0") {
      self.offset += 1
      if let digit = self.current, digit.isDigit {
        throw self.error(.malformed, "a number must not begin with 0")
      }
    } else {
      try self.digits("expected a digit after '-'")
    }
    if self.current == UInt8(ascii: ".") {
      self.offset += 1
      try self.digits("expected a digit after '.'")
    }
    if self.current == UInt8(ascii: "e") || self.current == UInt8(ascii: "E") {
      self.offset += 1
      if self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") {
        self.offset += 1
      }
      try self.digits("expected a digit in the exponent")
    }
    return String(decoding: self.text[start..<self.offset], as: UTF8.self)
  }

  private mutating func digits(_ expectation: String) throws(JSONError) {
    guard let first = self.current, first.isDigit else { throw self.unexpected(expectation) }
    while let digit = self.current, digit.isDigit { self.offset += 1 }
  }

  private mutating func skipWhitespace() {
    while let byte = self.current {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"): self.offset += 1
      case UInt8(ascii: "\n"):
        self.offset += 1
        self.newLine()
      case UInt8(ascii: "\r"):
        self.offset += 1
        if self.current == UInt8(ascii: "\n") { self.offset += 1 }
        self.newLine()
      default: return
      }
    }
  }

  private mutating func newLine() {
    self.line += 1
    self.lineStart = self.offset
    self.continuationCount = 0
  }
}

// MARK: - Strings

extension JSONParser {
  private mutating func string() throws(JSONError) -> String {
    let opening = self.position
    self.offset += 1
    let start = self.offset
    self.skipPlain()
    if self.current == UInt8(ascii: "\"") {
      defer { self.offset += 1 }
      return String(decoding: self.text[start..<self.offset], as: UTF8.self)
    }
    var bytes = Array(self.text[start..<self.offset])
    while true {
      switch self.current {
      case UInt8(ascii: "\""):
        self.offset += 1
        return String(decoding: bytes, as: UTF8.self)
      case UInt8(ascii: "\\"): try self.escape(into: &bytes)
      case nil:
        let isAbove = opening.line != self.position.line
        throw self.unexpected(
          "the string that begins \(isAbove ? "in line \(opening.line), " : "at ")column "
            + "\(opening.column) is not closed")
      default:
        throw self.error(
          .malformed, "\(self.found) in a string must be escaped (a closing '\"' may be missing)")
      }
      let plain = self.offset
      self.skipPlain()
      bytes += self.text[plain..<self.offset]
    }
  }

  /// Goes to the next quote, backslash, control character or the end of the text.
  private mutating func skipPlain() {
    while let byte = self.current {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { return }
      if byte & 0xC0 == 0x80 { self.continuationCount += 1 }
      self.offset += 1
    }
  }

  private mutating func escape(into bytes: inout [UInt8]) throws(JSONError) {
    let start = self.position
    self.offset += 1
    switch self.current {
    case UInt8(ascii: "\""): bytes.append(UInt8(ascii: "\""))
    case UInt8(ascii: "\\"): bytes.append(UInt8(ascii: "\\"))
    case UInt8(ascii: "/"): bytes.append(UInt8(ascii: "/"))
    case UInt8(ascii: "b"): bytes.append(8)
    case UInt8(ascii: "f"): bytes.append(12)
    case UInt8(ascii: "n"): bytes.append(10)
    case UInt8(ascii: "r"): bytes.append(13)
    case UInt8(ascii: "t"): bytes.append(9)
    case UInt8(ascii: "u"):
      self.offset += 1
      let scalar = try self.escapedScalar(from: start)
      bytes += UTF8.encode(scalar).map(Array.init) ?? []
      return
    case nil: throw self.unexpected("expected a character after '\\'")
    default:
      throw JSONError(
        .malformed, "'\\' is followed by \(self.found), which is not a JSON escape", at: start)
    }
    self.offset += 1
  }

  /// The scalar of `\uXXXX`, or of two of them that are a surrogate pair (RFC 8259 section 7).
  private mutating func escapedScalar(
    from start: JSONValue.Position
  ) throws(JSONError) -> Unicode.Scalar {
    let first = try self.codeUnit()
    if let scalar = Unicode.Scalar(UInt32(first)) { return scalar }
    let lone = JSONError(
      .invalidText, "the escape names half a surrogate pair and no character", at: start)
    guard UTF16.isLeadSurrogate(first) else { throw lone }
    guard self.current != nil else { throw self.unexpected("expected a second '\\u'") }
    guard self.current == UInt8(ascii: "\\") else { throw lone }
    self.offset += 1
    guard self.current != nil else { throw self.unexpected("expected a second '\\u'") }
    guard self.current == UInt8(ascii: "u") else { throw lone }
    self.offset += 1
    let second = try self.codeUnit()
    let value = 0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(second) & 0x3FF
    guard UTF16.isTrailSurrogate(second), let scalar = Unicode.Scalar(value) else { throw lone }
    return scalar
  }

  private mutating func codeUnit() throws(JSONError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = self.current, let digit = byte.hexDigit else {
        throw self.unexpected("expected four hexadecimal digits after '\\u'")
      }
      unit = unit << 4 | UInt16(digit)
      self.offset += 1
    }
    return unit
  }
}

// MARK: - Places and messages

extension JSONParser {
  private var current: UInt8? {
    @inline(__always) get {
      self.offset < self.text.count ? self.text[self.offset] : nil
    }
  }

  private var position: JSONValue.Position {
    JSONValue.Position(
      line: self.line, column: self.offset - self.lineStart - self.continuationCount + 1)
  }

  private func error(_ code: JSONError.Code, _ message: String) -> JSONError {
    JSONError(code, message, at: self.position)
  }

  /// - Parameter isAfterComma: a comma stands before, which may be one too many.
  private func unexpected(_ expectation: String, isAfterComma: Bool = false) -> JSONError {
    guard self.offset < self.text.count else {
      return self.error(.truncated, "\(expectation), but the text ends here")
    }
    return self.error(
      .malformed, "\(expectation), found \(self.found)\(self.remedy(isAfterComma: isAfterComma))")
  }

  /// The probable intention of a character at the current place, in JSON written by hand.
  private func remedy(isAfterComma: Bool) -> String {
    switch self.current {
    case UInt8(ascii: "}") where isAfterComma, UInt8(ascii: "]") where isAfterComma:
      "; remove the ',' before it"
    case UInt8(ascii: "/"), UInt8(ascii: "#"):
      "; JSON has no comments; remove it, or write it as a member, \"//\": \"text\""
    case UInt8(ascii: "'"): "; strings need double quotes"
    default: ["U+201C", "U+201D"].contains(self.found) ? "; replace the curly quote by \"" : ""
    }
  }

  /// After a value: where another begins, the comma between them is missing.
  private func missingComma(_ expectation: String) -> JSONError {
    var error = self.unexpected(expectation)
    switch self.current {
    case UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["):
      error.message += "; is a ',' missing before it?"
    default: break
    }
    return error
  }

  /// Whether a comma precedes the current place.
  private var hasComma: Bool {
    let before = self.text[..<self.offset].last { $0 > 0x20 }
    return before == UInt8(ascii: ",")
  }

  /// The character at the current place, fit for a message.
  private var found: String {
    guard self.offset < self.text.count else { return "the end of the text" }
    // A scalar has at most four bytes, and the whole text is valid UTF-8.
    let bytes = self.text[self.offset..<min(self.offset + 4, self.text.count)]
    guard let scalar = String(decoding: bytes, as: UTF8.self).unicodeScalars.first else {
      return "nothing"
    }
    if scalar.value > 0x20, scalar.value < 0x7F { return "'\(scalar)'" }
    let digits = String(scalar.value, radix: 16, uppercase: true)
    return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  private mutating func checkUTF8() throws(JSONError) {
    let invalidOffset: Int?
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: self.text.span)
      invalidOffset = nil
    } catch {
      invalidOffset = error.byteOffsets.lowerBound
    }
    guard let invalidOffset else { return }
    self.advance(to: invalidOffset)
    throw self.error(.invalidText, "the text is not UTF-8: byte \(invalidOffset) is not valid")
  }

  /// Counts lines and characters up to `end`, for the place of a mistake found out of order.
  private mutating func advance(to end: Int) {
    while self.offset < end {
      let byte = self.text[self.offset]
      self.offset += 1
      if byte & 0xC0 == 0x80 { self.continuationCount += 1 }
      let isReturn = byte == UInt8(ascii: "\r")
      let endsLine = isReturn && !(self.current == UInt8(ascii: "\n"))
      if byte == UInt8(ascii: "\n") || endsLine { self.newLine() }
    }
  }
}
