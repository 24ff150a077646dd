import Pipeline
import PostgresClient
import TestSupport

/// A layout with two fields, and what a table was given for them.
struct CatalogSample {
  let amount = Column("Amount", 1, .double, salesforceType: "Data:Currency")

  func layout(_ extra: [Column] = [], schemaID: String = "schema-1") -> RecordLayout {
    .test(
      [Column("StageName", 0, .string, salesforceType: "Data:DynamicEnum"), self.amount] + extra,
      schemaID: schemaID)
  }

  func columns(_ table: String, _ connection: PostgresConnection) throws -> [String] {
    try connection.column(
      "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = "
        + "'\(table)'::regclass AND attnum > 0 AND NOT attisdropped AND attname NOT LIKE '\\_%' "
        + "ORDER BY attnum")
  }
}
