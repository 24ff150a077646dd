internal import Bytes

/// Splits the text of an expression into tokens (CEL language definition, "Syntax").
struct Lexer {
  private let text: [UInt8]
  private var offset = 0

  /// Longest first, so that `<=` is not read as `<`.
  static let symbols = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{",
    "}", "+", "-", "*", "/", "%",
  ]
  private static let symbolBytes = Self.symbols.map { (text: $0, bytes: Array($0.utf8)) }

  init(_ text: [UInt8]) { self.text = text }

  mutating func next() throws(CELError) -> Token {
    try self.skipBlanks()
    let start = self.offset
    guard let byte = self.peek() else { return Token(kind: .end, offset: start) }
    if byte.isDigit || (byte == UInt8(ascii: ".") && self.peek(1)?.isDigit == true) {
      return Token(kind: try self.number(), offset: start)
    }
    if let literal = try self.stringLiteral() { return Token(kind: literal, offset: start) }
    if byte.isNameStart {
      while self.peek()?.isNamePart == true { self.offset += 1 }
      let name = String(decoding: self.text[start..<self.offset], as: UTF8.self)
      return Token(kind: .identifier(name), offset: start)
    }
    if byte == UInt8(ascii: "`") { return Token(kind: try self.quotedName(), offset: start) }
    for symbol in Self.symbolBytes where self.text[start...].starts(with: symbol.bytes) {
      self.offset += symbol.bytes.count
      return Token(kind: .symbol(symbol.text), offset: start)
    }
    switch byte {
    case UInt8(ascii: "="):
      throw self.error("'=' is not an operator; compare with '=='", at: start)
    case UInt8(ascii: "&"), UInt8(ascii: "|"):
      throw self.error("'and' is written '&&', 'or' is written '||'", at: start)
    default:
      throw self.error("unexpected character", at: start)
    }
  }

  func error(_ message: String, at offset: Int) -> CELError {
    CELError(.syntax, message, at: SourcePosition(offset: offset, in: self.text))
  }

  // MARK: Pieces

  private func peek(_ distance: Int = 0) -> UInt8? {
    let index = self.offset + distance
    return index < self.text.count ? self.text[index] : nil
  }

