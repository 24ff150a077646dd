internal import Bytes
public import JSON

/// Writes JSON values in the binary encoding of a schema (specification, "Binary Encoding").
///
/// For values that people have written, such as events of a test: mistakes are collected with their
/// places, and JSON is read as leniently as it can be without doubt.
/// - A member of a record may be left out if its field has a default or may be null.
/// - A value of a union stands for itself, without the name of its branch: the first branch that
///   takes a value of its kind.
/// - Dates and times may be text in ISO 8601, also for a `long` without a logical type, which then
///   holds milliseconds.
/// - Bytes are text, a character up to U+00FF for each, as in the defaults of schemas.
public struct DatumEncoder {
  private let schema: Schema

  /// - Parameter schema: of the values.
  public init(_ schema: Schema) { self.schema = schema }

  /// The bytes of a value of the schema's root.
  ///
  /// - Parameter path: JSON pointer of the value in its document.
  /// - Returns: bytes of no use if mistakes were reported.
  public func encode(_ value: JSONValue, path: String, mistakes: JSONMistakes) -> [UInt8] {
    var writer = DatumWriter(schema: self.schema, mistakes: mistakes)
    writer.append(value, as: self.schema.root, path: path, depth: 0)
    return writer.bytes
  }
}

/// One pass over a value.
private struct DatumWriter {
  let schema: Schema
  let mistakes: JSONMistakes
  var bytes: [UInt8] = []

  /// Values inside values.
  private static let maxDepth = 64

  init(schema: Schema, mistakes: JSONMistakes) {
    self.schema = schema
    self.mistakes = mistakes
  }

  mutating func append(_ value: JSONValue, as type: Schema.TypeID, path: String, depth: Int) {
    guard depth <= Self.maxDepth else {
      return self.report(value, path, "more than \(Self.maxDepth) values inside each other")
    }
    let definition = self.schema[type]
    switch definition.kind {
    case .null:
      if value.content != .null { self.expected("null", value, path) }
    case .boolean:
      guard let flag = value.boolean else { return self.expected("true or false", value, path) }
      self.bytes.append(flag ? 1 : 0)
    case .int:
      guard let number = Self.integer(value, definition.logicalType, isInt: true),
        let number = Int32(exactly: number)
      else { return self.expected("an integer of 32 bits", value, path) }
      self.append(Int64(number))
    case .long:
      guard let number = Self.integer(value, definition.logicalType, isInt: false) else {
        return self.expected(
          "an integer of 64 bits, or a time such as 2026-02-17T04:03:15Z", value, path)
      }
      self.append(number)
    case .float:
      guard let number = Self.number(value) else { return self.expected("a number", value, path) }
      self.appendLittleEndian(Float(number).bitPattern)
    case .double:
      guard let number = Self.number(value) else { return self.expected("a number", value, path) }
      self.appendLittleEndian(number.bitPattern)
    case .bytes:
      guard let content = Self.bytes(value) else {
        return self.expected("text of characters up to U+00FF, one for each byte", value, path)
      }
      self.append(Int64(content.count))
      self.bytes += content
    case .string:
      guard let text = value.string else { return self.expected("a string", value, path) }
      self.append(Int64(text.utf8.count))
      self.bytes += text.utf8
    case .fixed(let size):
      guard let content = Self.bytes(value), content.count == size else {
        return self.expected("text of \(size) characters up to U+00FF", value, path)
      }
      self.bytes += content
    case .enumeration(let symbols, _):
      guard let text = value.string, let index = symbols.firstIndex(of: text) else {
        return self.expected("one of \(symbols.joined(separator: ", "))", value, path)
      }
      self.append(Int64(index))
    case .array(let items):
      guard let values = value.array else { return self.expected("an array", value, path) }
      if !values.isEmpty { self.append(Int64(values.count)) }
      for (index, item) in values.enumerated() {
        self.append(item, as: items, path: "\(path)/\(index)", depth: depth + 1)
      }
      self.append(0)
    case .map(let values):
      guard let members = value.members else { return self.expected("an object", value, path) }
      if !members.isEmpty { self.append(Int64(members.count)) }
      for member in members {
        self.append(Int64(member.name.utf8.count))
        self.bytes += member.name.utf8
        self.append(
          member.value, as: values, path: JSONReader.path(path, member.name), depth: depth + 1)
      }
      self.append(0)
    case .record(let fields):
      self.append(value, fields: fields, path: path, depth: depth)
    case .union(let branches):
      self.append(value, branches: branches, path: path, depth: depth)
    }
  }

