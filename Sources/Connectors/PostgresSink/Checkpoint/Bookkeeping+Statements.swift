internal import PostgresClient

/// Statements, without semicolons, that record table changes in the bookkeeping.
extension Bookkeeping {
  func register(table: String, entity: String, kind: TableDefinition.Kind) -> String {
    "INSERT INTO \(self.qualified("_etl_table")) (table_name, entity, kind) VALUES "
      + "(\(Self.literals([table, entity, kind.rawValue])))"
  }

  func register(_ column: TableState.Registered, of table: String, schemaID: String) -> String {
    let type = column.salesforceType.map { SQLIdentifier.literal($0) } ?? "NULL"
    let fieldID = column.fieldID.map { SQLIdentifier.literal($0) }
    let firstSchema = column.isOnlyRead ? "NULL" : SQLIdentifier.literal(schemaID)
    return "INSERT INTO \(self.qualified("_etl_column")) (table_name, column_name, ordinal, "
      + "path, salesforce_type, pg_type, first_schema_id\(fieldID == nil ? "" : ", field_id")) VALUES "
      + "(\(Self.literals([table, column.name])), \(column.ordinal), "
      + "\(Self.literals([column.path])), \(type), \(Self.literals([column.sqlType])), \(firstSchema)"
      + "\(fieldID.map { ", \($0)" } ?? ""))"
  }

  func retype(column: String, of table: String, sqlType: String) -> String {
    "UPDATE \(self.qualified("_etl_column")) SET pg_type = \(SQLIdentifier.literal(sqlType)) "
      + Self.place(of: column, in: table)
  }

  func rename(column: String, of table: String, to newName: String) -> String {
    "UPDATE \(self.qualified("_etl_column")) SET column_name = "
      + "\(SQLIdentifier.literal(newName)) " + Self.place(of: column, in: table)
  }

  /// - Parameter property: a text column of `_etl_column`.
  func set(_ property: String, to value: String?, column: String, of table: String) -> String {
    "UPDATE \(self.qualified("_etl_column")) SET \(property) = "
      + "\(value.map { SQLIdentifier.literal($0) } ?? "NULL") " + Self.place(of: column, in: table)
  }

  /// Notes the IDs of the fields of several columns.
  func identify(_ columns: [(column: String, id: String)], of table: String) -> String {
    let values = columns.map { "(\(Self.literals([$0.column, $0.id])))" }
    return "UPDATE \(self.qualified("_etl_column")) AS c SET field_id = v.id "
      + "FROM (VALUES \(values.joined(separator: ", "))) AS v (name, id) "
      + "WHERE c.table_name = \(SQLIdentifier.literal(table)) AND c.column_name = v.name"
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
