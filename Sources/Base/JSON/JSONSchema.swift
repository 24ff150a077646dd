/// A part of a JSON Schema (draft 7), which editors check pipeline files with.
///
/// Objects are closed: a member that is not declared is a mistake. Members named `//` are comments.
package struct JSONSchema: Sendable {
  private var members: [JSONMember]

  /// Leaves out members that are nil.
  private init(_ members: KeyValuePairs<String, JSONValue?>) {
    self.members = members.compactMap { name, value in value.map { JSONMember(name, $0) } }
  }

  package var value: JSONValue { JSONValue(.object(self.members)) }

  /// A definition of the document.
  package static func reference(_ definition: String) -> Self {
    Self(["$ref": .string("#/definitions/\(definition)")])
  }

  package static func text(pattern: String? = nil, minLength: Int? = nil) -> Self {
    Self([
      "type": "string", "pattern": pattern.map { .string($0) },
      "minLength": minLength.map { .integer($0) },
    ])
  }

  package static func integer(from minimum: Int, through maximum: Int? = nil) -> Self {
    Self([
      "type": "integer", "minimum": .integer(minimum), "maximum": maximum.map { .integer($0) },
    ])
  }

  package static func boolean() -> Self { Self(["type": "boolean"]) }

  /// A string, a number, true or false.
  package static func scalar() -> Self { Self(["type": ["string", "number", "boolean"]]) }

  package static func fraction() -> Self { Self(["type": "number", "minimum": 0, "maximum": 1]) }

  package static func choice<Word: RawRepresentable<String> & CaseIterable>(
    of type: Word.Type
  ) -> Self {
    Self(["type": "string", "enum": .array(type.allCases.map { .string($0.rawValue) })])
  }

  /// The one value that is accepted.
  package static func constant(_ value: JSONValue) -> Self {
    Self(["type": value.string == nil ? "integer" : "string", "const": value])
  }

  package static func list(
    of elements: Self, minCount: Int? = nil, maxCount: Int? = nil, isUnique: Bool = false
  ) -> Self {
    Self([
      "type": "array", "minItems": minCount.map { .integer($0) },
      "maxItems": maxCount.map { .integer($0) }, "uniqueItems": isUnique ? true : nil,
      "items": elements.value,
    ])
  }

  /// An object with members of any name.
  package static func map(of values: Self, minCount: Int? = nil) -> Self {
    Self([
      "type": "object", "minProperties": minCount.map { .integer($0) },
      "additionalProperties": values.value,
    ])
  }

  /// The schema of an object with these keys.
  package static func object(_ keys: [KeyDeclaration]) -> Self {
    let required = keys.filter(\.isRequired).map { JSONValue.string($0.name) }
    let declared = keys.map { key in
      JSONMember(key.name, key.schema.described(key.description, key.fallback, key.example).value)
    }
    let comment = JSONMember("//", JSONValue(.object([])))
    return Self([
      "type": "object", "additionalProperties": false,
      "required": required.isEmpty ? nil : .array(required),
      "properties": JSONValue(.object([comment] + declared)),
    ])
  }

  package static func oneOf(_ alternatives: [Self]) -> Self {
    Self(["oneOf": .array(alternatives.map(\.value))])
  }

  package func described(
    _ description: String, _ fallback: JSONValue? = nil, _ example: JSONValue? = nil
  ) -> Self {
    var schema = Self(["description": .string(description)])
    let rest = Self(["default": fallback, "examples": example.map { .array([$0]) }])
    schema.members += self.members + rest.members
    return schema
  }
}

extension JSONSchema {
  /// Definitions that the schemas of kinds of values refer to.
  package static var valueDefinitions: [(name: String, schema: JSONSchema)] {
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
