package import JSON

/// The columns that a stage names in its configuration.
///
/// One stage serves every schema of a pipeline, and a field may come or go with the next schema, so
/// a name that one schema lacks is not an error. A name that *no* schema has is most likely a typo,
/// which in `drop` would export a column that should be left out. `NamedColumns` reports such
/// names, and the caller, who knows the topics, decides. The same applies to a pattern (`*Email*`)
/// that matches nothing.
package final class ColumnNames {
  /// What to do about names that schemas lack, if configured.
  package enum Missing: String, Sendable, CaseIterable {
    /// The run continues even if no schema has the name.
    case ignore
    /// The run stops at the first schema that lacks it.
    case fail
  }

  package let names: Set<String>
  /// The names that are patterns.
  private let patterns: [ColumnPattern]
  /// Nil accepts a name that some schemas lack, but not one that all lack.
  package let missing: Missing?
  private var unseen: Set<String>
  private var known: Set<String> = []
  /// The columns that schemas of each object have had so far; kept only for stages that guard
  /// against renamed fields.
  private var objects: [String: (names: Set<String>, columns: Set<String>)] = [:]
  private var keptCount = 0

  /// The maximum number of column names kept to detect renamed fields.
  private static let maxKeptCount = 1 << 20

  /// - Parameter takesPatterns: whether `*` and `?` in a name are wildcards.
  package init(
    _ names: some Sequence<String>, missing: Missing? = nil, takesPatterns: Bool = false
  ) {
    self.names = Set(names)
    self.patterns = takesPatterns ? self.names.sorted().compactMap(ColumnPattern.init) : []
    self.missing = missing
    self.unseen = self.names
  }

  /// - Parameter expressions: the expressions that contain the names.
  func named(by stage: String, at expressions: [StageExpression] = []) -> NamedColumns {
    var columns = NamedColumns(
      type: stage, names: self.names, unmatched: self.unseen, isAllowed: self.missing == .ignore,
      known: self.known)
    for expression in expressions {
      columns.places.merge(expression.places) { first, _ in first }
    }
    return columns
  }

  func contains(_ column: Column) -> Bool { self.name(for: column) != nil }

  /// The name or pattern that matches the column.
  func name(for column: Column) -> String? {
    if self.names.contains(column.name) { return column.name }
    return self.patterns.first { $0.fits(column) }?.text
  }

  /// Throws `TransformError` when the schema lacks a name that another schema of its object has
  /// had, and has a column that none of those has had: the field may have been renamed, and its
  /// values would be exported under the new name. If a schema only lacks a name, the field was
  /// deleted or does not exist yet.
  func guardAgainstRenaming(_ layout: RecordLayout, stage: String) throws {
    guard self.missing != .ignore, !self.names.isEmpty else { return }
    var present: Set<String> = []
    var columns: Set<String> = []
    for column in layout.columns where !column.isMetadata {
      // A column that is hidden anyway cannot be the new name of a hidden one.
      if !column.isMasked, !self.contains(column) { columns.insert(column.name) }
      if self.names.contains(column.name) { present.insert(column.name) }
      for pattern in self.patterns where pattern.fits(column) { present.insert(pattern.text) }
    }
    let earlier = self.objects[layout.entity]
    if let earlier, case let lost = earlier.names.subtracting(present), !lost.isEmpty,
      case let new = columns.subtracting(earlier.columns), !new.isEmpty
    {
      func list(_ names: Set<String>) -> String {
        names.sorted().prefix(3).map { "'\($0)'" }.joined(separator: ", ")
          + (names.count > 3 ? " and \(names.count - 3) more" : "")
      }
      throw TransformError(
        .unknownColumn,
        "stage \(stage): this schema of \(layout.entity) lacks \(list(lost)), which another one has, "
          + "and has \(list(new)), which the other lacks (\(layout.origin)): if the field was renamed, its "
          + "values would be exported in clear; name it in a stage of its own, before this one")
    }
    let known = (earlier?.names ?? []).union(present)
    let all = columns.union(earlier?.columns ?? [])
    self.keptCount += all.count - (earlier?.columns.count ?? 0)
    guard self.keptCount <= Self.maxKeptCount else {
      throw TransformError(
        .unknownColumn,
        "stage \(stage): the schemas of this run have more than \(Self.maxKeptCount) columns "
          + "(\(layout.origin)); split the pipeline by objects")
    }
    self.objects[layout.entity] = (known, all)
  }

  /// Notes which names a layout has. Throws `TransformError` if it lacks a required one.
  func match(_ layout: RecordLayout, stage: String) throws {
    var present = Set(layout.columns.map(\.name))
    self.known.formUnion(present)
    for pattern in self.patterns where layout.columns.contains(where: pattern.fits) {
      present.insert(pattern.text)
    }
    self.unseen.subtract(present)
    guard self.missing == .fail else { return }
    try self.refuse(absentFrom: present, layout, stage)
  }

  private func refuse(
    absentFrom present: Set<String>, _ layout: RecordLayout, _ stage: String
  ) throws {
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
  /// The keys of a stage that does one thing with the columns it lists.
  package struct Options: KeyedObject, Sendable {
    var columns: [String] = []
    var missing: Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "columns", \.columns, .columnNames, Key<Self>.columnsText,
          example: ["Description", "*Email*"]),
        .missing(\.missing),
      ]
    }
  }

  convenience init(_ options: Options) {
    self.init(options.columns, missing: options.missing, takesPatterns: true)
  }
}

extension Key where Object: KeyedObject {
  static var columnsText: String {
    "Column names, or patterns such as *Email*, as left by the stages before."
  }

  static func missing(_ property: WritableKeyPath<Object, ColumnNames.Missing?>) -> Self {
    .key(
      "missing", property, .missing, "What to do about names that are not in any schema.")
  }
}

extension Kind<ColumnNames.Missing> {
  fileprivate static var missing: Self {
    Self(
      .reference("missing"), example: { _ in "ignore" },
      read: { reader, name, isRequired in
        Self.choice(called: "choice").read(reader, name, isRequired)
      })
  }
}

extension Kind<[String]> {
  /// Names and patterns of columns. Reports an empty list and duplicate names.
  static var columnNames: Self {
    Self.strings(.reference("columnNames")).map { reader, name, names in
      if reader.any(name)?.array?.isEmpty == true { reader.report(name, "does not name a column") }
      var seen: Set<String> = []
      for column in names where !seen.insert(column).inserted {
        reader.report(name, "lists '\(column)' twice")
      }
      return names
    }
  }
}

extension JSONReader {
  /// The columns that an object in this place maps to something; reports an empty object.
  func columns(_ name: String) -> (reader: JSONReader, members: [JSONMember])? {
    guard let object = self.object(name, required: true) else { return nil }
    let members = (object.value.members ?? []).filter { $0.name != "//" }
    if members.isEmpty { self.report(name, "does not name a column") }
    return (object, members)
  }
}
