/// Keeps the fields it names, in schema order: `{"type": "select", "columns": ["Name", "Amount"]}`.
///
/// Metadata columns stay, because rows without their record ID and position are of little use;
/// `drop` removes them. The stage sees the names that earlier stages have given. It keeps or
/// removes a record that is not flattened as a whole.
package final class Select: ConfiguredTransform {
  package static let type = "select"
  package static let schemaDescription =
    "Keeps the columns it names, and the metadata columns. A field that is new in the org stays "
    + "out."
  private let columns: ColumnNames

  package init(_ columns: [String], missing: ColumnNames.Missing? = nil) {
    self.columns = ColumnNames(columns, missing: missing, takesPatterns: true)
  }

  package init(_ options: ColumnNames.Options) { self.columns = ColumnNames(options) }

  package var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    return input.with(
      columns: input.columns.filter { $0.isMetadata || self.columns.contains($0) })
  }
}
