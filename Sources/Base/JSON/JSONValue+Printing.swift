package import Bytes

extension JSONValue {
  public enum Format: Sendable {
    /// No white space.
    case compact
    /// One line, with a space after each colon and comma.
    case spaced
    /// A line per member and element, two spaces per level; no line end after the last.
    case pretty
    /// Like `pretty`, but a value that fits into 100 columns takes one line.
    case folded
  }

  /// The value as JSON text.
  public func text(_ format: Format = .compact) -> String {
    var buffer = ByteBuffer(capacity: 512)
    self.write(to: &buffer, format: format)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// Appends the value as JSON text. Numbers go out as they were written.
  ///
  /// - Parameter level: how far lines after the first are indented.
  package func write(
    to buffer: inout ByteBuffer, format: Format = .compact, level: Int = 0
  ) {
    if format == .folded, 2 * level + self.text(.spaced).utf8.count < 96 {
      return self.write(to: &buffer, format: .spaced, level: level)
    }
    switch self.content {
    case .null: buffer.append(utf8: "null" as StaticString)
    case .boolean(let value): buffer.appendJSON(value)
    case .number(let text): buffer.append(utf8: text)
    case .string(let text): buffer.appendJSONString(text)
    case .array(let values):
      buffer.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { Self.separate(&buffer, format) }
        Self.breakLine(&buffer, format, level + 1)
        value.write(to: &buffer, format: format, level: level + 1)
      }
      if !values.isEmpty { Self.breakLine(&buffer, format, level) }
      buffer.append(UInt8(ascii: "]"))
    case .object(let members):
      buffer.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { Self.separate(&buffer, format) }
        Self.breakLine(&buffer, format, level + 1)
        buffer.appendJSONString(member.name)
        buffer.append(UInt8(ascii: ":"))
        if format != .compact { buffer.append(UInt8(ascii: " ")) }
        member.value.write(to: &buffer, format: format, level: level + 1)
      }
      if !members.isEmpty { Self.breakLine(&buffer, format, level) }
      buffer.append(UInt8(ascii: "}"))
    }
  }

  private static func separate(_ buffer: inout ByteBuffer, _ format: Format) {
    buffer.append(UInt8(ascii: ","))
    if format == .spaced { buffer.append(UInt8(ascii: " ")) }
  }

  private static func breakLine(_ buffer: inout ByteBuffer, _ format: Format, _ level: Int) {
    guard format == .pretty || format == .folded else { return }
    buffer.append(UInt8(ascii: "\n"))
    for _ in 0..<level { buffer.append(utf8: "  " as StaticString) }
  }
}
