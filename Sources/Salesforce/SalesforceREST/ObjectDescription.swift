internal import JSON

/// The description of an object (RESTAndBulk.md#describe).
package struct ObjectDescription: Sendable, Equatable {
  package struct Field: Sendable, Equatable {
    package var name: String
    /// As Setup shows it; empty if the response has none that can be shown.
    package var label = ""
    /// `string`, `double`, `datetime`, `address` and so on; unknown types are kept under their
    /// names.
    package var type: String
    /// The compound field of which this is a component. Not reliable: `Name` of Account names
    /// itself.
    package var compoundFieldName: String?
    /// A formula or roll-up, whose value changes without a change of the record.
    package var isCalculated: Bool
    package var isFilterable: Bool

    /// Whether this is a compound field. Bulk, and queries whose values are compared, use its
    /// components instead.
    package var isCompound: Bool {
      ["address", "location", "base64", "complexvalue", "json", "JunctionIdList"].contains(
        self.type)
    }
  }

  package var name: String
  /// The first three characters of its records' IDs; nil for objects without a prefix.
  package var keyPrefix: String?
  package var isQueryable: Bool
  /// Whether records can be read by ID.
  package var isRetrievable: Bool
  /// In the order of the response.
  package var fields: [Field]

  package func field(_ name: String) -> Field? { self.fields.first { $0.name == name } }
}

extension ObjectDescription {
  private static let maxFields = 5000

  init(_ json: JSONValue, call: String) throws(RESTError) {
    func wrong(_ what: String) -> RESTError {
      RESTError(.stop, "\(call): the response \(what)")
    }
    guard let name = json["name"]?.string, SOQL.isName(name) else {
      throw wrong("has no usable name")
    }
    guard let fields = json["fields"]?.array, !fields.isEmpty else { throw wrong("has no fields") }
    guard fields.count <= Self.maxFields else {
      throw wrong("has more than \(Self.maxFields) fields")
    }
    self.name = name
    self.keyPrefix = json["keyPrefix"]?.string.flatMap { $0.utf8.count == 3 ? $0 : nil }
    self.isQueryable = json["queryable"]?.boolean ?? false
    self.isRetrievable = json["retrieveable"]?.boolean ?? false
    var names: Set<String> = []
    self.fields = []
    for field in fields {
      guard let name = field["name"]?.string, SOQL.isName(name), let type = field["type"]?.string
      else { throw wrong("has a field without a usable name or type") }
      guard names.insert(name).inserted else { throw wrong("has field \(name) twice") }
      self.fields.append(
        Field(
          name: name, label: field["label"]?.string?.shown(upTo: 255) ?? "", type: type,
          compoundFieldName: field["compoundFieldName"]?.string,
          isCalculated: field["calculated"]?.boolean ?? false,
          isFilterable: field["filterable"]?.boolean ?? false))
    }
  }
}
