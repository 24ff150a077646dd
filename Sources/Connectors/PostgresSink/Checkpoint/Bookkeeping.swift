internal import PostgresClient

/// The sink's own tables, whose names begin with `_etl_`, next to the tables of entities.
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
        pg_type text, first_schema_id text, state text not null default 'complete',
        since timestamptz not null default now(), field_id text, refreshed_at timestamptz,
        primary key (table_name, column_name)
        """,
      comment: "The columns that hold fields, the field of each, and how complete they are"),
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

  /// Additional tables of sinks that read records.
  private static let readTables = [
    Table(
      name: "_etl_snapshot",
      columns: """
        pipeline text, sink text, entity text, number bigint not null, state text not null,
        begun_at timestamptz not null, requested_at timestamptz, job text, locator text,
        page_row bigint not null, rows bigint not null, total bigint, finished_at timestamptz,
        newest_stamp timestamptz, primary key (pipeline, sink, entity)
        """,
      comment: "How far the records of each object have been read"),
    Table(
      name: "_etl_missing_range",
      columns: """
        id bigserial primary key, pipeline text not null, sink text not null, topic text not null,
        epoch int not null, missing_from timestamptz, noted_at timestamptz not null default now(),
        reason text not null, repaired_at timestamptz
        """,
      comment: "Parts of topics whose events were lost, and when all records were read again"),
    Table(
      name: RefusedReads.tableName,
      columns: """
        entity text, record_id text, system_modstamp timestamptz, reason text not null,
        noted_at timestamptz not null default now(), primary key (entity, record_id)
        """,
      comment: "Records that were read and could not be stored, and why"),
    Table(
      name: "_etl_repair_calls",
      columns:
        "pipeline text, sink text, day date, calls bigint not null, primary key (pipeline, sink)",
      comment: "API calls made on the last day (UTC) on which records were read again by their IDs"),
  ]

  static let readNames = Self.readTables.map(\.name)

  /// The statements that create the missing tables for reading records.
  func readStatements(existing: Set<String>) -> [String] {
    self.statements(Self.readTables, existing: existing)
  }

  private static let pollTable = Table(
    name: PollTable.name, columns: PollTable.columns,
    comment: "The objects without change events, how often they are read, and when they last were")

  /// The statements that create the table of objects without change events.
  func pollStatements(existing: Set<String>) -> [String] {
    self.statements([Self.pollTable], existing: existing)
  }

  private static let runTable = Table(
    name: RunTable.name, columns: RunTable.columns,
    comment: "What each run did, how it ended, and where its rows begin and end in each topic")

  /// The statements that create the table of runs.
  var runStatements: [String] { self.statements([Self.runTable], existing: []) }

  /// The columns of `_fields` that earlier versions do not have.
  private static let fieldColumns = [
    "scale int", "blank_as_zero boolean", "formula_state text",
  ]

  /// The statement that adds what `_fields` of an earlier version lacks.
  var fieldAdditions: String {
    let columns = Self.fieldColumns.map { "ADD COLUMN IF NOT EXISTS \($0)" }
    return "ALTER TABLE \(self.qualified(FieldTables.fields)) \(columns.joined(separator: ", "))"
  }

  private static let fieldTables = [
    Table(
      name: FieldTables.fields,
      columns: """
        entity text, field text, label text not null, type text not null, length int,
        reference_to text[], formula text, help_text text,
        changed_at timestamptz not null default now(), \(Self.fieldColumns.joined(separator: ", ")),
        primary key (entity, field)
        """,
      comment: "What the org says about the fields of each object"),
    Table(
      name: FieldTables.choices,
      columns: """
        entity text, field text, value text, label text not null, is_active boolean not null,
        is_default boolean not null, position int not null,
        changed_at timestamptz not null default now(), primary key (entity, field, value)
        """,
      comment: "The values of picklists, in the order of the org"),
  ]

  /// The statements that create the missing ones of the tables of fields and choices.
  func fieldStatements(existing: Set<String> = []) -> [String] {
    self.statements(Self.fieldTables, existing: existing)
  }

  /// The statements that create what is missing.
  func statements(schemaExists: Bool, existing: Set<String>) -> [String] {
    var statements: [String] = []
    if !schemaExists {
      statements.append("CREATE SCHEMA IF NOT EXISTS \(SQLIdentifier.quoted(self.schema))")
    }
    return statements + self.statements(Self.tables, existing: existing)
  }

  private func statements(_ tables: [Table], existing: Set<String>) -> [String] {
    tables.filter { !existing.contains($0.name) }.flatMap { table in
      let name = self.qualified(table.name)
      return [
        "CREATE TABLE IF NOT EXISTS \(name) (\n\(table.columns)\n)",
        "COMMENT ON TABLE \(name) IS \(SQLIdentifier.literal(table.comment))",
      ]
    }
  }
}
