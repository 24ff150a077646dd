internal import JSON

/// The columns that a stage names in its configuration.
///
/// One stage serves every schema of a pipeline, and a field may come or go with the next schema, so
/// a name that one schema lacks is not an error. A name that *no* schema has is most likely a typing
/// mistake, which in `drop` would export what was to be left out: `NamedColumns` tells, and whoever
/// knows the topics decides. The same holds for a pattern (`*Email*`) that fits none.
public final class ColumnNames {
  /// What to do about names that schemas lack, where the configuration says so.
  public enum Missing: String, Sendable, CaseIterable {
    /// Goes on, even when no schema has the name.
    case ignore
    /// The run stops at the first schema that lacks it.
    case fail
  }

  public let names: Set<String>
  /// Those of the names that are patterns.
  private let patterns: [ColumnPattern]
  /// Nil: a name may be missing in a schema, but not in all of them.
  public let missing: Missing?
  private var unseen: Set<String>
  private var known: Set<String> = []

  /// - Parameter takesPatterns: whether `*` and `?` in a name stand for others.
  public init(
    _ names: some Sequence<String>, missing: Missing? = nil, takesPatterns: Bool = false
  ) {
    self.names = Set(names)
    self.patterns = takesPatterns ? self.names.sorted().compactMap(ColumnPattern.init) : []
    self.missing = missing
    self.unseen = self.names
  }

  /// - Parameter expressions: that the names stand in.
  func named(by stage: String, at expressions: [StageExpression] = []) -> NamedColumns {
    var columns = NamedColumns(
      type: stage, names: self.names, unmatched: self.unseen, isAllowed: self.missing == .ignore,
      known: self.known)
    for expression in expressions {
      columns.places.merge(expression.places) { first, _ in first }
    }
    return columns
  }

  func contains(_ column: Column) -> Bool {
    self.names.contains(column.name) || self.patterns.contains { $0.fits(column) }
  }

  /// Notes which names a layout has. Throws `TransformError` when it lacks one and must not.
  func match(_ layout: RecordLayout, stage: String) throws {
    var present = Set(layout.columns.map(\.name))
    self.known.formUnion(present)
    for pattern in self.patterns where layout.columns.contains(where: pattern.fits) {
      present.insert(pattern.text)
    }
    self.unseen.subtract(present)
    guard self.missing == .fail else { return }
    let absent = self.names.subtracting(present).sorted()
    guard absent.isEmpty else {
      let columns = NamedColumns(
        type: stage, names: self.names, unmatched: Set(absent), isAllowed: false, known: present)
      throw TransformError(
        .unknownColumn,
        "stage \(stage): there is no column "
          + "\(absent.map(columns.description).joined(separator: ", ")) (\(layout.origin)); "
          + "correct the name, or set \"missing\" to \"ignore\"")
    }
  }
}

extension ColumnNames {
  /// Reads `columns`, an array of names and patterns, and `missing`. Reports an empty list and repeated names.
  convenience init?(listIn reader: JSONReader) {
    let missing: Missing? = reader.choice("missing", called: "choice")
    guard let names = reader.strings("columns", required: true) else { return nil }
    if reader.any("columns")?.array?.isEmpty == true {
      reader.report(
        "columns",
        "does not name a column")
    }
    var seen: Set<String> = []
    for name in names where !seen.insert(name).inserted {
      reader.report("columns", "lists '\(name)' twice")
    }
    self.init(names, missing: missing, takesPatterns: true)
  }
}
