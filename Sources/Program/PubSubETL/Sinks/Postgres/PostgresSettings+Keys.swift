import JSON
import PostgresClient
import PostgresSink

extension PostgresSettings {
  static let schemaDescription =
    "Writes a table with the latest state of each record and one with every change."

  static var keys: [Key<Self>] {
    let hour = Duration.seconds(3600)
    return [
      .key(
        "url", \.sink.connection.url, .databaseURL,
        "postgresql://… or key=value words; without it the PG* variables and .pgpass.",
        example: "${DATABASE_URL:-postgresql://localhost/salesforce}",
        secrecy: .addressWithPassword),
      .key(
        "schema", \.sink.schema, .text, "Schema of the tables; created if it is missing.",
        example: "crm"),
      .key(
        "mode", \.sink.mode, .choice(),
        "Which tables are written. Platform events have a history only."),
      .group(
        "tables",
        [
          .key(
            "current", \.sink.tables.current, .tableName, "One row per record.",
            example: "{entity}_now"),
          .key(
            "history", \.sink.tables.history, .tableName, "One row per event and record.",
            example: "{entity}_changes"),
        ], "Names of the tables; {entity} is replaced by the object's name."),
      .key(
        "columns", \.sink.columns, .choice(called: "style"),
        "How field names are turned into column names."),
      .key(
        "column_types", \.sink.columnTypes, .columnTypes,
        "Column types that differ from the defaults, by name or dotted path of the field, with "
          + "or without the entity in front.", example: ["Opportunity.Amount": "numeric"]),
      .key(
        "indexes", \.sink.indexes, .columnNames,
        "Columns that new tables get an index on: AccountId, or Opportunity.AccountId for one "
          + "object, or lookups for all columns with IDs of other records. Current tables get it, "
          + "or history tables if they are the only ones; columns of long texts do not fit into "
          + "an index.", example: ["lookups"]),
      .key(
        "delete", \.sink.delete, .choice(called: "policy"),
        "What happens to the current row of a deleted record."),
      .key(
        "contract", \.sink.contract, .choice(),
        "What happens if a schema has fields that the tables lack."),
      .key(
        "statement_timeout", \.sink.connection.statementTimeout,
        .duration(in: .seconds(1)...hour * 24),
        "Time after which the server cancels a statement.", example: "30m"),
      .key(
        "lock_timeout", \.sink.connection.lockTimeout, .duration(in: .milliseconds(1)...hour),
        "How long a statement waits for a lock before it is retried.", example: "10s"),
    ]
  }

  func check(_ reader: JSONReader) {
    // Also without url: the environment may be what is wrong.
    if let mistake = PostgresConnectionConfiguration.mistake(in: self.sink.connection.url) {
      reader.report("url", mistake)
    }
  }
}

extension Kind<String> {
  fileprivate static var databaseURL: Self {
    Self(.text()) { Self.text.read($0, $1, $2) }
  }

  fileprivate static var tableName: Self {
    Self.string(.text(pattern: #"\{entity\}"#)).checked {
      $0.contains("{entity}")
        ? nil : "expected a name with {entity}, since each entity has its own table"
    }
  }
}

extension Kind<[String: PostgresType]> {
  fileprivate static var columnTypes: Self {
    Self(.map(of: .text())) { reader, name, _ in
      guard let types = reader.object(name) else { return nil }
      var columnTypes: [String: PostgresType] = [:]
      for member in types.value.members ?? [] where member.name != "//" {
        guard let text = types.string(member.name) else { continue }
        guard let type = PostgresType(named: text) else {
          let known = PostgresType.allCases.map(\.sqlName)
          types.reportUnknown(member.name, text, called: "type", known: known)
          continue
        }
        columnTypes[member.name] = type
      }
      return columnTypes
    }
  }
}

extension Kind<[String]> {
  fileprivate static var columnNames: Self {
    Self(.list(of: .text(minLength: 1), isUnique: true)) { reader, name, _ in
      guard let elements = reader.elements(name) else { return nil }
      var names: [String] = []
      for element in elements {
        switch element.value.string {
        case nil:
          reader.report(element, "expected the name of a column, found \(element.value.kind)")
        case "":
          reader.report(element, "expected the name of a column, found an empty text")
        case .some(let name) where names.contains(name):
          reader.report(element, "column '\(name)' is listed twice")
        case .some(let name): names.append(name)
        }
      }
      return names
    }
  }
}
