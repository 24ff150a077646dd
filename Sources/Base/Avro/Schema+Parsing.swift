internal import Bytes
package import JSON

extension Schema {
  /// Reads the JSON text of a schema.
  ///
  /// - Throws: code `schema` with a JSON pointer for text that violates the specification,
  ///   `limitExceeded` for text beyond the limits.
  public init(parsing text: [UInt8], limits: SchemaLimits = SchemaLimits()) throws(AvroError) {
    // A type is at most three levels of JSON: union, object, list of fields.
    let jsonLimits = JSONLimits(depth: limits.depth * 3 + 8, byteCount: limits.byteCount)
    let value: JSONValue
    do {
      value = try JSONValue(parsing: text, limits: jsonLimits)
    } catch {
      throw AvroError(
        error.code == .limitExceeded ? .limitExceeded : .schema,
        "not JSON text: \(error.message)", position: Self.describe(error.position))
    }
    try self.init(value, limits: limits)
  }

  /// Like `init(parsing:limits:)`, for text that is already parsed.
  package init(_ value: JSONValue, limits: SchemaLimits = SchemaLimits()) throws(AvroError) {
    var parser = SchemaParser(limits: limits)
    let root = try parser.type(value, namespace: "", path: "", depth: 0)
    self.init(definitions: parser.definitions, root: root)
    try parser.checkDefaults(self)
  }

  static func describe(_ position: JSONValue.Position) -> String? {
    position.line == 0 ? nil : "line \(position.line), column \(position.column)"
  }
}

/// One pass over the JSON of a schema, depth first and left to right as names are defined.
struct SchemaParser {
  private let limits: SchemaLimits
  private(set) var definitions: [Schema.Definition] = []
  private var named: [Schema.Name: Schema.TypeID] = [:]
  private var primitives: [String: Schema.TypeID] = [:]
  private var elementCount = 0
  /// Defaults are checked at the end, when every name is known.
  private var defaults: [(value: JSONValue, type: Schema.TypeID, path: String)] = []

  init(limits: SchemaLimits) { self.limits = limits }

  private static let primitiveKinds: [String: Schema.Kind] = [
    "null": .null, "boolean": .boolean, "int": .int, "long": .long, "float": .float,
    "double": .double, "bytes": .bytes, "string": .string,
  ]

  mutating func type(
    _ value: JSONValue, namespace: String, path: String, depth: Int
  ) throws(AvroError) -> Schema.TypeID {
    guard depth <= self.limits.depth else {
      throw AvroError(
        .limitExceeded, "types nested deeper than \(self.limits.depth)", path: path)
    }
    try self.count(1, path: path)
    switch value.content {
    case .string(let name):
      return try self.reference(name, namespace: namespace, at: value, path: path)
    case .array(let branches):
      return try self.union(branches, namespace: namespace, at: value, path: path, depth: depth)
    case .object:
      return try self.object(value, namespace: namespace, path: path, depth: depth)
    default:
      throw self.mistake("a type is a name, an object or an array (union)", at: value, path: path)
    }
  }

  mutating func checkDefaults(_ schema: Schema) throws(AvroError) {
    var budget = 1_000_000
    for entry in self.defaults {
      if let reason = schema.mismatch(of: entry.value, with: entry.type, budget: &budget) {
        throw self.mistake("the default \(reason)", at: entry.value, path: entry.path)
      }
    }
  }

  // MARK: Names

  private mutating func reference(
    _ text: String, namespace: String, at value: JSONValue, path: String
  ) throws(AvroError) -> Schema.TypeID {
    if let kind = Self.primitiveKinds[text] {
      if let known = self.primitives[text] { return known }
      let id = self.add(Schema.Definition(kind: kind))
      self.primitives[text] = id
      return id
    }
    if let id = self.named[Schema.Name(text, in: namespace)]
      // Not in the specification, but accepted and written by Avro for Java. A name with a dot is
      // not in the null namespace.
      ?? self.named[Schema.Name(namespace: "", name: text)]
    {
      return id
    }
    throw self.mistake(
      "unknown type '\(quoted(text))': neither a primitive type nor defined before this place",
      at: value, path: path)
  }

