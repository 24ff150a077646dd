internal import Bytes
package import JSON

extension Value {
  /// A JSON value as a value of expressions: numbers without fraction and exponent are `int` (beyond 64
  /// bits `double`), all others `double`, objects are maps and arrays lists.
  ///
  /// - Parameter arena: where texts are copied to.
  package init(_ json: JSONValue, in arena: ByteArena) {
    switch json.content {
    case .null: self = .null
    case .boolean(let value): self = .bool(value)
    case .number(let text):
      // Swift parses all JSON numbers; one beyond the range of double is infinite.
      self = Int64(text).map { .int($0) } ?? .double(Double(text) ?? .infinity)
    case .string(let text): self = .string(arena.store(text))
    case .array(let values): self = .list(ListValue(values.map { Value($0, in: arena) }))
    case .object(let members):
      self = .map(
        MapValue(
          uniqueKeys: members.map { .string(arena.store($0.name)) },
          members.map { Value($0.value, in: arena) }))
    }
  }

  /// The value as JSON: bytes in base64, timestamps in ISO 8601, durations as `3.5s`, NaN and
  /// infinities as strings, keys of maps as text. A failure is null.
  package var json: JSONValue {
    switch self {
    case .null, .failure: return nil
    case .bool(let value): return .boolean(value)
    case .int(let value): return .integer(value)
    case .uint(let value): return .integer(value)
    case .string(let text): return .string(text.text)
    case .list(let list): return .array(list.elements.map(\.json))
    case .map(let map):
      return JSONValue(
        .object(
          zip(map.keys, map.values).map { JSONMember($0.json.string ?? $0.json.text(), $1.json) }))
    case .type(let name): return .string(name.rawValue)
    case .double(let value):
      guard value.isFinite else {
        return .string(value.isNaN ? "NaN" : value > 0 ? "Infinity" : "-Infinity")
      }
      return Self.text { $0.append(value) }.number
    case .decimal(let value):
      return Self.text { $0.appendDecimal(unscaled: value.unscaled.bytes, scale: Int(value.scale)) }
    case .bytes(let value): return Self.text { $0.appendBase64(value.bytes) }
    case .timestamp(let time): return Self.text { time.append(to: &$0) }
    case .duration(let duration): return Self.text { DurationText.append(duration, to: &$0) }
    }
  }

  private static func text(_ write: (inout ByteBuffer) -> Void) -> JSONValue {
    var buffer = ByteBuffer(capacity: 64)
    write(&buffer)
    return .string(String(decoding: buffer.bytes, as: UTF8.self))
  }
}

extension JSONValue {
  /// The number that a string holds.
  fileprivate var number: JSONValue { JSONValue(.number(self.string ?? "0")) }
}

extension CELType {
  /// The type of a JSON value, as `Value(_:in:)` reads it; null may have any type.
  package init(_ json: JSONValue) {
    switch json.content {
    case .null: self = .dyn
    case .boolean: self = .bool
    case .number(let text): self = Int64(text) == nil ? .double : .int
    case .string: self = .string
    case .array: self = .list(.dyn)
    case .object: self = .map(.string, .dyn)
    }
  }
}
