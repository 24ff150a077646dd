internal import Bytes

/// Iterates over the strings of a JSON array that our decoder made from an Avro array.
struct JSONStringList {
  private let text: UnsafeBufferPointer<UInt8>
  private var place = 0

  init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

  enum Element {
    /// Between the quotation marks, still escaped.
    case string(UnsafeBufferPointer<UInt8>)
    case null
  }

  /// Nil at the end.
  mutating func next() -> Element? {
    while self.place < self.text.count {
      switch self.text[self.place] {
      case UInt8(ascii: "\""):
        let start = self.place + 1
        var end = start
        while end < self.text.count, self.text[end] != UInt8(ascii: "\"") {
          end += self.text[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        self.place = end + 1
        return .string(UnsafeBufferPointer(rebasing: self.text[start..<min(end, self.text.count)]))
      case UInt8(ascii: "n"):
        self.place += 4
        return .null
      default: self.place += 1
      }
    }
    return nil
  }
}

extension ByteBuffer {
  /// Appends a JSON array of strings as an array of text.
  ///
  /// - Returns: how many U+0000 were replaced.
  mutating func appendPostgresTextArray(json: UnsafeBufferPointer<UInt8>) -> Int {
    let array = self.beginTextArray()
    var list = JSONStringList(json)
    var elementCount = 0
    var replacedCount = 0
    var hasNulls = false
    while let element = list.next() {
      elementCount += 1
      switch element {
      case .null:
        hasNulls = true
        self.appendBigEndian(-1 as Int32)
      case .string(let escaped):
        let field = self.beginField()
        replacedCount += self.appendUnescaped(escaped)
        self.finishField(field)
      }
    }
    self.finishTextArray(array, elementCount: elementCount, hasNulls: hasNulls)
    return replacedCount
  }

  /// The text of a JSON string; U+0000 becomes U+FFFD, and so do halves of surrogate pairs.
  ///
  /// - Returns: how many U+0000 were replaced.
  mutating func appendUnescaped(_ escaped: UnsafeBufferPointer<UInt8>) -> Int {
    var replacedCount = 0
    var place = 0
    while place < escaped.count {
      let byte = escaped[place]
      guard byte == UInt8(ascii: "\\"), place + 1 < escaped.count else {
        self.append(byte)
        place += 1
        continue
      }
      let kind = escaped[place + 1]
      place += 2
      switch kind {
      case UInt8(ascii: "b"): self.append(UInt8(0x08))
      case UInt8(ascii: "t"): self.append(UInt8(0x09))
      case UInt8(ascii: "n"): self.append(UInt8(0x0A))
      case UInt8(ascii: "f"): self.append(UInt8(0x0C))
      case UInt8(ascii: "r"): self.append(UInt8(0x0D))
      case UInt8(ascii: "u"):
        var value = Self.hexadecimal(escaped, at: place)
        place += 4
        if (0xD800..<0xDC00).contains(value), place + 1 < escaped.count,
          escaped[place] == UInt8(ascii: "\\"), escaped[place + 1] == UInt8(ascii: "u")
        {
          let low = Self.hexadecimal(escaped, at: place + 2)
          if (0xDC00..<0xE000).contains(low) {
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
            place += 6
          }
        }
        if value == 0 { replacedCount += 1 }
        self.append(scalar: value == 0 ? "\u{FFFD}" : Unicode.Scalar(value) ?? "\u{FFFD}")
      default: self.append(kind)
      }
    }
    return replacedCount
  }

  private mutating func append(scalar: Unicode.Scalar) {
    for byte in UTF8.encode(scalar)! { self.append(byte) }  // every scalar has a UTF-8 form
  }

  private static func hexadecimal(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> UInt32 {
    var value: UInt32 = 0
    for index in start..<start + 4 where index < text.count {
      let byte = text[index]
      let digit = byte < 0x3A ? byte &- 0x30 : (byte | 0x20) &- 0x57
      value = value << 4 | UInt32(digit & 15)
    }
    return value
  }
}