  /// The name of a definition; its namespace is that of the types inside it.
  private func name(
    of object: JSONValue, namespace: String, path: String
  ) throws(AvroError) -> Schema.Name {
    guard let member = object["name"] else {
      throw self.mistake("'name' is missing", at: object, path: path)
    }
    guard let text = member.string else {
      throw self.mistake("'name' is not a string", at: member, path: path + "/name")
    }
    let explicit = try self.text("namespace", of: object, path: path)
    return try self.name(
      text, namespace: explicit ?? namespace, at: member, path: path + "/name")
  }

  private func name(
    _ text: String, namespace: String, at value: JSONValue, path: String
  ) throws(AvroError) -> Schema.Name {
    let name = Schema.Name(text, in: namespace)
    try self.checkLength(of: name.full, at: value, path: path)
    let parts =
      name.namespace.isEmpty
      ? [] : name.namespace.split(separator: ".", omittingEmptySubsequences: false)
    guard isName(name.name), parts.allSatisfy({ isName($0) }) else {
      throw self.noName(name.full, at: value, path: path)
    }
    return name
  }

  /// A field's name or an enum's symbol.
  private func checkSimpleName(
    _ text: String, at value: JSONValue, path: String
  ) throws(AvroError) {
    try self.checkLength(of: text, at: value, path: path)
    guard isName(text) else { throw self.noName(text, at: value, path: path) }
  }

  private func checkLength(
    of name: String, at value: JSONValue, path: String
  ) throws(AvroError) {
    guard name.utf8.count <= self.limits.nameByteCount else {
      throw AvroError(
        .limitExceeded,
        "a name of \(name.utf8.count) bytes; the limit is \(self.limits.nameByteCount)",
        path: path, position: Schema.describe(value.position))
    }
  }

  private func noName(_ text: String, at value: JSONValue, path: String) -> AvroError {
    self.mistake(
      "'\(quoted(text))' is not a name: letters, digits and '_', not beginning with a digit",
      at: value, path: path)
  }

  private mutating func define(
    _ name: Schema.Name, at value: JSONValue, path: String
  ) throws(AvroError) -> Schema.TypeID {
    guard self.named[name] == nil else {
      throw self.mistake("'\(name.full)' is defined twice", at: value, path: path)
    }
    guard Self.primitiveKinds[name.name] == nil else {
      throw self.mistake(
        "'\(name.name)' is a primitive type, which no namespace may define again", at: value,
        path: path)
    }
    // Added to the table before its parts are read, because they may refer to it.
    let id = self.add(Schema.Definition(kind: .null, name: name))
    self.named[name] = id
    return id
  }

  /// "Any string is accepted as an alias": some aliases exist to replace old, invalid names.
  private func aliases(
    of object: JSONValue, namespace: String, path: String
  ) throws(AvroError) -> [Schema.Name] {
    try (self.texts("aliases", of: object, path: path) ?? []).map {
      Schema.Name($0.text, in: namespace)
    }
  }

  // MARK: Complex types

  private mutating func object(
    _ object: JSONValue, namespace: String, path: String, depth: Int
  ) throws(AvroError) -> Schema.TypeID {
    guard let type = object["type"] else {
      throw self.mistake("'type' is missing", at: object, path: path)
    }
    guard let text = type.string else {
      // {"type": {…}} occurs in practice and means the inner type.
      return try self.type(type, namespace: namespace, path: path + "/type", depth: depth + 1)
    }
    switch text {
    case "record":
      return try self.record(object, namespace: namespace, path: path, depth: depth)
    case "enum":
      return try self.enumeration(object, namespace: namespace, path: path)
    case "fixed":
      return try self.fixed(object, namespace: namespace, path: path)
    case "array":
      let items = try self.part("items", of: object, namespace, path, depth)
      return self.add(Schema.Definition(kind: .array(items: items)))
    case "map":
      let values = try self.part("values", of: object, namespace, path, depth)
      return self.add(Schema.Definition(kind: .map(values: values)))
    default:
      let id = try self.reference(text, namespace: namespace, at: type, path: path + "/type")
      let kind = self.definitions[id.index].kind
      guard let logicalType = LogicalType(object, kind: kind),
        self.definitions[id.index].name == nil
      else { return id }
      return self.add(Schema.Definition(kind: kind, logicalType: logicalType))
    }
  }

  private mutating func part(
    _ key: String, of object: JSONValue, _ namespace: String, _ path: String, _ depth: Int
  ) throws(AvroError) -> Schema.TypeID {
    guard let value = object[key] else {
      throw self.mistake("'\(key)' is missing", at: object, path: path)
    }
    return try self.type(value, namespace: namespace, path: "\(path)/\(key)", depth: depth + 1)
  }

