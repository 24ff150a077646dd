internal import PostgresClient

/// Statements, without semicolons, that record table changes in the bookkeeping.
extension Bookkeeping {
  func register(table: String, entity: String, kind: TableDefinition.Kind) -> String {
    "INSERT INTO \(self.qualified("_etl_table")) (table_name, entity, kind) VALUES "
      + "(\(Self.literals([table, entity, kind.rawValue])))"
  }

  func register(_ column: TableState.Registered, of table: String, schemaID: String) -> String {
    let type = column.salesforceType.map { SQLIdentifier.literal($0) } ?? "NULL"
    return "INSERT INTO \(self.qualified("_etl_column")) (table_name, column_name, ordinal, "
      + "path, salesforce_type, pg_type, first_schema_id) VALUES "
      + "(\(Self.literals([table, column.name])), \(column.ordinal), "
      + "\(Self.literals([column.path])), \(type), \(Self.literals([column.sqlType, schemaID])))"
  }

  func retype(column: String, of table: String, sqlType: String) -> String {
    "UPDATE \(self.qualified("_etl_column")) SET pg_type = \(SQLIdentifier.literal(sqlType)) "
      + Self.place(of: column, in: table)
  }

  func rename(column: String, of table: String, to newName: String) -> String {
    "UPDATE \(self.qualified("_etl_column")) SET column_name = "
      + "\(SQLIdentifier.literal(newName)) " + Self.place(of: column, in: table)
  }

  /// - Parameter schemaID: the schema that caused the change; nil if none did.
  func note(_ action: String, _ detail: String, on table: String, schemaID: String?) -> String {
    "INSERT INTO \(self.qualified("_etl_journal")) (table_name, action, detail, schema_id) VALUES "
      + "(\(Self.literals([table, action, detail])), "
      + "\(schemaID.map { SQLIdentifier.literal($0) } ?? "NULL"))"
  }

  /// The journal's detail of a renamed column.
  static func renaming(_ name: String, _ newName: String) -> String { "\(name) to \(newName)" }

  private static func place(of column: String, in table: String) -> String {
    "WHERE table_name = \(SQLIdentifier.literal(table)) "
      + "AND column_name = \(SQLIdentifier.literal(column))"
  }

  private static func literals(_ texts: [String]) -> String {
    texts.map { SQLIdentifier.literal($0) }.joined(separator: ", ")
  }
}
