package import JSON

/// The classifications that a stage selects: `{"compliance": ["PII"], "sensitivity":
/// ["Restricted"]}`.
///
/// A field is selected if it has any of the values. Case and spaces are ignored, so the label
/// 'Mission Critical' matches the value `MissionCritical`.
package struct ClassificationSelector: KeyedObject, Sendable, Equatable {
  /// Values of the org's two lists, as written in the pipeline file.
  package private(set) var compliance: [String] = []
  package private(set) var sensitivity: [String] = []

  /// The values that every org has unless its admins have removed them.
  private static let usualCompliance = ["PII", "HIPAA", "PCI", "GDPR", "CCPA", "COPPA"]
  private static let usualSensitivity = [
    "Public", "Internal", "Confidential", "Restricted", "MissionCritical",
  ]

  init(compliance: [String], sensitivity: [String]) {
    self.compliance = compliance
    self.sensitivity = sensitivity
  }

  package init() {}

  package static var keys: [Key<Self>] {
    [
      .key(
        "compliance", \.compliance, .classes,
        "Compliance categorizations, such as PII or GDPR; any of them.", example: ["PII", "GDPR"]),
      .key(
        "sensitivity", \.sensitivity, .classes,
        "Data sensitivity levels, such as Confidential or Restricted; any of them.",
        example: ["Restricted"]),
    ]
  }

  fileprivate static func key(_ value: String) -> String {
    value.lowercased().filter { !$0.isWhitespace }
  }

  /// The selected part of a field's classification, as text: `compliance PII`. Empty for a field
  /// that is not selected.
  func terms(of field: FieldClassification) -> [String] {
    func common(_ kind: String, _ wanted: [String], _ found: [String]) -> [String] {
      let keys = Set(wanted.map(Self.key))
      return found.filter { keys.contains(Self.key($0)) }.map { "\(kind) \($0)" }
    }
    return common("compliance", self.compliance, field.compliance)
      + common("sensitivity", self.sensitivity, field.sensitivity)
  }

  package func selects(_ field: FieldClassification) -> Bool { !self.terms(of: field).isEmpty }

  /// Values that are neither usual nor present on any field, and so most likely misspelled.
  func unknownValues(among known: ClassificationValues) -> [String] {
    func unknown(
      _ kind: String, _ wanted: [String], _ usual: [String], _ found: Set<String>
    ) -> [String] {
      let keys = Set((usual + found).map(Self.key))
      return wanted.filter { !keys.contains(Self.key($0)) }.map { value in
        let nearest = NamedColumns.nearest(to: value, in: found.union(usual))
        return "\(kind) '\(value)'"
          + (nearest.isEmpty ? "" : " (nearest: \(nearest.joined(separator: ", ")))")
      }
    }
    return unknown("compliance", self.compliance, Self.usualCompliance, known.compliance)
      + unknown("sensitivity", self.sensitivity, Self.usualSensitivity, known.sensitivity)
  }

  /// For messages: `compliance PII, GDPR; sensitivity Restricted`.
  package var words: String {
    [("compliance", self.compliance), ("sensitivity", self.sensitivity)]
      .filter { !$0.1.isEmpty }
      .map { "\($0.0) \($0.1.joined(separator: ", "))" }.joined(separator: "; ")
  }
}

/// Values that the fields of an org have.
struct ClassificationValues {
  var compliance: Set<String> = []
  var sensitivity: Set<String> = []

  mutating func add(_ object: ObjectClassification) {
    for name in object.names {
      self.compliance.formUnion(object[name]?.compliance ?? [])
      self.sensitivity.formUnion(object[name]?.sensitivity ?? [])
    }
  }
}

extension ClassificationSelector {
  static var schemaDefinition: (name: String, schema: JSONSchema) {
    (
      "classified",
      .object(Self.declarations).described(
        "Classifications of fields in the org; a field with any of them is selected.")
    )
  }
}

extension Kind<ClassificationSelector> {
  static var classified: Self {
    Self(.reference("classified"), objects: [ClassificationSelector.declarations]) {
      reader, name, _ in
      guard let selector = reader.object(name)?.read(ClassificationSelector.keys) else {
        return nil
      }
      guard !selector.compliance.isEmpty || !selector.sensitivity.isEmpty else {
        reader.report(name, "needs a value of 'compliance' or 'sensitivity'")
        return nil
      }
      return selector
    }
  }
}

extension Kind<[String]> {
  fileprivate static var classes: Self {
    Self.strings(.list(of: .text(minLength: 1), minCount: 1, isUnique: true)).checked {
      $0.contains { ClassificationSelector.key($0).isEmpty } ? "has an empty value" : nil
    }
  }
}
