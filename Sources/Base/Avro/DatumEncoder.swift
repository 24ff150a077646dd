public import JSON

/// Writes JSON values in the binary encoding of a schema (specification, "Binary Encoding").
///
/// For values written by people, such as test events: mistakes are collected with their places, and
/// JSON is read as leniently as is unambiguous.
/// - A member of a record may be left out if its field has a default or may be null.
/// - A value of a union is written without the name of its branch, which is the first one that
///   accepts a value of its kind. If that is ambiguous, an object may name the branch, as in the
///   specification's JSON encoding: `{"string": "x"}`. In a union with a map, an object is always
///   the map.
/// - Dates and times may be ISO 8601 text, even for a `long` without a logical type, which then
///   holds milliseconds. Digits that the unit cannot hold are a mistake.
/// - Decimals are numbers, or numbers as text if bytes are base64; UUIDs are text; durations are
///   objects with `months`, `days` and `milliseconds`.
public struct DatumEncoder {
  /// How JSON represents bytes. Defaults in schemas always use characters.
  public enum BytesForm: Sendable {
    /// One character up to U+00FF per byte.
    case characters
    /// RFC 4648 section 4, as in exported lines.
    case base64
  }

  private let schema: Schema
  private let bytes: BytesForm
  private let limits: EncodeLimits

  /// - Parameters:
  ///   - schema: the schema of the values.
  ///   - bytes: how the JSON represents bytes.
  ///   - limits: the limits of one value; exceeding one is a mistake.
  public init(
    _ schema: Schema, bytes: BytesForm = .characters, limits: EncodeLimits = EncodeLimits()
  ) {
    self.schema = schema
    self.bytes = bytes
    self.limits = limits
  }

  /// The bytes of a value of the schema's root.
  ///
  /// - Parameter path: JSON pointer of the value in its document.
  /// - Returns: the bytes, which are useless if mistakes were reported.
  public func encode(_ value: JSONValue, path: String, mistakes: JSONMistakes) -> [UInt8] {
    var writer = DatumWriter(
      schema: self.schema, form: self.bytes, limits: self.limits, mistakes: mistakes)
    writer.append(value, as: self.schema.root, path: path, depth: 0)
    return writer.bytes
  }
}

/// One pass over a value.
struct DatumWriter {
  let schema: Schema
  let mistakes: JSONMistakes
  var bytes: [UInt8] = []
  var form: DatumEncoder.BytesForm
  let limits: EncodeLimits
  private var valuesLeft: Int
  private var mistakesLeft: Int
  /// A limit was exceeded, so nothing more is written or reported.
  private(set) var isStopped = false

  /// The maximum nesting of values.
  private static let maxDepth = 64

  init(
    schema: Schema, form: DatumEncoder.BytesForm, limits: EncodeLimits, mistakes: JSONMistakes
  ) {
    self.schema = schema
    self.form = form
    self.limits = limits
    self.valuesLeft = limits.values
    self.mistakesLeft = limits.mistakes
    self.mistakes = mistakes
  }

  mutating func append(_ value: JSONValue, as type: Schema.TypeID, path: String, depth: Int) {
    guard !self.isStopped else { return }
    guard depth <= Self.maxDepth else {
      return self.report(value, path, "more than \(Self.maxDepth) values inside each other")
    }
    self.valuesLeft -= 1
    guard self.valuesLeft >= 0 else {
      return self.stop(value, path, "more than \(self.limits.values) values, defaults included")
    }
    self.write(value, as: type, path: path, depth: depth)
    if self.bytes.count > self.limits.byteCount {
      self.stop(value, path, "more than \(self.limits.byteCount) bytes in Avro")
    }
  }

