/// Removes the columns it names, metadata too: `{"type": "drop", "columns": ["_change_origin"]}`.
///
/// The stage sees the names that earlier stages have given. It removes a record that is not
/// flattened as a whole.
public final class Drop: ConfiguredTransform {
  public static let type = "drop"
  public static let schemaDescription =
    "Removes the named columns, including metadata columns. A field that is renamed in the org "
    + "is exported under its new name; use select to prevent that."
  private let columns: ColumnNames

  public init(_ columns: [String], missing: ColumnNames.Missing? = nil) {
    self.columns = ColumnNames(columns, missing: missing, takesPatterns: true)
  }

  public init(_ options: ColumnNames.Options) { self.columns = ColumnNames(options) }

  public var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  public func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    return input.with(columns: input.columns.filter { !self.columns.contains($0) })
  }
}
