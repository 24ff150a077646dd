import JSON
import PostgresClient
import PostgresSink

extension PostgresSettings {
  static let schemaDescription =
    "Writes a table with the latest state of each record and one with every change."

  static var schemaMembers: [JSONSchema.Member] {
    let connection = PostgresConnectionConfiguration(url: "")
    let defaults = PostgresSinkConfiguration(connection: connection)
    return [
      .optional(
        "url", .text(),
        "postgresql://… or key=value words; without it the PG* variables and .pgpass."),
      .optional(
        "schema", .text(minLength: 1), "Schema of the tables; created if it is missing.",
        default: .string(defaults.schema)),
      .optional(
        "mode", .choice(of: PostgresSinkConfiguration.Mode.self),
        "Which tables are written. Platform events have a history only.",
        default: .string(defaults.mode.rawValue)),
      .optional(
        "tables",
        .object([
          .optional(
            "current", .text(pattern: #"\{entity\}"#), "One row per record.",
            default: .string(defaults.tables.current)),
          .optional(
            "history", .text(pattern: #"\{entity\}"#), "One row per event and record.",
            default: .string(defaults.tables.history)),
        ]), "Names of the tables; {entity} is replaced by the object's name."),
      .optional(
        "columns", .choice(of: SQLIdentifier.Style.self),
        "How field names are turned into column names.",
        default: .string(defaults.columns.rawValue)),
      .optional(
        "column_types", .map(of: .text()),
        "Column types that differ from the defaults, by name or dotted path of the field, with "
          + "or without the entity in front."),
      .optional(
        "indexes", .list(of: .text(minLength: 1), isUnique: true),
        "Columns that new tables get an index on, for lookups: AccountId, or "
          + "Opportunity.AccountId for one object. Current tables get it, or history tables if "
          + "they are the only ones; columns of long texts do not fit into an index."),
      .optional(
        "delete", .choice(of: PostgresSinkConfiguration.DeletePolicy.self),
        "What happens to the current row of a deleted record.",
        default: .string(defaults.delete.rawValue)),
      .optional(
        "contract", .choice(of: PostgresSinkConfiguration.Contract.self),
        "What happens if a schema has fields that the tables lack.",
        default: .string(defaults.contract.rawValue)),
      .optional(
        "statement_timeout", .reference("duration"),
        "Time after which the server cancels a statement.",
        default: PipelineSchema.duration(connection.statementTimeout)),
      .optional(
        "lock_timeout", .reference("duration"),
        "How long a statement waits for a lock before it is retried.",
        default: PipelineSchema.duration(connection.lockTimeout)),
    ]
  }
}
