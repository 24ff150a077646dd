internal import PostgresClient

/// A column that holds a field of the schema.
package struct TableColumn: Sendable, Equatable {
  /// SQL name, not quoted.
  package var name: String
  package var type: PostgresType
  /// Where the values come from: `BillingAddress.City`.
  package var path: String
  /// `Data:Currency` and the like; nil when the schema does not say.
  package var salesforceType: String?
  /// Holds a record that was not flattened: an update has the parts that it changes, and the other
  /// parts of the current row stay.
  package var isCompound: Bool

  package init(
    name: String, type: PostgresType, path: String, salesforceType: String? = nil,
    isCompound: Bool = false
  ) {
    self.name = name
    self.type = type
    self.path = path
    self.salesforceType = salesforceType
    self.isCompound = isCompound
  }

  package var typeOID: UInt32 { self.type.oid }
  /// For SQL text.
  package var quotedName: String { SQLIdentifier.quoted(self.name) }
}

/// A table of the sink as it is in the database.
package struct TableDefinition: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable { case history, current }

  package var kind: Kind
  /// API name of the object or event.
  package var entity: String
  /// SQL names, not quoted.
  package var schema: String
  package var name: String
  /// In the order of `RowBuffer.cells`; the same for both tables of an entity.
  package var dataColumns: [TableColumn]
  /// `pg_type.oid`, by name, of data columns that have another type in this table: of fields that no
  /// schema has any more, or the tables would have been refused.
  package var otherTypes: [String: UInt32]

  package init(
    kind: Kind, entity: String, schema: String, name: String, dataColumns: [TableColumn],
    otherTypes: [String: UInt32] = [:]
  ) {
    self.otherTypes = otherTypes
    self.kind = kind
    self.entity = entity
    self.schema = schema
    self.name = name
    self.dataColumns = dataColumns
  }

  /// For SQL text.
  package var qualifiedName: String {
    SQLIdentifier.quoted(self.schema) + "." + SQLIdentifier.quoted(self.name)
  }
}

extension TableDefinition {
  /// A column that every table of a kind has.
  package struct FixedColumn: Sendable, Equatable {
    package var name: String
    package var sqlType: String
    /// `not null default now()` and the like.
    package var constraint: String = ""

    /// Stands before the fields in new tables; the others stand behind them.
    package var isKey: Bool { self.constraint == Self.key }

    static let key = "primary key"

    /// A line of `CREATE TABLE`.
    package var definition: String {
      "\(self.name) \(self.sqlType)" + (self.constraint.isEmpty ? "" : " \(self.constraint)")
    }
  }

  /// The columns beside the data columns. Of history, `Row.metadata` holds all but the last, in this
  /// order; where the table has them is another matter (tables of earlier versions have them first).
  package static func fixedColumns(_ kind: Kind) -> [FixedColumn] {
    switch kind {
    case .history: Self.historyColumns
    case .current: Self.currentColumns
    }
  }

  private static let historyColumns = [
    FixedColumn(name: "_epoch", sqlType: "integer", constraint: "not null"),
    FixedColumn(name: "_ordinal", sqlType: "bigint", constraint: "not null"),
    FixedColumn(name: "_topic", sqlType: "text"),
    FixedColumn(name: "_replay_id", sqlType: "text"),
    FixedColumn(name: "_event_id", sqlType: "text"),
    FixedColumn(name: "_schema_id", sqlType: "text"),
    FixedColumn(name: "_kind", sqlType: "text"),
    FixedColumn(name: "_entity", sqlType: "text"),
    FixedColumn(name: "_change_type", sqlType: "text"),
    FixedColumn(name: "_record_id", sqlType: "text"),
    FixedColumn(name: "_commit_timestamp", sqlType: "timestamp with time zone"),
    FixedColumn(name: "_commit_number", sqlType: "bigint"),
    FixedColumn(name: "_commit_user", sqlType: "text"),
    FixedColumn(name: "_transaction_key", sqlType: "text"),
    FixedColumn(name: "_sequence_number", sqlType: "integer"),
    FixedColumn(name: "_change_origin", sqlType: "text"),
    FixedColumn(name: "_changed_fields", sqlType: "text[]"),
    FixedColumn(name: "_nulled_fields", sqlType: "text[]"),
    FixedColumn(name: "_diff_fields", sqlType: "text[]"),
    FixedColumn(
      name: "_loaded_at", sqlType: "timestamp with time zone", constraint: "not null default now()"),
  ]

  private static let currentColumns = [
    FixedColumn(name: "id", sqlType: "text", constraint: FixedColumn.key),
    FixedColumn(name: "_epoch", sqlType: "integer", constraint: "not null"),
    FixedColumn(name: "_ordinal", sqlType: "bigint", constraint: "not null"),
    FixedColumn(name: "_event_id", sqlType: "text"),
    FixedColumn(name: "_change_type", sqlType: "text"),
    FixedColumn(name: "_commit_timestamp", sqlType: "timestamp with time zone"),
    FixedColumn(name: "_commit_user", sqlType: "text"),
    FixedColumn(name: "_deleted_at", sqlType: "timestamp with time zone"),
    FixedColumn(name: "_stale", sqlType: "boolean", constraint: "not null default false"),
    FixedColumn(name: "_partial", sqlType: "boolean", constraint: "not null default false"),
    FixedColumn(name: "_stale_fields", sqlType: "text[]"),
    FixedColumn(
      name: "_updated_at", sqlType: "timestamp with time zone", constraint: "not null default now()"
    ),
  ]
}
