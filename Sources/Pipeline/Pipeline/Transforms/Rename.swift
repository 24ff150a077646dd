public import JSON

/// Gives columns other names: `{"type": "rename", "columns": {"StageName": "stage"}}`.
///
/// All columns are renamed at once, so two of them can swap names. Metadata columns can be renamed
/// like others.
public final class Rename: ConfiguredTransform {
  public static let type = "rename"
  public static let schemaDescription =
    "Gives columns other names, all at once."
  public static var schemaMembers: [JSONSchema.Member] {
    [
      .required(
        "columns", .map(of: .text(minLength: 1), minCount: 1),
        "Maps the current name of each column to the new one."
      ),
      ColumnNames.missingSchemaMember,
    ]
  }
  private let newNames: [String: String]
  private let columns: ColumnNames

  /// - Parameter newNames: new names by current name.
  public init(_ newNames: [String: String], missing: ColumnNames.Missing? = nil) {
    self.newNames = newNames
    self.columns = ColumnNames(newNames.keys, missing: missing)
  }

  public init?(reading reader: JSONReader) {
    let missing: ColumnNames.Missing? = reader.choice("missing", called: "choice")
    guard let members = reader.object("columns", required: true) else { return nil }
    let named = (members.value.members ?? []).filter { $0.name != "//" }
    if named.isEmpty { reader.report("columns", "does not name a column") }
    var newNames: [String: String] = [:]
    for member in named {
      guard let newName = members.string(member.name) else { continue }
      if newName.isEmpty {
        members.report(member.name, "a column needs a name; to remove it, use the stage 'drop'")
      } else if let other = newNames.first(where: { $0.value == newName })?.key {
        members.report(
          member.name,
          "'\(other)' is also renamed to '\(newName)'; choose different names")
      }
      newNames[member.name] = newName
    }
    self.newNames = newNames
    self.columns = ColumnNames(newNames.keys, missing: missing)
  }

  public var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  public func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    let output = input.with(
      columns: input.columns.map { column in
        guard let newName = self.newNames[column.name] else { return column }
        var column = column
        column.name = newName
        return column
      })
    try output.checkNames(stage: Self.type)
    return output
  }
}
