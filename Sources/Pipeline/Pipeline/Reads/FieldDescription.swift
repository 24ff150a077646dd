/// What the org says about a field, for people who read the copy (RESTAndBulk.md#describe).
package struct FieldDescription: Sendable, Equatable {
  /// A value of a picklist, in the org's order.
  package struct Choice: Sendable, Equatable {
    package var value: String
    package var label: String
    /// Users can still choose it.
    package var isActive: Bool
    package var isDefault: Bool

    package init(value: String, label: String, isActive: Bool, isDefault: Bool) {
      self.value = value
      self.label = label
      self.isActive = isActive
      self.isDefault = isDefault
    }
  }

  /// API name.
  package var name: String
  package var label: String
  /// As describe names it: `string`, `picklist`, `currency`.
  package var type: String
  /// In characters; nil for types without one.
  package var length: Int?
  /// API names of the objects that the field can refer to.
  package var references: [String]
  /// The text of a formula; nil for a field that is none, or that the user may not see.
  package var formula: String?
  /// A formula takes empty numbers for zero.
  package var treatsBlankAsZero: Bool
  /// The decimal places of a number.
  package var scale: Int?
  package var helpText: String?
  package var choices: [Choice]

  package init(
    name: String, label: String, type: String, length: Int? = nil, references: [String] = [],
    formula: String? = nil, treatsBlankAsZero: Bool = false, scale: Int? = nil,
    helpText: String? = nil, choices: [Choice] = []
  ) {
    self.name = name
    self.label = label
    self.type = type
    self.length = length
    self.references = references
    self.formula = formula
    self.treatsBlankAsZero = treatsBlankAsZero
    self.scale = scale
    self.helpText = helpText
    self.choices = choices
  }
}
