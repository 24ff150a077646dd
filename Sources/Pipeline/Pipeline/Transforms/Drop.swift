/// Removes the columns it names, metadata too: `{"type": "drop", "columns": ["_change_origin"]}`.
///
/// The stage sees the names that earlier stages have given. It removes a record that is not
/// flattened as a whole.
package final class Drop: ConfiguredTransform {
  package static let type = "drop"
  package static let schemaDescription =
    "Removes the named columns, including metadata columns. A field that is renamed in the org "
    + "is exported under its new name; use select to prevent that."
  private let columns: ColumnNames

  package init(_ columns: [String], missing: ColumnNames.Missing? = nil) {
    self.columns = ColumnNames(columns, missing: missing, takesPatterns: true)
  }

  package init(_ options: ColumnNames.Options) { self.columns = ColumnNames(options) }

  package var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    return input.with(columns: input.columns.filter { !self.columns.contains($0) })
  }
}
