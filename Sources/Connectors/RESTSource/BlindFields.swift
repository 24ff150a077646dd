package import Pipeline
package import SalesforceREST

extension ObjectDescription {
  /// Names of formulas and roll-ups.
  var calculatedFields: Set<String> { Set(self.fields.lazy.filter(\.isCalculated).map(\.name)) }
}

/// Fields of an object that are wrong or missing in a copy.
package struct BlindFields: Sendable, Equatable {
  /// Formulas and roll-ups, which change without a change of the record.
  package var calculated: [String] = []
  /// Fields in the event schema that the user may not see; `Parent.Child` for parts of compounds.
  package var hidden: [String] = []
  /// Fields in the event schema that REST and Bulk do not have, whoever asks.
  package var unreadable: [String] = []
  /// Fields that are missing from the event schema, so that nothing would keep them up to date.
  package var notCarried: [String] = []

  package init() {}

  /// Fields of every record that the copy stores in another form or not at all.
  private static let ownFields: Set<String> = ["Id", "IsDeleted", "SystemModstamp"]

  /// - Parameter layout: the layout of the object's events as decoded, before any stage.
  package init(_ layout: RecordLayout, _ object: ObjectDescription) {
    let plan = SnapshotPlan(layout, object)
    let access = FieldAccess.known(layout.fieldNames, in: object)
    for field in plan.unread {
      if field.reason == .notDescribed, access[field.name] != .unreadable {
        self.hidden.append(field.name)
      } else {
        self.unreadable.append(field.name)
      }
    }
    let carried = Set(plan.fields).union(layout.columns.map(\.name))
    for field in object.fields where !Self.ownFields.contains(field.name) {
      if field.isCalculated {
        self.calculated.append(field.name)
      } else if !carried.contains(field.name) {
        self.notCarried.append(field.name)
      }
    }
  }

  package var isEmpty: Bool {
    self.calculated.isEmpty && self.hidden.isEmpty && self.unreadable.isEmpty
      && self.notCarried.isEmpty
  }
}
