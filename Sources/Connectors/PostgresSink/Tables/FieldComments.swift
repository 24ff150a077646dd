internal import Pipeline
internal import PostgresClient

/// The comments of columns: the label of the field, for an ID the objects that it refers to, and the
/// field's Salesforce type. A comment that somebody else wrote stays.
struct FieldComments {
  private let bookkeeping: Bookkeeping
  /// By name in REST.
  private let fields: [String: FieldDescription]

  init(_ fields: [FieldDescription], _ bookkeeping: Bookkeeping) {
    self.bookkeeping = bookkeeping
    self.fields = Dictionary(
      fields.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Updates the comments that differ, in the open transaction. Relations of other roles are left
  /// out.
  ///
  /// - Parameter tables: names of the object's tables.
  func update(_ tables: [String], over connection: PostgresConnection) throws(PostgresError) {
    let columns = try connection.query(
      """
      SELECT quote_ident(c.relname), quote_ident(a.attname), r.path, r.salesforce_type, \
      col_description(c.oid, a.attnum) FROM unnest($1::text[], $2::text[]) AS t (table_name, live) \
      JOIN \(self.bookkeeping.qualified("_etl_column")) AS r USING (table_name) \
      JOIN pg_catalog.pg_class AS c ON c.relname IN (t.table_name, t.live) \
      AND c.relnamespace = to_regnamespace(quote_ident($3)) AND c.relkind IN ('r', 'p', 'v') \
      AND pg_has_role(c.relowner, 'USAGE') \
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = r.column_name \
      AND NOT a.attisdropped ORDER BY 1, a.attnum
      """,
      [
        SQLArray.literal(tables), SQLArray.literal(tables.map(ReportingViews.liveName)),
        self.bookkeeping.schema,
      ])
    let targets = try self.targets(over: connection)
    var statements: [String] = []
    for row in 0..<columns.rowCount {
      guard let relation = columns[row, 0], let column = columns[row, 1], let path = columns[row, 2]
      else { continue }
      let wanted = self.comment(
        on: path, columns[row, 3], instead: columns[row, 4], targets: targets)
      guard let wanted, wanted != columns[row, 4] else { continue }
      statements.append(
        "COMMENT ON COLUMN \(SQLIdentifier.quoted(self.bookkeeping.schema)).\(relation).\(column) "
          + "IS \(SQLIdentifier.literal(wanted))")
    }
    guard !statements.isEmpty else { return }
    try connection.execute(statements.joined(separator: ";\n"))
  }

  /// The current table of each object that has one.
  private func targets(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [String: String] {
    let found = try connection.query(
      """
      SELECT entity, min(table_name) FROM \(self.bookkeeping.qualified("_etl_table")) \
      WHERE kind = 'current' GROUP BY entity
      """)
    return Dictionary(
      (0..<found.rowCount).map { (found[$0, 0] ?? "", found[$0, 1] ?? "") },
      uniquingKeysWith: { first, _ in first })
  }

  /// - Parameters:
  ///   - path: the dotted name of the field.
  ///   - type: its Salesforce type.
  ///   - present: the present comment.
  ///   - targets: the table of each object that has one.
  /// - Returns: nil if the comment stays.
  private func comment(
    on path: String, _ type: String?, instead present: String?, targets: [String: String]
  ) -> String? {
    let parts = path.split(separator: ".", maxSplits: 1).map(String.init)
    let name = parts.count == 2 ? FlattenNaming.sobject.name(of: parts[1], in: parts[0]) : path
    guard let field = self.fields[name], !field.label.isEmpty else { return nil }
    // The end by which the program knows its own comments.
    let mark = " [\(type ?? path)]"
    let (text, day) = ColumnStates.parts(of: present)
    guard text == nil || text == type || text?.hasSuffix(mark) == true else { return nil }
    let reference = Self.reference(field.references, targets)
    return ColumnStates.comment("\(field.label)\(reference)\(mark)", goneSince: day)
  }

  /// The number of objects that a comment names.
  private static let shownTargets = 3

  /// `: refers to Account (table account), Lead and 4 other objects`; empty for other fields.
  private static func reference(_ objects: [String], _ targets: [String: String]) -> String {
    guard !objects.isEmpty else { return "" }
    let sorted =
      objects.filter { targets[$0] != nil } + objects.filter { targets[$0] == nil }
    var shown = sorted.prefix(Self.shownTargets).map { object in
      targets[object].map { "\(object) (table \($0))" } ?? object
    }
    let others = sorted.count - shown.count
    if others > 0 { shown.append(others == 1 ? "1 other object" : "\(others) other objects") }
    let last = shown.removeLast()
    let list = shown.isEmpty ? last : "\(shown.joined(separator: ", ")) and \(last)"
    return ": refers to \(list)"
  }
}
