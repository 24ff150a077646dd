/// A part of a JSON Schema (draft 7), which editors check pipeline files with.
///
/// Objects are closed: a member that is not declared is a mistake. Members named `//` are comments.
public struct JSONSchema: Sendable {
  private var members: [JSONMember]

  private init(_ members: [JSONMember]) { self.members = members }

  public var value: JSONValue { JSONValue(.object(self.members)) }

  /// A definition of the document.
  public static func reference(_ definition: String) -> Self {
    Self([JSONMember("$ref", .string("#/definitions/\(definition)"))])
  }

  public static func text(pattern: String? = nil, minLength: Int? = nil) -> Self {
    var members = [JSONMember("type", "string")]
    if let pattern { members.append(JSONMember("pattern", .string(pattern))) }
    if let minLength { members.append(JSONMember("minLength", .integer(minLength))) }
    return Self(members)
  }

  public static func integer(from minimum: Int, through maximum: Int? = nil) -> Self {
    var members = [JSONMember("type", "integer"), JSONMember("minimum", .integer(minimum))]
    if let maximum { members.append(JSONMember("maximum", .integer(maximum))) }
    return Self(members)
  }

  public static func boolean() -> Self { Self([JSONMember("type", "boolean")]) }

  /// A string, a number, true or false.
  public static func scalar() -> Self {
    Self([JSONMember("type", ["string", "number", "boolean"])])
  }

  public static func fraction() -> Self {
    Self([JSONMember("type", "number"), JSONMember("minimum", 0), JSONMember("maximum", 1)])
  }

  public static func choice(_ words: [String]) -> Self {
    Self([
      JSONMember("type", "string"), JSONMember("enum", .array(words.map { .string($0) })),
    ])
  }

  public static func choice<Word: RawRepresentable<String> & CaseIterable>(
    of type: Word.Type
  ) -> Self {
    self.choice(type.allCases.map(\.rawValue))
  }

  /// The one value that is accepted.
  public static func constant(_ value: JSONValue) -> Self {
    let type: JSONValue = value.string == nil ? "integer" : "string"
    return Self([JSONMember("type", type), JSONMember("const", value)])
  }

  public static func list(
    of elements: Self, minCount: Int? = nil, maxCount: Int? = nil, isUnique: Bool = false
  ) -> Self {
    var members = [JSONMember("type", "array")]
    if let minCount { members.append(JSONMember("minItems", .integer(minCount))) }
    if let maxCount { members.append(JSONMember("maxItems", .integer(maxCount))) }
    if isUnique { members.append(JSONMember("uniqueItems", true)) }
    members.append(JSONMember("items", elements.value))
    return Self(members)
  }

  /// An object with members of any name.
  public static func map(of values: Self, minCount: Int? = nil) -> Self {
    var members = [JSONMember("type", "object")]
    if let minCount { members.append(JSONMember("minProperties", .integer(minCount))) }
    members.append(JSONMember("additionalProperties", values.value))
    return Self(members)
  }

  /// The schema of an object with these keys.
  public static func object(_ keys: [KeyDeclaration]) -> Self {
    var members: [JSONMember] = [
      JSONMember("type", "object"), JSONMember("additionalProperties", false),
    ]
    let required = keys.filter(\.isRequired).map { JSONValue.string($0.name) }
    if !required.isEmpty { members.append(JSONMember("required", .array(required))) }
    let comment = JSONMember("//", JSONValue(.object([])))
    let declared = keys.map { key in
      var schema = key.schema.described(key.description)
      if let fallback = key.fallback { schema.members.append(JSONMember("default", fallback)) }
      if let example = key.example {
        schema.members.append(JSONMember("examples", .array([example])))
      }
      return JSONMember(key.name, schema.value)
    }
    members.append(JSONMember("properties", JSONValue(.object([comment] + declared))))
    return Self(members)
  }

  public static func oneOf(_ alternatives: [Self]) -> Self {
    Self([JSONMember("oneOf", .array(alternatives.map(\.value)))])
  }

  public func described(_ description: String) -> Self {
    var schema = self
    schema.members.insert(JSONMember("description", .string(description)), at: 0)
    return schema
  }
}

extension JSONSchema {
  /// What the schemas of kinds of values refer to.
  public static var valueDefinitions: [(name: String, schema: JSONSchema)] {
    [
      ("variable", .text(pattern: #"\$\{"#).described("A variable that provides the value.")),
      (
        "byteCount",
        .text(pattern: #"^([0-9]+(B|kB|MB|GB|KiB|MiB|GiB)?|.*\$\{.*)$"#)
          .described("A number of bytes, for example 16MiB.")
      ),
      (
        "duration",
        .text(
          pattern: #"^(([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?|0|.*\$\{.*)$"#,
          minLength: 1
        ).described("A time, for example 500ms, 90s or 1h30m.")
      ),
    ]
  }
}
