internal import PostgresClient

extension TableDefinition {
  /// SQL of a condition: the columns that rows are written to still have the types that the rows were
  /// encoded for.
  ///
  /// A binary COPY does not compare types: the eight bytes of a `bigint` are taken for a `numeric`, a
  /// `timestamptz` or a `double precision`, with another value and no error. To be asked once rows
  /// have been written, whose locks keep anybody from altering the table until the transaction ends.
  package var typeCondition: String {
    let columns =
      Self.fixedColumns(self.kind).map { ($0.name, PostgresType(rawValue: $0.sqlType)?.oid ?? 0) }
      + self.dataColumns.map { ($0.name, self.otherTypes[$0.name] ?? $0.type.oid) }
    let names = SQLIdentifier.literal(SQLArray.literal(columns.map(\.0)))
    let types = SQLIdentifier.literal(SQLArray.literal(columns.map { "\($0.1)" }))
    // What `PostgresType(oid:)` lets pass for text.
    return """
      (SELECT count(*) = \(columns.count) FROM unnest(\(names)::name[], \(types)::oid[]) AS w (name, type) \
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = \(SQLIdentifier.literal(self.qualifiedName))\
      ::regclass AND a.attname = w.name AND NOT a.attisdropped AND w.type = \
      CASE a.atttypid WHEN 1043 THEN 25 WHEN 1015 THEN 1009 ELSE a.atttypid END)
      """
  }

  /// The type is that which rows have been encoded for.
  func isExpected(_ typeOID: UInt32, of column: TableColumn) -> Bool {
    self.otherTypes[column.name].map { $0 == typeOID }
      ?? (PostgresType(oid: typeOID) == column.type)
  }
}