  private mutating func append(
    _ value: JSONValue, fields: [Schema.Field], path: String, depth: Int
  ) {
    let reader = JSONReader(value, path: path, mistakes: self.mistakes)
    for field in fields {
      let place = reader.path(of: field.name)
      if let member = reader.any(field.name) {
        self.append(member, as: field.type, path: place, depth: depth + 1)
      } else if let value = field.defaultValue {
        self.append(value, as: field.type, path: place, depth: depth + 1)
      } else if self.takesNull(field.type) {
        self.append(nil, as: field.type, path: place, depth: depth + 1)
      } else if value.members != nil {
        reader.report(field.name, "is required: the schema has no default for it")
      }
    }
    reader.finish()
  }

  private func takesNull(_ type: Schema.TypeID) -> Bool {
    switch self.schema[type].kind {
    case .null: true
    case .union(let branches):
      branches.contains { if case .null = self.schema[$0].kind { true } else { false } }
    default: false
    }
  }

  private mutating func append(
    _ value: JSONValue, branches: [Schema.TypeID], path: String, depth: Int
  ) {
    guard let index = branches.firstIndex(where: { self.takes(value, $0) }) else {
      let names = branches.map { self.schema[$0].name?.full ?? self.schema[$0].kind.label }
      return self.expected("a value of \(names.joined(separator: ", "))", value, path)
    }
    self.append(Int64(index))
    self.append(value, as: branches[index], path: path, depth: depth + 1)
  }

  /// Whether a branch is the one that a value of this kind is meant for; what is inside does not count.
  private func takes(_ value: JSONValue, _ branch: Schema.TypeID) -> Bool {
    let definition = self.schema[branch]
    switch (definition.kind, value.content) {
    case (.null, .null), (.boolean, .boolean), (.string, .string), (.bytes, .string),
      (.fixed, .string), (.array, .array), (.map, .object), (.float, .number), (.double, .number):
      return true
    case (.enumeration(let symbols, _), .string(let text)): return symbols.contains(text)
    case (.int, .number), (.int, .string):
      return Self.integer(value, definition.logicalType, isInt: true)
        .flatMap(Int32.init(exactly:)) != nil
    case (.long, .number), (.long, .string):
      return Self.integer(value, definition.logicalType, isInt: false) != nil
    case (.float, .string), (.double, .string): return Self.number(value) != nil
    case (.record, .object): return true
    default: return false
    }
  }

  // MARK: Scalars

  private static func integer(
    _ value: JSONValue, _ meaning: LogicalType?, isInt: Bool
  ) -> Int64? {
    guard let text = value.string else { return value.integer }
    func read<Value>(_ body: (UnsafeRawBufferPointer) -> Value?) -> Value? {
      Array(text.utf8).withUnsafeBytes(body)
    }
    switch meaning {
    case .date: return read(UTCTime.day)
    case .time(let unit): return read(UTCTime.timeOfDay).map { $0 * unit.perMillisecond }
    case .timestamp(let unit, _):
      return read(UTCTime.timestamp).flatMap {
        let (value, overflow) = $0.multipliedReportingOverflow(by: unit.perMillisecond)
        return overflow ? nil : value
      }
    default:
      if isInt { return nil }
      return read(UTCTime.timestamp) ?? read(UTCTime.day).map { $0 * 86_400_000 }
        ?? read(UTCTime.timeOfDay)
    }
  }

  private static func number(_ value: JSONValue) -> Double? {
    switch value.content {
    case .number(let text): Double(text)
    case .string("NaN"): .nan
    case .string("Infinity"): .infinity
    case .string("-Infinity"): -.infinity
    default: nil
    }
  }

  private static func bytes(_ value: JSONValue) -> [UInt8]? {
    guard let text = value.string else { return nil }
    var bytes: [UInt8] = []
    for scalar in text.unicodeScalars {
      guard let byte = UInt8(exactly: scalar.value) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  /// Zigzag, then seven bits per byte, the lowest first.
  private mutating func append(_ value: Int64) {
    var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
    while rest >= 0x80 {
      self.bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    self.bytes.append(UInt8(rest))
  }

  private mutating func appendLittleEndian(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.littleEndian) { self.bytes += $0 }
  }

  // MARK: Mistakes

  private func expected(_ what: String, _ value: JSONValue, _ path: String) {
    self.report(value, path, "expected \(what), found \(value.kind)")
  }

  private func report(_ value: JSONValue, _ path: String, _ message: String) {
    self.mistakes.append(JSONMistake(path: path, position: value.position, message: message))
  }
}

extension LogicalType.TimeUnit {
  fileprivate var perMillisecond: Int64 {
    switch self {
    case .milliseconds: 1
    case .microseconds: 1000
    case .nanoseconds: 1_000_000
    }
  }
}
