internal import JSON
internal import Pipeline
internal import PostgresClient

/// The tables `_fields` and `_picklist`: what the org says about the fields of each object, and the
/// values of its picklists.
struct FieldTables {
  static let fields = "_fields"
  static let choices = "_picklist"
  static let names = [Self.fields, Self.choices]

  private let bookkeeping: Bookkeeping

  init(_ bookkeeping: Bookkeeping) { self.bookkeeping = bookkeeping }

  /// Replaces what the tables have of an object, in the open transaction. Rows that are the same stay
  /// as they are. Does nothing if the role may not change the tables.
  ///
  /// - Returns: whether anything changed.
  @discardableResult
  func store(
    _ fields: [FieldDescription], of entity: String, over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    guard try self.areKept(over: connection) else { return false }
    let hasNewFields = try self.replace(
      Self.fields, key: ["field"],
      values: [
        "label text", "type text", "length int", "reference_to text[]", "formula text",
        "help_text text", "scale int", "blank_as_zero boolean",
      ], by: Self.rows(of: fields), of: entity, over: connection)
    let hasNewChoices = try self.replace(
      Self.choices, key: ["field", "value"],
      values: ["label text", "is_active boolean", "is_default boolean", "position int"],
      by: Self.choices(of: fields), of: entity, over: connection)
    return hasNewFields || hasNewChoices
  }

  /// Other objects with formulas that read fields of related records, sorted.
  func referring(
    besides entity: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    let name = self.bookkeeping.qualified(Self.fields)
    guard
      try connection.query(
        """
        SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) \
        AND attname = 'formula_state' AND NOT attisdropped)
        """, [name])[0, 0] == "t"
    else { return [] }
    let found = try connection.query(
      """
      SELECT DISTINCT entity FROM \(name) WHERE formula LIKE '%.%' AND entity <> $1 ORDER BY 1
      """, [entity])
    return (0..<found.rowCount).compactMap { found[$0, 0] }
  }

  /// Creates the tables if one is missing, and adds the columns that those of an earlier version lack.
  ///
  /// - Returns: false if the role may not create or change them.
  private func areKept(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let found = try connection.query(
      """
      SELECT bool_and(to_regclass(name) IS NOT NULL), has_schema_privilege($3, 'CREATE'), \
      bool_and(has_table_privilege(to_regclass(name), 'SELECT') \
      AND has_table_privilege(to_regclass(name), 'INSERT') \
      AND has_table_privilege(to_regclass(name), 'UPDATE') \
      AND has_table_privilege(to_regclass(name), 'DELETE')), \
      (SELECT count(*) = 3 FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = to_regclass($1) \
      AND a.attname IN ('scale', 'blank_as_zero', 'formula_state') AND NOT a.attisdropped), \
      (SELECT pg_has_role(c.relowner, 'USAGE') AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS a \
      WHERE a.attrelid = c.oid AND a.attname = 'help_text' AND NOT a.attisdropped) \
      FROM pg_catalog.pg_class AS c WHERE c.oid = to_regclass($1)) \
      FROM unnest(ARRAY[$1, $2]) AS t (name)
      """, Self.names.map { self.bookkeeping.qualified($0) } + [self.bookkeeping.schema])
    if found[0, 0] == "t" {
      if found[0, 3] != "t", found[0, 4] == "t" {
        try connection.execute(self.bookkeeping.fieldAdditions)
      }
      return found[0, 2] == "t"
    }
    guard found[0, 1] == "t" else { return false }
    try connection.execute(self.bookkeeping.fieldStatements().joined(separator: ";\n"))
    return true
  }

  /// - Parameters:
  ///   - key: text columns that identify a row of the object.
  ///   - values: the other columns with their types.
  ///   - rows: objects by column name.
  /// - Returns: whether rows changed.
  private func replace(
    _ table: String, key: [String], values: [String], by rows: [JSONValue], of entity: String,
    over connection: PostgresConnection
  ) throws(PostgresError) -> Bool {
    let name = self.bookkeeping.qualified(table)
    let names = values.compactMap { $0.split(separator: " ").first.map(String.init) }
    func list(_ columns: [String], of alias: String) -> String {
      columns.map { "\(alias).\($0)" }.joined(separator: ", ")
    }
    let new = """
      (SELECT DISTINCT ON (\(list(key, of: "r"))) r.* FROM jsonb_to_recordset($2::jsonb) AS r \
      (\((key.map { "\($0) text" } + values).joined(separator: ", "))) \
      ORDER BY \(list(key + names, of: "r"))) AS n
      """
    let parameters = [entity, JSONValue.array(rows).text()]
    let deleted = try connection.query(
      """
      DELETE FROM \(name) AS o WHERE o.entity = $1 AND NOT EXISTS (SELECT FROM \(new) \
      WHERE (\(list(key, of: "n"))) = (\(list(key, of: "o")))) RETURNING 1
      """, parameters)
    let changed = try connection.query(
      """
      INSERT INTO \(name) AS o (entity, \((key + names).joined(separator: ", "))) \
      SELECT $1, \(list(key + names, of: "n")) FROM \(new) \
      ON CONFLICT (entity, \(key.joined(separator: ", "))) DO UPDATE SET \
      \(names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")), changed_at = now() \
      WHERE (\(list(names, of: "o"))) IS DISTINCT FROM (\(list(names, of: "excluded"))) RETURNING 1
      """, parameters)
    return deleted.rowCount + changed.rowCount > 0
  }

  private static func rows(of fields: [FieldDescription]) -> [JSONValue] {
    fields.map { field in
      [
        "field": .string(field.name), "label": .string(field.label), "type": .string(field.type),
        "length": field.length.map { .integer($0) } ?? nil,
        "reference_to": field.references.isEmpty
          ? nil : .array(field.references.map { .string($0) }),
        "formula": field.formula.map { .string($0) } ?? nil,
        "help_text": field.helpText.map { .string($0) } ?? nil,
        "scale": field.scale.map { .integer($0) } ?? nil,
        "blank_as_zero": field.formula == nil ? nil : .boolean(field.treatsBlankAsZero),
      ]
    }
  }

  private static func choices(of fields: [FieldDescription]) -> [JSONValue] {
    fields.flatMap { field in
      field.choices.enumerated().map { place, choice in
        [
          "field": .string(field.name), "value": .string(choice.value),
          "label": .string(choice.label), "is_active": .boolean(choice.isActive),
          "is_default": .boolean(choice.isDefault), "position": .integer(place + 1),
        ]
      }
    }
  }
}
