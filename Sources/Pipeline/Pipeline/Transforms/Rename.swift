package import JSON

/// Gives columns other names: `{"type": "rename", "columns": {"StageName": "stage"}}`.
///
/// All columns are renamed at once, so two of them can swap names. Metadata columns can be renamed
/// like others.
package final class Rename: ConfiguredTransform {
  package static let type = "rename"
  package static let schemaDescription =
    "Gives columns other names, all at once."
  private let newNames: [String: String]
  private let columns: ColumnNames

  /// - Parameter newNames: new names by current name.
  package init(_ newNames: [String: String], missing: ColumnNames.Missing? = nil) {
    self.newNames = newNames
    self.columns = ColumnNames(newNames.keys, missing: missing)
  }

  package struct Options: KeyedObject, Sendable {
    fileprivate var newNames: [String: String] = [:]
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "columns", \.newNames, .newNames,
          "Maps the current name of each column to the new one.", example: ["StageName": "stage"]),
        .missing(\.missing),
      ]
    }
  }

  package convenience init(_ options: Options) {
    self.init(options.newNames, missing: options.missing)
  }

  package var namedColumns: NamedColumns? { self.columns.named(by: Self.type) }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
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

extension Kind<[String: String]> {
  fileprivate static var newNames: Self {
    Self(.map(of: .text(minLength: 1), minCount: 1)) { reader, name, _ in
      guard let (columns, members) = reader.columns(name) else { return nil }
      var newNames: [String: String] = [:]
      for member in members {
        guard let newName = columns.string(member.name) else { continue }
        if newName.isEmpty {
          columns.report(member.name, "a column needs a name; to remove it, use the stage 'drop'")
        } else if let other = newNames.first(where: { $0.value == newName })?.key {
          columns.report(
            member.name,
            "'\(other)' is also renamed to '\(newName)'; choose different names")
        }
        newNames[member.name] = newName
      }
      return newNames
    }
  }
}
