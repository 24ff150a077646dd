public import Pipeline
public import SalesforceREST

/// Fields of an object that a copy cannot have right, or cannot have at all.
public struct BlindFields: Sendable, Equatable {
  /// Formulas and roll-ups: they change without a change of the record.
  public var calculated: [String] = []
  /// In the schema of the events, but not in what the user may see; `Parent.Child` for parts of compounds.
  public var hidden: [String] = []
  /// In the org, but not in the schema of the events: nothing would keep them up to date.
  public var notCarried: [String] = []

  public init() {}

  /// What every record has, and the copy keeps in its own way or for none.
  private static let ownFields: Set<String> = ["Id", "IsDeleted", "SystemModstamp"]

  /// - Parameter layout: of the object's events, as decoded: before any stage.
  public init(_ layout: RecordLayout, _ object: ObjectDescription) {
    let plan = SnapshotPlan(layout, object)
    self.hidden = plan.unread.filter { $0.reason == .notDescribed }.map(\.name)
    let carried = Set(plan.fields).union(layout.columns.map(\.name))
    for field in object.fields where !Self.ownFields.contains(field.name) {
      if field.isCalculated {
        self.calculated.append(field.name)
      } else if !carried.contains(field.name) {
        self.notCarried.append(field.name)
      }
    }
  }

  public var isEmpty: Bool {
    self.calculated.isEmpty && self.hidden.isEmpty && self.notCarried.isEmpty
  }
}
