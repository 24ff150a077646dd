extension JSONValue {
  public enum Format: Sendable {
    /// No white space.
    case compact
    /// A line per member and element, two spaces per level; no line end after the last.
    case pretty
  }

  /// Appends the value as JSON text. Numbers go out as they were written.
  public func write(to buffer: inout ByteBuffer, format: Format = .compact) {
    self.write(to: &buffer, format: format, level: 0)
  }

  /// The value as JSON text.
  public func text(_ format: Format = .compact) -> String {
    var buffer = ByteBuffer(capacity: 512)
    self.write(to: &buffer, format: format)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  private func write(to buffer: inout ByteBuffer, format: Format, level: Int) {
    switch self.content {
    case .null: buffer.append(utf8: "null" as StaticString)
    case .boolean(let value):
      buffer.append(utf8: value ? "true" as StaticString : "false" as StaticString)
    case .number(let text): buffer.append(utf8: text)
    case .string(let text): Self.write(text, to: &buffer)
    case .array(let values):
      buffer.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        Self.breakLine(&buffer, format, level + 1)
        value.write(to: &buffer, format: format, level: level + 1)
      }
      if !values.isEmpty { Self.breakLine(&buffer, format, level) }
      buffer.append(UInt8(ascii: "]"))
    case .object(let members):
      buffer.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        Self.breakLine(&buffer, format, level + 1)
        Self.write(member.name, to: &buffer)
        buffer.append(UInt8(ascii: ":"))
        if format == .pretty { buffer.append(UInt8(ascii: " ")) }
        member.value.write(to: &buffer, format: format, level: level + 1)
      }
      if !members.isEmpty { Self.breakLine(&buffer, format, level) }
      buffer.append(UInt8(ascii: "}"))
    }
  }

  private static func breakLine(_ buffer: inout ByteBuffer, _ format: Format, _ level: Int) {
    guard format == .pretty else { return }
    buffer.append(UInt8(ascii: "\n"))
    for _ in 0..<level { buffer.append(utf8: "  " as StaticString) }
  }

  private static func write(_ text: String, to buffer: inout ByteBuffer) {
    let digits: StaticString = "0123456789abcdef"
    buffer.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): buffer.append(utf8: "\\\"" as StaticString)
      case UInt8(ascii: "\\"): buffer.append(utf8: "\\\\" as StaticString)
      case 0x08: buffer.append(utf8: "\\b" as StaticString)
      case 0x09: buffer.append(utf8: "\\t" as StaticString)
      case 0x0A: buffer.append(utf8: "\\n" as StaticString)
      case 0x0C: buffer.append(utf8: "\\f" as StaticString)
      case 0x0D: buffer.append(utf8: "\\r" as StaticString)
      case 0..<0x20:
        buffer.append(utf8: "\\u00" as StaticString)
        buffer.append(digits.utf8Start[Int(byte >> 4)])
        buffer.append(digits.utf8Start[Int(byte & 15)])
      default: buffer.append(byte)
      }
    }
    buffer.append(UInt8(ascii: "\""))
  }
}
