internal import PostgresClient

/// The sink's own tables, beside those of the entities: names begin with `_etl_`.
package struct Bookkeeping: Sendable {
  /// SQL name, not quoted.
  package let schema: String

  package init(schema: String) { self.schema = schema }

  /// For SQL text.
  package func qualified(_ name: String) -> String {
    SQLIdentifier.quoted(self.schema) + "." + SQLIdentifier.quoted(name)
  }

  private struct Table {
    var name: String
    var columns: String
    var comment: String
  }

  private static let tables = [
    Table(
      name: "_etl_checkpoint",
      columns: """
        pipeline text, sink text, org text not null, topics jsonb not null, owner text not null,
        fence bigint not null, lease_until timestamptz not null, reread_until timestamptz,
        committed_at timestamptz not null, complete_through timestamptz,
        primary key (pipeline, sink)
        """,
      comment: "The position of each pipeline, and who is running it"),
    Table(
      name: "_etl_table",
      columns: "table_name text primary key, entity text not null, kind text not null",
      comment: "The tables of each entity"),
    Table(
      name: "_etl_column",
      columns: """
        table_name text, column_name text, ordinal int, path text, salesforce_type text,
        pg_type text, first_schema_id text, primary key (table_name, column_name)
        """,
      comment: "The columns that hold fields, and the field of each"),
    Table(
      name: "_etl_journal",
      columns: """
        id bigserial primary key, at timestamptz default now(), table_name text, action text,
        detail text, schema_id text
        """,
      comment: "Every change to the tables, and when each schema was first seen"),
    Table(
      name: "_etl_resync",
      columns: """
        id bigserial primary key, noted_at timestamptz default now(), entity text not null,
        kind text not null, record_id text, event_id text, replay_id text,
        commit_timestamp timestamptz, epoch int, ordinal bigint, done_at timestamptz,
        unique (entity, kind, event_id, record_id)
        """,
      comment: "What must be read again from Salesforce, and why"),
    Table(
      name: "_etl_tombstone",
      columns: """
        entity text, id text, epoch int, ordinal bigint, commit_timestamp timestamptz,
        primary key (entity, id)
        """,
      comment: "Records that were removed from the current tables"),
  ]

  static let names = Self.tables.map(\.name)

  /// What is missing.
  func statements(schemaExists: Bool, existing: Set<String>) -> [String] {
    var statements: [String] = []
    if !schemaExists {
      statements.append("CREATE SCHEMA IF NOT EXISTS \(SQLIdentifier.quoted(self.schema))")
    }
    for table in Self.tables where !existing.contains(table.name) {
      let name = self.qualified(table.name)
      statements.append("CREATE TABLE IF NOT EXISTS \(name) (\n\(table.columns)\n)")
      statements.append("COMMENT ON TABLE \(name) IS \(SQLIdentifier.literal(table.comment))")
    }
    return statements
  }
}
