/// Whether and how a field of an object can be read from the org.
package enum FieldAccess: String, Sendable {
  case readable
  /// A formula or roll-up: its value changes without a change of the record.
  case calculated
  /// The user may not see it.
  case hidden
  /// REST and Bulk do not have it, whoever asks.
  case unreadable
}

/// A column of a store that rows may lack values in, because it is newer than their records' reads.
package struct FillingColumn: Sendable, Equatable {
  /// Dotted: `BillingAddress.City`.
  package var field: String
  /// The values come from a field of the object, not from a stage.
  package var isOfObject: Bool

  package init(field: String, isOfObject: Bool) {
    self.field = field
    self.isOfObject = isOfObject
  }
}