  private mutating func record(
    _ object: JSONValue, namespace: String, path: String, depth: Int
  ) throws(AvroError) -> Schema.TypeID {
    let name = try self.name(of: object, namespace: namespace, path: path)
    let id = try self.define(name, at: object, path: path)
    guard let members = object["fields"] else {
      throw self.mistake("'fields' is missing", at: object, path: path)
    }
    guard let values = members.array else {
      throw self.mistake("'fields' is not an array", at: members, path: path + "/fields")
    }
    try self.count(values.count, path: path + "/fields")
    var fields: [Schema.Field] = []
    var names: Set<String> = []
    for (index, value) in values.enumerated() {
      let place = "\(path)/fields/\(index)"
      let field = try self.field(value, namespace: name.namespace, path: place, depth: depth)
      guard names.insert(field.name).inserted else {
        throw self.mistake("field '\(field.name)' is defined twice", at: value, path: place)
      }
      fields.append(field)
    }
    self.definitions[id.index] = Schema.Definition(
      kind: .record(fields: fields), name: name,
      aliases: try self.aliases(of: object, namespace: name.namespace, path: path),
      doc: try self.text("doc", of: object, path: path))
    return id
  }

  private mutating func field(
    _ value: JSONValue, namespace: String, path: String, depth: Int
  ) throws(AvroError) -> Schema.Field {
    guard value.members != nil else {
      throw self.mistake("a field is an object", at: value, path: path)
    }
    guard let name = try self.text("name", of: value, path: path) else {
      throw self.mistake("'name' is missing", at: value, path: path)
    }
    try self.checkSimpleName(name, at: value, path: path + "/name")
    let type = try self.part("type", of: value, namespace, path, depth)
    var order = Schema.Order.ascending
    if let text = try self.text("order", of: value, path: path) {
      guard let known = Schema.Order(rawValue: text) else {
        throw self.mistake(
          "unknown order '\(quoted(text))'; known: ascending, descending, ignore", at: value,
          path: path + "/order")
      }
      order = known
    }
    let aliases = try self.texts("aliases", of: value, path: path) ?? []
    let defaultValue = value["default"]
    if let defaultValue { self.defaults.append((defaultValue, type, path + "/default")) }
    return Schema.Field(
      name: name, aliases: aliases.map(\.text), doc: try self.text("doc", of: value, path: path),
      type: type,
      defaultValue: defaultValue, order: order)
  }

  private mutating func enumeration(
    _ object: JSONValue, namespace: String, path: String
  ) throws(AvroError) -> Schema.TypeID {
    let name = try self.name(of: object, namespace: namespace, path: path)
    let id = try self.define(name, at: object, path: path)
    guard let values = try self.texts("symbols", of: object, path: path) else {
      throw self.mistake("'symbols' is missing", at: object, path: path)
    }
    try self.count(values.count, path: path + "/symbols")
    var symbols: [String] = []
    var known: Set<String> = []
    for (value, symbol) in values {
      try self.checkSimpleName(symbol, at: value, path: path + "/symbols")
      guard known.insert(symbol).inserted else {
        throw self.mistake(
          "symbol '\(symbol)' is defined twice", at: value, path: path + "/symbols")
      }
      symbols.append(symbol)
    }
    let fallback = try self.text("default", of: object, path: path)
    if let fallback, !known.contains(fallback) {
      throw self.mistake(
        "the default '\(quoted(fallback))' is not among the symbols", at: object,
        path: path + "/default")
    }
    self.definitions[id.index] = Schema.Definition(
      kind: .enumeration(symbols: symbols, defaultSymbol: fallback), name: name,
      aliases: try self.aliases(of: object, namespace: name.namespace, path: path),
      doc: try self.text("doc", of: object, path: path))
    return id
  }