  private mutating func skipBlanks() throws(CELError) {
    while let byte = self.peek() {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), 0x0C:
        self.offset += 1
      case UInt8(ascii: "/") where self.peek(1) == UInt8(ascii: "/"):
        while let byte = self.peek(), byte != UInt8(ascii: "\n") { self.offset += 1 }
      default: return
      }
    }
  }

  private mutating func quotedName() throws(CELError) -> Token.Kind {
    let start = self.offset
    self.offset += 1
    while let byte = self.peek(), byte != UInt8(ascii: "`") {
      guard byte.isNamePart || [0x20, 0x2D, 0x2E, 0x2F].contains(byte) else {
        throw self.error(
          "a name between backticks has letters, digits, '_', '.', '-', '/' and spaces only",
          at: self.offset)
      }
      self.offset += 1
    }
    guard self.peek() != nil, self.offset > start + 1 else {
      throw self.error("the name between backticks is empty or does not end", at: start)
    }
    let name = String(decoding: self.text[start + 1..<self.offset], as: UTF8.self)
    self.offset += 1
    return .quotedIdentifier(name)
  }

  // MARK: Numbers

  private mutating func number() throws(CELError) -> Token.Kind {
    let start = self.offset
    if self.peek() == UInt8(ascii: "0"), self.peek(1) == UInt8(ascii: "x") {
      self.offset += 2
      let digits = self.offset
      while self.peek()?.hexDigit != nil { self.offset += 1 }
      guard self.offset > digits else { throw self.error("'0x' without digits", at: start) }
      return try self.integer(from: digits, radix: 16, start: start)
    }
    self.skipDigits()
    var isDouble = false
    if self.peek() == UInt8(ascii: "."), self.peek(1)?.isDigit == true {
      isDouble = true
      self.offset += 1
      self.skipDigits()
    }
    if let e = self.peek(), e | 0x20 == UInt8(ascii: "e") {
      let hasSign = [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(self.peek(1))
      if self.peek(hasSign ? 2 : 1)?.isDigit == true {
        isDouble = true
        self.offset += hasSign ? 2 : 1
        self.skipDigits()
      }
    }
    guard isDouble else { return try self.integer(from: start, radix: 10, start: start) }
    let digits = String(decoding: self.text[start..<self.offset], as: UTF8.self)
    guard let value = Double(digits), value.isFinite else {
      throw self.error("the number is beyond the range of double", at: start)
    }
    return .double(value)
  }

  private mutating func skipDigits() {
    while self.peek()?.isDigit == true { self.offset += 1 }
  }

  private mutating func integer(
    from digits: Int, radix: Int, start: Int
  ) throws(CELError) -> Token.Kind {
    let value = UInt64(
      String(decoding: self.text[digits..<self.offset], as: UTF8.self), radix: radix)
    let isUnsigned = self.peek().map { $0 | 0x20 == UInt8(ascii: "u") } ?? false
    if isUnsigned { self.offset += 1 }
    guard let value else {
      throw self.error("the number is beyond 64 bits", at: start)
    }
    return isUnsigned ? .uint(value) : .int(value)
  }

  // MARK: Strings

  /// A string or bytes if one begins here: a quote behind `b`, `r` or `br`, in upper or lower case.
  private mutating func stringLiteral() throws(CELError) -> Token.Kind? {
    let isBytes = self.peek().map { $0 | 0x20 == UInt8(ascii: "b") } ?? false
    let isRaw = self.peek(isBytes ? 1 : 0).map { $0 | 0x20 == UInt8(ascii: "r") } ?? false
    let prefix = (isBytes ? 1 : 0) + (isRaw ? 1 : 0)
    guard self.peek(prefix)?.isQuote == true else { return nil }
    return try self.stringLiteral(quote: self.offset + prefix, isRaw: isRaw, isBytes: isBytes)
  }

  private mutating func stringLiteral(
    quote start: Int, isRaw: Bool, isBytes: Bool
  ) throws(CELError) -> Token.Kind {
    let quote = self.text[start]
    let isTriple =
      start + 2 < self.text.count && self.text[start + 1] == quote
      && self.text[start + 2] == quote
    let literalStart = self.offset
    self.offset = start + (isTriple ? 3 : 1)
    var content: [UInt8] = []
    while true {
      guard let byte = self.peek() else {
        throw self.error("the string that begins here does not end", at: literalStart)
      }
      if byte == quote, !isTriple || (self.peek(1) == quote && self.peek(2) == quote) {
        self.offset += isTriple ? 3 : 1
        return isBytes ? .bytes(content) : .string(content)
      }
      if !isTriple, byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
        throw self.error(
          "the string that begins here does not end on its line; write \\n, or use three quotes",
          at: literalStart)
      }
      self.offset += 1
      guard byte == UInt8(ascii: "\\"), !isRaw else {
        content.append(byte)
        continue
      }
      try self.escape(into: &content, isBytes: isBytes)
    }
  }

  /// Reads what follows a backslash.
  private mutating func escape(into content: inout [UInt8], isBytes: Bool) throws(CELError) {
    let start = self.offset - 1
    guard let byte = self.peek() else {
      throw self.error("the string does not end", at: start)
    }
    self.offset += 1
    switch byte {
    case UInt8(ascii: "a"): content.append(0x07)
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0C)
    case UInt8(ascii: "n"): content.append(0x0A)
    case UInt8(ascii: "r"): content.append(0x0D)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "v"): content.append(0x0B)
    case UInt8(ascii: "\\"), UInt8(ascii: "?"), UInt8(ascii: "\""), UInt8(ascii: "'"),
      UInt8(ascii: "`"):
      content.append(byte)
    case UInt8(ascii: "x"), UInt8(ascii: "X"):
      try self.append(
        self.digits(2, radix: 16, from: start), to: &content, isBytes: isBytes, at: start)
    case UInt8(ascii: "u") where !isBytes:
      try self.append(
        self.digits(4, radix: 16, from: start), to: &content, isBytes: false, at: start)
    case UInt8(ascii: "U") where !isBytes:
      try self.append(
        self.digits(8, radix: 16, from: start), to: &content, isBytes: false, at: start)
    case UInt8(ascii: "0")...UInt8(ascii: "3"):
      self.offset -= 1
      try self.append(
        self.digits(3, radix: 8, from: start), to: &content, isBytes: isBytes, at: start)
    default:
      throw self.error(
        isBytes && byte | 0x20 == UInt8(ascii: "u")
          ? "bytes have no \\u escapes; write \\x and two digits per byte"
          : "unknown escape; a reverse solidus is written \\\\, or use a raw string: r'…'",
        at: start)
    }
  }

  private mutating func digits(
    _ count: Int, radix: UInt32, from start: Int
  ) throws(CELError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count {
      guard let digit = self.peek()?.hexDigit, UInt32(digit) < radix else {
        throw self.error("the escape needs \(count) digits of base \(radix)", at: start)
      }
      value = value << (radix == 16 ? 4 : 3) | UInt32(digit)
      self.offset += 1
    }
    return value
  }

  private func append(
    _ value: UInt32, to content: inout [UInt8], isBytes: Bool, at start: Int
  ) throws(CELError) {
    if isBytes {
      content.append(UInt8(truncatingIfNeeded: value))
    } else if let scalar = Unicode.Scalar(value) {
      content.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    } else {
      throw self.error("the escape names no Unicode character", at: start)
    }
  }
}

extension UInt8 {
  var isNameStart: Bool { self.isWordCharacter && !self.isDigit }
  var isNamePart: Bool { self.isWordCharacter }
  var isQuote: Bool { self == UInt8(ascii: "\"") || self == UInt8(ascii: "'") }
}
