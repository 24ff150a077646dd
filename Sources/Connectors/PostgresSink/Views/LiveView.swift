internal import PostgresClient

/// The columns of `<table>_live` in their order.
struct LiveView {
  typealias Column = ReportingViews.Column

  let columns: [Column]
  let query: String

  /// - Parameters:
  ///   - types: of columns that the table has.
  ///   - existing: columns of the existing view, which keep their places. New columns follow, so
  ///     that grants and dependent views remain.
  init(
    _ table: TableDefinition, style: SQLIdentifier.Style, types: [String: Column],
    existing: [Column]
  ) {
    let fixed = TableDefinition.fixedColumns(.current).filter { $0.name != "_deleted_at" }
    func column(_ fixed: TableDefinition.FixedColumn) -> Column {
      Column(name: fixed.name, type: fixed.sqlType)
    }
    let fullName = FullName(table, style: style)
    let data = table.dataColumns.map { column in
      // A full name is text, whatever its parts are.
      (column.name == fullName?.column ? nil : types[column.name])
        ?? Column(name: column.name, type: column.type.sqlName)
    }
    var columns = fixed.filter(\.isKey).map(column) + data
    if let fullName, !data.contains(where: { $0.name == fullName.column }) {
      let first = columns.firstIndex { fullName.parts.contains($0.name) } ?? columns.endIndex
      columns.insert(Column(name: fullName.column, type: PostgresType.text.sqlName), at: first)
    }
    columns += fixed.filter { !$0.isKey }.map(column)
    if existing.allSatisfy(columns.contains) {
      columns = existing + columns.filter { !existing.contains($0) }
    }
    self.columns = columns
    let selected = columns.map { column in
      column.name == fullName?.column
        ? fullName?.selected ?? "" : SQLIdentifier.quoted(column.name)
    }
    self.query =
      "SELECT \(selected.joined(separator: ", ")) FROM \(table.qualifiedName) "
      + "WHERE _deleted_at IS NULL"
  }
}

/// The full name of a person, composed like `Name` in REST, without the salutation; events have
/// only its parts. Organizations with person accounts send `Name` itself for the other accounts.
private struct FullName {
  /// SQL names, not quoted.
  let column: String
  let parts: [String]
  /// The column's item in SELECT.
  let selected: String

  /// Nil if the table has no last name, or has another column of that name.
  init?(_ table: TableDefinition, style: SQLIdentifier.Style) {
    func part(_ name: String) -> String? {
      table.dataColumns.first { $0.path == "Name.\(name)" && $0.type == .text }?.name
    }
    guard part("LastName") != nil else { return nil }
    self.column = SQLIdentifier.name("Name", style)
    self.parts = ["FirstName", "MiddleName", "LastName", "Suffix"].compactMap(part)
    let parts = self.parts.map { "nullif(\(SQLIdentifier.quoted($0)), '')" }
    let composed = "nullif(concat_ws(' ', \(parts.joined(separator: ", "))), '')"
    let name = SQLIdentifier.quoted(self.column)
    if let taken = table.dataColumns.first(where: { [column] in $0.name == column }) {
      guard taken.path == "Name", taken.type == .text else { return nil }
      self.selected = "coalesce(\(name)::text, \(composed)) AS \(name)"
    } else {
      self.selected = "\(composed) AS \(name)"
    }
  }
}
