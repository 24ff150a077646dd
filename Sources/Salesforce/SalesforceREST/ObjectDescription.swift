internal import HTTPClient
package import JSON

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
    /// In characters; nil for types without one.
    package var length: Int?
    /// API names of the objects that the field can refer to.
    package var references: [String] = []
    /// The text of a formula.
    package var formula: String?
    /// A formula takes empty numbers for zero.
    package var treatsBlankAsZero = false
    /// The decimal places of a number.
    package var scale: Int?
    package var helpText: String?
    /// The values of a picklist, in their order.
    package var choices: [Choice] = []

    package struct Choice: Sendable, Equatable {
      package var value: String
      package var label: String
      package var isActive: Bool
      package var isDefault: Bool
    }

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

  /// Its records are changes of fields of other records, such as `OpportunityFieldHistory`. They
  /// never change themselves.
  package var isFieldHistory: Bool {
    self.field("SystemModstamp") == nil
      && ["Field", "OldValue", "NewValue", "CreatedDate"].allSatisfy { self.field($0) != nil }
  }

  /// The field that says when a record was last changed.
  package var stampField: String { self.isFieldHistory ? "CreatedDate" : "SystemModstamp" }
}

extension ObjectDescription {
  private static let maxFields = 5000
  /// Longer than any formula.
  private static let maxTextLength = 20_000
  private static let maxLabelLength = 255

  /// A description that `json` has made; nil for anything else.
  package init?(stored json: JSONValue) {
    guard let description = try? Self(json, call: "stored") else { return nil }
    self = description
  }

  /// The description in the form of the org's response.
  package var json: JSONValue {
    func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? nil }
    let fields = self.fields.map { field -> JSONValue in
      [
        "name": .string(field.name), "label": .string(field.label), "type": .string(field.type),
        "compoundFieldName": text(field.compoundFieldName),
        "calculated": .boolean(field.isCalculated), "filterable": .boolean(field.isFilterable),
        "length": .integer(field.length ?? 0),
        "referenceTo": .array(field.references.map { .string($0) }),
        "calculatedFormula": text(field.formula),
        "formulaTreatNullNumberAsZero": .boolean(field.treatsBlankAsZero),
        "scale": field.scale.map { JSONValue.integer(Int64($0)) } ?? nil,
        "inlineHelpText": text(field.helpText),
        "picklistValues": .array(
          field.choices.map { choice in
            [
              "value": .string(choice.value), "label": .string(choice.label),
              "active": .boolean(choice.isActive), "defaultValue": .boolean(choice.isDefault),
            ]
          }),
      ]
    }
    return [
      "name": .string(self.name), "keyPrefix": text(self.keyPrefix),
      "queryable": .boolean(self.isQueryable), "retrieveable": .boolean(self.isRetrievable),
      "fields": .array(fields),
    ]
  }

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
          name: name, label: Self.label(field["label"]), type: type,
          compoundFieldName: field["compoundFieldName"]?.string,
          isCalculated: field["calculated"]?.boolean ?? false,
          isFilterable: field["filterable"]?.boolean ?? false,
          length: field["length"]?.integer.flatMap { $0 > 0 ? Int(exactly: $0) : nil },
          references: (field["referenceTo"]?.array ?? []).compactMap(\.string).filter(SOQL.isName),
          formula: Self.text(field["calculatedFormula"]),
          treatsBlankAsZero: field["formulaTreatNullNumberAsZero"]?.boolean ?? false,
          scale: field["scale"]?.integer.flatMap { (0...18).contains($0) ? Int($0) : nil },
          helpText: Self.text(field["inlineHelpText"]),
          choices: (field["picklistValues"]?.array ?? []).compactMap(Self.choice)))
    }
  }

  /// A text for people, which may have several lines; nil if it is missing or empty.
  private static func text(_ json: JSONValue?) -> String? {
    guard let text = json?.string?.replacing("\0", with: ""), !text.isEmpty else { return nil }
    return Self.cut(text, to: Self.maxTextLength)
  }

  private static func label(_ json: JSONValue?) -> String {
    Self.cut(json?.string ?? "", to: Self.maxLabelLength).shown(upTo: Self.maxLabelLength)
  }

  /// Counts scalars, because a `Character` may have any number of combining marks.
  private static func cut(_ text: String, to count: Int) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(count)))
  }

  private static func choice(_ json: JSONValue) -> Field.Choice? {
    guard let value = Self.text(json["value"]) else { return nil }
    return Field.Choice(
      value: value, label: Self.text(json["label"]) ?? value,
      isActive: json["active"]?.boolean ?? false,
      isDefault: json["defaultValue"]?.boolean ?? false)
  }
}