  private mutating func fixed(
    _ object: JSONValue, namespace: String, path: String
  ) throws(AvroError) -> Schema.TypeID {
    let name = try self.name(of: object, namespace: namespace, path: path)
    let id = try self.define(name, at: object, path: path)
    guard let member = object["size"] else {
      throw self.mistake("'size' is missing", at: object, path: path)
    }
    // The rules of the canonical form mention quotes around sizes, so they do occur.
    guard let size = member.integer ?? member.string.flatMap({ Int64($0) }),
      (0...Int64(Int32.max)).contains(size)
    else {
      throw self.mistake(
        "'size' is not an integer between 0 and \(Int32.max)", at: member, path: path + "/size")
    }
    let kind = Schema.Kind.fixed(size: Int(size))
    self.definitions[id.index] = Schema.Definition(
      kind: kind, name: name,
      aliases: try self.aliases(of: object, namespace: name.namespace, path: path),
      doc: try self.text("doc", of: object, path: path),
      logicalType: LogicalType(object, kind: kind))
    return id
  }

  private mutating func union(
    _ values: [JSONValue], namespace: String, at value: JSONValue, path: String, depth: Int
  ) throws(AvroError) -> Schema.TypeID {
    var branches: [Schema.TypeID] = []
    var known: Set<String> = []
    for (index, branch) in values.enumerated() {
      let place = "\(path)/\(index)"
      let id = try self.type(branch, namespace: namespace, path: place, depth: depth + 1)
      let definition = self.definitions[id.index]
      if case .union = definition.kind {
        throw self.mistake("a union directly inside a union", at: branch, path: place)
      }
      let label = definition.name?.full ?? definition.kind.label
      guard known.insert(label).inserted else {
        throw self.mistake("the union has '\(label)' twice", at: branch, path: place)
      }
      branches.append(id)
    }
    return self.add(Schema.Definition(kind: .union(branches: branches)))
  }

  // MARK: Members

  private func text(
    _ key: String, of object: JSONValue, path: String
  ) throws(AvroError) -> String? {
    guard let member = object[key], member.content != .null else { return nil }
    guard let text = member.string else {
      throw self.mistake("'\(key)' is not a string", at: member, path: "\(path)/\(key)")
    }
    return text
  }

  private func texts(
    _ key: String, of object: JSONValue, path: String
  ) throws(AvroError) -> [(value: JSONValue, text: String)]? {
    guard let member = object[key] else { return nil }
    guard let values = member.array else {
      throw self.mistake("'\(key)' is not an array", at: member, path: "\(path)/\(key)")
    }
    var texts: [(value: JSONValue, text: String)] = []
    for (index, value) in values.enumerated() {
      guard let text = value.string else {
        throw self.mistake("not a string", at: value, path: "\(path)/\(key)/\(index)")
      }
      texts.append((value, text))
    }
    return texts
  }

  private mutating func add(_ definition: Schema.Definition) -> Schema.TypeID {
    self.definitions.append(definition)
    return Schema.TypeID(index: self.definitions.count - 1)
  }

  private mutating func count(_ elements: Int, path: String) throws(AvroError) {
    self.elementCount += elements
    guard self.elementCount <= self.limits.elements else {
      throw AvroError(
        .limitExceeded, "more than \(self.limits.elements) types, fields and symbols", path: path)
    }
  }

  private func mistake(_ message: String, at value: JSONValue, path: String) -> AvroError {
    AvroError(.schema, message, path: path, position: Schema.describe(value.position))
  }
}

/// Quotes text, shortened for a message, because foreign text may be megabytes long.
private func quoted(_ text: String) -> String {
  text.utf8.count <= 100 ? text : "\(text.unicodeScalars.prefix(80).map { String($0) }.joined())…"
}

extension Schema.Name {
  /// A name with a dot is a full name; one without is in the namespace.
  fileprivate init(_ text: String, in namespace: String) {
    if let dot = text.utf8.lastIndex(of: UInt8(ascii: ".")) {
      self.init(
        namespace: String(text[..<dot]), name: String(text[text.utf8.index(after: dot)...]))
    } else {
      self.init(namespace: namespace, name: text)
    }
  }
}

/// `[A-Za-z_][A-Za-z0-9_]*` (specification, "Names").
private func isName(_ text: some StringProtocol) -> Bool {
  text.utf8.first?.isDigit == false && text.utf8.allSatisfy(\.isWordCharacter)
}

extension Schema.Kind {
  /// The specification's word for this kind of type.
  var label: String {
    switch self {
    case .null: "null"
    case .boolean: "boolean"
    case .int: "int"
    case .long: "long"
    case .float: "float"
    case .double: "double"
    case .bytes: "bytes"
    case .string: "string"
    case .record: "record"
    case .enumeration: "enum"
    case .array: "array"
    case .map: "map"
    case .fixed: "fixed"
    case .union: "union"
    }
  }
}
