/// A field's sensitivity in the org (Setup, Data Classification); empty for a field that is not
/// classified.
package struct FieldClassification: Sendable, Equatable {
  /// Compliance categorization, `ComplianceGroup`: `PII`, `GDPR`.
  package var compliance: [String]
  /// Data sensitivity level, `SecurityClassification`. More than one if two objects share a field.
  package var sensitivity: [String]

  package init(compliance: [String] = [], sensitivity: [String] = []) {
    self.compliance = compliance
    self.sensitivity = sensitivity
  }

  mutating func formUnion(_ other: FieldClassification) {
    self.compliance += other.compliance.filter { !self.compliance.contains($0) }
    self.sensitivity += other.sensitivity.filter { !self.sensitivity.contains($0) }
  }
}

/// The classifications of one object's fields, as the org describes them.
package struct ObjectClassification: Sendable, Equatable {
  /// Keyed by lowercase name, because an object's field names are unique regardless of case.
  private var fields: [String: FieldClassification] = [:]

  package init() {}

  package var names: some Sequence<String> { self.fields.keys }

  package subscript(field: String) -> FieldClassification? { self.fields[field.lowercased()] }

  package mutating func add(_ field: String, _ classification: FieldClassification) {
    self.fields[field.lowercased(), default: FieldClassification()].formUnion(classification)
  }

  /// Adds a layout's missing fields as not classified.
  package mutating func describe(_ layout: RecordLayout) {
    for column in layout.columns where !column.isMetadata {
      if let field = column.path.first { self.add(field, FieldClassification()) }
    }
  }

  /// Merges a later answer. Fields that it lacks because they were deleted or renamed keep their
  /// classification, because older events have them.
  mutating func renew(_ later: ObjectClassification) {
    self.fields.merge(later.fields) { _, new in new }
  }

  /// The classification of a column: that of its field, combined with that of the compound field
  /// that contains it, if any. Nil if the org describes neither.
  func classification(of column: Column) -> FieldClassification? {
    var found = self.classification(ofPath: column.path)
    if case .record(_, _, let children) = column.content {
      for child in children {
        guard let inner = self.classification(of: child) else { continue }
        found = found ?? FieldClassification()
        found?.formUnion(inner)
      }
    }
    return found
  }

  private func classification(ofPath path: [String]) -> FieldClassification? {
    guard let field = path.first else { return nil }
    let names = [field] + path.dropFirst().map { FlattenNaming.sobject.name(of: $0, in: field) }
    let known = names.compactMap { self[$0] }
    guard var found = known.first else { return nil }
    for other in known.dropFirst() { found.formUnion(other) }
    return found
  }
}
