internal import PostgresClient

/// The columns that names in the lists of a history mean. The lists keep the names from the time of the
/// event; since then, a field may have been renamed, or its name may belong to another field.
struct ListedNames {
  struct Name {
    var name: String
    /// SQL names, not quoted, like all here. Nil if no such column exists anymore.
    var column: String?
    /// The columns that the name means in events of some schemas instead.
    var exceptions: [(column: String, schemas: [String])] = []
  }

  /// The names that do not always mean the column that has the name now.
  private(set) var names: [Name] = []
  /// By column, all columns of its field; those of its earlier types come last.
  private(set) var families: [String: [String]] = [:]
  /// Whether a name means other columns in events of some schemas.
  var dependOnSchema: Bool { self.names.contains { !$0.exceptions.isEmpty } }

  init() {}

  init(_ columns: [TableColumn], _ earlier: EarlierColumnNames) {
    guard !earlier.areToday else { return }
    let successors = earlier.successors(columns)
    func newest(_ column: Int) -> Int { successors[column].map(newest) ?? column }
    for (old, _) in successors.sorted(by: { $0.key < $1.key }) {
      let name = columns[newest(old)].name
      self.families[name, default: [name]].append(columns[old].name)
    }
    var seen: Set<String> = []
    let candidates =
      earlier.renamings.flatMap { [$0.from, $0.to] } + successors.keys.map { columns[$0].name }
    for name in candidates.sorted() where seen.insert(name).inserted {
      let column = earlier.newestColumn(name).map(newest)
      var exceptions: [Int: [String]] = [:]
      for schema in earlier.schemas {
        guard let other = earlier.column(name, schemaID: schema).map(newest), other != column
        else { continue }
        exceptions[other, default: []].append(schema)
      }
      let found = Name(
        name: name, column: column.map { columns[$0].name },
        exceptions: exceptions.sorted { $0.key < $1.key }.map { (columns[$0.key].name, $0.value) })
      if found.column != nil && found.column != name || !found.exceptions.isEmpty {
        self.names.append(found)
      }
    }
  }

  /// SQL: the column that a name means, under its present name.
  ///
  /// - Parameters:
  ///   - name: SQL.
  ///   - schema: SQL, the ID of the event's schema.
  func present(_ name: String, schema: String) -> String {
    let cases = self.names.map { listed in
      let otherwise = SQLIdentifier.literal(listed.column ?? listed.name)
      let exceptions = listed.exceptions.map {
        "WHEN \(schema) = ANY (\(Self.literal($0.schemas))) THEN \(SQLIdentifier.literal($0.column)) "
      }
      let column =
        exceptions.isEmpty ? otherwise : "CASE \(exceptions.joined())ELSE \(otherwise) END"
      return "WHEN \(SQLIdentifier.literal(listed.name)) THEN \(column)"
    }
    guard !cases.isEmpty else { return name }
    return "CASE \(name) \(cases.joined(separator: " ")) ELSE \(name) END"
  }

  /// The other names that always mean a column.
  func former(of column: String) -> [String] {
    self.names.filter { $0.exceptions.isEmpty && $0.column == column }.map(\.name)
      .filter { $0 != column }
  }

  /// SQL: whether a list names a column, or another column of its field.
  ///
  /// - Parameters:
  ///   - list: SQL, an array of names.
  ///   - schema: SQL, the ID of the event's schema.
  func contains(_ column: String, in list: String, schema: String) -> String {
    let newest = self.families.first { $0.value.contains(column) }?.key ?? column
    var names = self.former(of: newest)
    for name in [column, newest] where !names.contains(name) {
      if !self.names.contains(where: { $0.name == name }) { names.insert(name, at: 0) }
    }
    var conditions: [String] = []
    if names.count == 1 {
      conditions.append("\(SQLIdentifier.literal(names[0])) = ANY (\(list))")
    } else if !names.isEmpty {
      conditions.append("\(list) OPERATOR(pg_catalog.&&) \(Self.literal(names))")
    }
    for listed in self.names where !listed.exceptions.isEmpty {
      let isNamed = "\(SQLIdentifier.literal(listed.name)) = ANY (\(list))"
      if listed.column == newest {
        let others = Self.literal(listed.exceptions.flatMap(\.schemas))
        conditions.append("(\(isNamed) AND (\(schema) = ANY (\(others))) IS NOT TRUE)")
      }
      for exception in listed.exceptions where exception.column == newest {
        let schemas = Self.literal(exception.schemas)
        conditions.append("(\(isNamed) AND (\(schema) = ANY (\(schemas))) IS TRUE)")
      }
    }
    guard conditions.count != 1 else { return conditions[0] }
    return conditions.isEmpty ? "false" : "(\(conditions.joined(separator: " OR ")))"
  }

  static func literal(_ names: [String]) -> String {
    "\(SQLIdentifier.literal(SQLArray.literal(names)))::text[]"
  }
}
