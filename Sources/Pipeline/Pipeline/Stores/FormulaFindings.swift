/// The findings of comparing formulas that are computed from a copy with the org. Names and IDs, never
/// values.
package struct FormulaFindings: Sendable, Equatable {
  /// API names of the formulas.
  package var compared: [String]
  /// Records whose formulas were compared.
  package var recordCount: Int
  /// Formulas with other values.
  package var fields: [CopyFindings.Field]
  package var leftOut: [CopyFindings.LeftOut]

  package init(
    compared: [String], recordCount: Int, fields: [CopyFindings.Field],
    leftOut: [CopyFindings.LeftOut]
  ) {
    self.compared = compared
    self.recordCount = recordCount
    self.fields = fields
    self.leftOut = leftOut
  }
}

/// A record with the org's values of formulas.
package struct FormulaRecord: Sendable, Equatable {
  package var id: String
  /// `SystemModstamp` as REST writes it.
  package var stamp: String
  /// By API name, as REST writes them; empty for null.
  package var values: [String: String]

  package init(id: String, stamp: String, values: [String: String]) {
    self.id = id
    self.stamp = stamp
    self.values = values
  }
}