  private mutating func write(
    _ value: JSONValue, as type: Schema.TypeID, path: String, depth: Int
  ) {
    let definition = self.schema[type]
    switch definition.kind {
    case .null:
      if value.content != .null { self.expected("null", value, path) }
    case .boolean:
      guard let flag = value.boolean else { return self.expected("true or false", value, path) }
      self.bytes.append(flag ? 1 : 0)
    case .int:
      guard
        let number = Self.integer(value, definition.logicalType, isInt: true)
          ?? value.wholeNumber, let number = Int32(exactly: number)
      else {
        return self.expectedNumber(
          definition.logicalType.integerWords ?? "an integer of 32 bits", value, path)
      }
      self.append(Int64(number))
    case .long:
      // `3.0` and `1e3`, as programs write whole numbers that they hold as doubles. In a union, such a
      // number belongs to the floating-point branch if there is one.
      guard
        let number = Self.integer(value, definition.logicalType, isInt: false)
          ?? value.wholeNumber
      else {
        return self.expectedNumber(
          definition.logicalType.integerWords
            ?? "an integer of 64 bits, or a time such as 2026-02-17T04:03:15Z", value, path)
      }
      self.append(number)
    case .float:
      guard let number = Self.number(value), Float(number).isFinite || !number.isFinite else {
        return self.expectedNumber("a number (float)", value, path)
      }
      self.appendLittleEndian(Float(number).bitPattern)
    case .double:
      guard let number = Self.number(value) else {
        return self.expectedNumber("a number (double)", value, path)
      }
      self.appendLittleEndian(number.bitPattern)
    case .bytes:
      guard let content = self.bytes(value, definition) else {
        return self.expected(self.words(for: definition), value, path)
      }
      self.append(Int64(content.count))
      self.bytes += content
    case .string:
      guard let text = value.string else { return self.expected("a string", value, path) }
      guard definition.logicalType != .uuid || Self.uuid(text) != nil else {
        return self.expected("a UUID", value, path)
      }
      self.append(Int64(text.utf8.count))
      self.bytes += text.utf8
    case .fixed:
      guard let content = self.bytes(value, definition) else {
        return self.expected(self.words(for: definition), value, path)
      }
      self.bytes += content
    case .enumeration(let symbols, _):
      guard let text = value.string, let index = symbols.firstIndex(of: text) else {
        return self.expected("one of \(listing(symbols))", value, path)
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
    _ value: JSONValue, branches: [Schema.TypeID], path: String, depth: Int
  ) {
    if let (index, inner) = self.named(value, branches) {
      self.append(Int64(index))
      let path = JSONReader.path(path, self.label(branches[index]))
      return self.append(inner, as: branches[index], path: path, depth: depth + 1)
    }
    guard let index = branches.firstIndex(where: { self.takes(value, $0) }) else {
      // With a single branch besides null, the message of that branch is the most precise.
      let others = branches.indices.filter {
        if case .null = self.schema[branches[$0]].kind { false } else { true }
      }
      if others.count == 1 {
        self.append(Int64(others[0]))
        return self.append(value, as: branches[others[0]], path: path, depth: depth + 1)
      }
      let names = branches.map { self.label($0) }
      return self.expected("a value of \(listing(names))", value, path)
    }
    self.append(Int64(index))
    self.append(value, as: branches[index], path: path, depth: depth + 1)
  }

  /// The name by which an object may choose a branch.
  private func label(_ branch: Schema.TypeID) -> String {
    self.schema[branch].name?.full ?? self.schema[branch].kind.label
  }

  /// The branch that an object names, and its value; nil if the object may be a value itself.
  private func named(
    _ value: JSONValue, _ branches: [Schema.TypeID]
  ) -> (index: Int, value: JSONValue)? {
    guard let members = value.members, members.count == 1,
      let index = branches.firstIndex(where: { self.label($0) == members[0].name })
    else { return nil }
    let isValue = branches.contains { branch in
      switch self.schema[branch].kind {
      case .map: true
      case .record(let fields): fields.contains { $0.name == members[0].name }
      default: false
      }
    }
    return isValue ? nil : (index, members[0].value)
  }

  /// Whether a branch is meant for a value of this kind, regardless of its content.
  private func takes(_ value: JSONValue, _ branch: Schema.TypeID) -> Bool {
    let definition = self.schema[branch]
    switch (definition.kind, value.content) {
    case (.null, .null), (.boolean, .boolean), (.array, .array), (.map, .object),
      (.float, .number), (.double, .number):
      return true
    case (.string, .string(let text)):
      return definition.logicalType != .uuid || Self.uuid(text) != nil
    case (.bytes, _), (.fixed, _): return self.bytes(value, definition) != nil
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

  private static func number(_ value: JSONValue) -> Double? {
    switch value.content {
    // Digits beyond the range are a mistake; infinity is written as text.
    case .number(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
    case .string("NaN"): .nan
    case .string("Infinity"): .infinity
    case .string("-Infinity"): -.infinity
    default: nil
    }
  }

  /// Zig-zag encoding, then seven bits per byte, lowest first.
  mutating func append(_ value: Int64) {
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

  mutating func expected(_ what: String, _ value: JSONValue, _ path: String) {
    self.report(value, path, "expected \(what), found \(value.kind)")
  }

  /// Reports why a number is not the expected one.
  private mutating func expectedNumber(_ what: String, _ value: JSONValue, _ path: String) {
    guard case .number(let text) = value.content else { return self.expected(what, value, path) }
    let number = Double(text) ?? .infinity
    let flaw = number == number.rounded() ? "out of range" : "with a fraction"
    self.report(value, path, "expected \(what), found a number \(flaw)")
  }

  private mutating func report(_ value: JSONValue, _ path: String, _ message: String) {
    self.report(JSONMistake(path: path, position: value.position, message: message))
  }

  mutating func report(_ mistake: JSONMistake) {
    guard !self.isStopped else { return }
    self.mistakes.append(mistake)
    self.mistakesLeft -= 1
    if self.mistakesLeft <= 0 { self.isStopped = true }
  }

  private mutating func stop(_ value: JSONValue, _ path: String, _ message: String) {
    self.report(value, path, message)
    self.isStopped = true
  }
}
