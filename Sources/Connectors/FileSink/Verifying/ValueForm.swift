internal import JSON

/// Whether two values differ only in form: events have CR LF where REST has LF, and picklist values
/// in another order; missing parts of an object are null or left out. Numbers with a fraction or an
/// exponent may be written in several ways.
enum ValueForm {
  /// - Parameters: texts as JSON, empty for null.
  static func isSame(
    _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    if left.elementsEqual(right) { return true }
    switch (left.first, right.first) {
    case (UInt8(ascii: "\""), UInt8(ascii: "\"")):
      return Self.unixLines(left).elementsEqual(Self.unixLines(right))
    case (UInt8(ascii: "["), UInt8(ascii: "[")), (UInt8(ascii: "{"), UInt8(ascii: "{")):
      guard let left = try? JSONValue(parsing: Array(left)),
        let right = try? JSONValue(parsing: Array(right))
      else { return false }
      return Self.normal(left) == Self.normal(right)
    default:
      guard Self.isFloating(left), Self.isFloating(right),
        let left = Double(String(decoding: left, as: UTF8.self)),
        let right = Double(String(decoding: right, as: UTF8.self))
      else { return false }
      return left == right
    }
  }

  private static func isFloating(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    text.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
      && text.first != UInt8(ascii: "f") && text.first != UInt8(ascii: "t")
  }

  /// An escape is skipped as a pair: `\\r\\n` is not a line break.
  private static func unixLines(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var index = 0
    while index < text.count {
      guard text[index] == UInt8(ascii: "\\"), index + 1 < text.count else {
        result.append(text[index])
        index += 1
        continue
      }
      let rest = UnsafeBufferPointer(rebasing: text[index..<min(index + 4, text.count)])
      if !rest.equals("\\r\\n") { result.append(contentsOf: text[index..<index + 2]) }
      index += 2
    }
    return result
  }

  private static func normal(_ value: JSONValue) -> JSONValue {
    switch value.content {
    case .string(let text): return .string(Self.unixLines(text))
    case .array(let elements):
      let normal = elements.map { Self.normal($0) }
      return JSONValue(.array(normal.sorted { $0.text(.compact) < $1.text(.compact) }))
    case .object(let members):
      let normal = members.filter { $0.value.content != .null }
        .map { JSONMember($0.name, Self.normal($0.value)) }
      return JSONValue(.object(normal.sorted { $0.name < $1.name }))
    case .null, .boolean, .number: return value
    }
  }

  private static func unixLines(_ text: String) -> String {
    var result: [UInt8] = []
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\n"), result.last == UInt8(ascii: "\r") { result.removeLast() }
      result.append(byte)
    }
    return String(decoding: result, as: UTF8.self)
  }
}
