/// How the admins of the org have classified fields (Setup, Data Classification).
package struct DataClassification {
  /// `Contact.Email=PII;GDPR/Confidential`, as `--classify` takes it.
  package struct Entry: Equatable {
    /// `Object.Field`
    var field: String
    /// Values of `ComplianceGroup`.
    var groups: [String]
    /// `SecurityClassification`
    var level: String?

    package init(field: String, groups: [String], level: String?) throws {
      let parts = field.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw SimulatorError(
          .configuration, "'\(field)': expected Object.Field, such as Contact.Email")
      }
      (self.field, self.groups, self.level) = (field, groups, level)
    }

    package init(parsing text: String) throws {
      let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2 else {
        throw SimulatorError(
          .configuration,
          "'\(text)': expected Object.Field=GROUP;GROUP/LEVEL, such as "
            + "Contact.Email=PII;GDPR/Confidential")
      }
      let values = sides[1].split(separator: "/", maxSplits: 1)
      try self.init(
        field: String(sides[0]),
        groups: sides[1].hasPrefix("/") ? [] : values.first.map(Self.groups) ?? [],
        level: sides[1].hasPrefix("/")
          ? values.first.map { String($0) } : values.count == 2 ? String(values[1]) : nil)
    }

    package static func groups(_ text: some StringProtocol) -> [String] {
      text.split { $0 == ";" || $0 == "," }.map { String($0) }
    }
  }

  private var entries: [String: Entry] = [:]

  package init() {}

  /// Replaces the field's classification.
  package mutating func set(_ entry: Entry) { self.entries[entry.field] = entry }

  subscript(field: String) -> Entry? { self.entries[field] }
}

extension Org {
  private static let definitionColumns = [
    "QualifiedApiName", "ComplianceGroup", "SecurityClassification",
  ]

  /// The answer to `SELECT QualifiedApiName, … FROM FieldDefinition WHERE
  /// EntityDefinition.QualifiedApiName = 'Contact'`, which needs View Setup and Configuration: the fields
  /// of the newest schema, without the parts of compound fields.
  package func fieldDefinitions(_ text: String) throws(APIRefusal) -> String {
    guard self.userPermissions.contains("ViewSetup") else {
      throw .unknownObject("FieldDefinition")
    }
    let words = text.split { " ,='".contains($0) }.map(String.init)
    guard let from = words.firstIndex(of: "FROM"), words.first == "SELECT",
      words.count == from + 5, words[from + 1] == "FieldDefinition", words[from + 2] == "WHERE",
      words[from + 3] == "EntityDefinition.QualifiedApiName", text.hasSuffix("'")
    else { throw .malformed("unexpected token: only fields of one object can be queried") }
    for column in words[1..<from] where !Self.definitionColumns.contains(column) {
      throw .unknownField(column, of: "FieldDefinition")
    }
    let rows = self.fieldNames(of: words[from + 4]).map { name in
      let field = "\(words[from + 4]).\(name)"
      let entry = self.classification[field]
      let values = [
        "QualifiedApiName": name,
        "ComplianceGroup": entry.flatMap {
          $0.groups.isEmpty ? nil : $0.groups.joined(separator: ";")
        },
        "SecurityClassification": entry?.level,
      ]
      let members = words[1..<from].map { column in
        "\"\(column)\":" + ((values[column] ?? nil).map { JSONText.string($0) } ?? "null")
      }
      return "{\"attributes\":{\"type\":\"FieldDefinition\",\"url\":\"/services/data/v"
        + "\(DataAPI.version)/tooling/sobjects/FieldDefinition/\(field)\"},"
        + members.joined(separator: ",") + "}"
    }
    return "{\"size\":\(rows.count),\"totalSize\":\(rows.count),\"done\":true,"
      + "\"queryLocator\":null,\"entityTypeName\":\"FieldDefinition\",\"records\":["
      + rows.joined(separator: ",") + "]}"
  }

  /// Empty for an object that the org does not have.
  private func fieldNames(of entity: String) -> [String] {
    guard let model = self.publisher.generator.models.first(where: { $0.entity == entity }),
      let schema = self.publisher.currentSchema(of: model)
    else { return [] }
    let names = ["Id", "IsDeleted", "SystemModstamp"] + schema.fields.map(\.name)
    return names.filter { !self.configuration.hiddenFields.contains("\(entity).\($0)") }
  }

  package var userPermissions: Set<String> {
    Set(self.configuration.userPermissions).union(["ApiEnabled"])
  }
}
