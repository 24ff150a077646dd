internal import HTTPClient
internal import JSON

/// A field's data classification, from FieldDefinition in the Tooling API.
package struct FieldDefinition: Sendable, Equatable {
  /// The field's API name, without the object's name.
  package var name: String
  /// The values of `ComplianceGroup`; empty if there are none.
  package var compliance: [String]
  /// `SecurityClassification`
  package var sensitivity: String?

  package init(name: String, compliance: [String], sensitivity: String?) {
    (self.name, self.compliance, self.sensitivity) = (name, compliance, sensitivity)
  }
}

extension RESTClient {
  private static let maxDefinitions = 10_000
  private static let maxValues = 200

  /// The fields of an object with their classifications, without parts of compound fields.
  ///
  /// Needs View Setup and Configuration: without it, FieldDefinition does not exist for the user.
  ///
  /// - Throws: `RESTError`, also for a response without fields, or that does not say for each field
  ///   whether it is classified.
  package func fieldDefinitions(of object: String) async throws -> [FieldDefinition] {
    precondition(SOQL.isName(object), "an object's name comes from a schema")
    let name = "FieldDefinition of \(object)"
    var page = try await self.toolingQuery(
      SOQL.select(
        ["QualifiedApiName", "ComplianceGroup", "SecurityClassification"],
        from: "FieldDefinition", where: "EntityDefinition.QualifiedApiName = '\(object)'"))
    var fields: [FieldDefinition] = []
    var names: Set<String> = []
    while true {
      for record in page.records {
        let field = try Self.definition(record, name)
        guard names.insert(field.name.lowercased()).inserted else {
          throw RESTError(.stop, "\(name): the response has field \(field.name) twice")
        }
        fields.append(field)
      }
      guard fields.count <= Self.maxDefinitions else {
        throw RESTError(.stop, "\(name): the response has more than \(Self.maxDefinitions) fields")
      }
      guard let next = page.next else { break }
      guard !page.records.isEmpty else {
        throw RESTError(.retry, "\(name): the response has a page without fields")
      }
      page = try await self.nextPage(next)
    }
    guard fields.count == page.totalSize else {
      throw RESTError(
        .retry, "\(name): the response has \(fields.count) of \(page.totalSize) fields")
    }
    guard !fields.isEmpty else {
      throw RESTError(.stop, "\(name): the org describes no field of this object to the user")
    }
    return fields
  }

  static func definition(
    _ record: QueryRecord, _ name: String
  ) throws(RESTError) -> FieldDefinition {
    guard let field = record["QualifiedApiName"], SOQL.isName(field) else {
      throw RESTError(.stop, "\(name): the response has a field without a usable name")
    }
    // A response that lacks them would look like an unclassified field.
    guard let groups = Self.text("ComplianceGroup", of: record),
      let level = Self.text("SecurityClassification", of: record)
    else {
      throw RESTError(
        .stop, "\(name): the response does not say whether \(field) is classified")
    }
    let compliance = groups.split(separator: ";").map { String($0) }
    guard compliance.count <= Self.maxValues, (compliance + [level]).allSatisfy(Self.isValue) else {
      throw RESTError(.stop, "\(name): the response has an unusable classification of \(field)")
    }
    return FieldDefinition(
      name: field, compliance: compliance, sensitivity: level.isEmpty ? nil : level)
  }

  /// A text, empty for null; nil for anything else, such as `false`, which says nothing about the
  /// field.
  private static func text(_ name: String, of record: QueryRecord) -> String? {
    switch record.json[name]?.content {
    case .string(let text): text
    case .null: ""
    default: nil
    }
  }

  /// Whether this can be a picklist value: at most 255 characters, all printable, because values
  /// are shown.
  private static func isValue(_ text: String) -> Bool {
    text.utf8.count <= 1024 && text.shown(upTo: 255) == text
  }
}
