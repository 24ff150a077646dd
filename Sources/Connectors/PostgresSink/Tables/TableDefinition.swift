internal import PostgresClient

/// A column that holds a field of the schema.
package struct TableColumn: Sendable, Equatable {
  /// SQL name, not quoted.
  package var name: String
  package var type: PostgresType
  /// Where the values come from: `BillingAddress.City`.
  package var path: String
  /// `Data:Currency` and the like; nil if the schema does not say.
  package var salesforceType: String?
  /// Whether the column holds a record that was not flattened. An update has only the parts that it
  /// changes; the current row keeps the others.
  package var isCompound: Bool
  /// Its place in the bookkeeping, which it keeps under another name.
  package var ordinal: Int
  /// No event has the field, so images in events keep the column's value.
  package var isOnlyRead = false

  package init(
    name: String, type: PostgresType, path: String, salesforceType: String? = nil,
    isCompound: Bool = false, ordinal: Int = 0
  ) {
    self.name = name
    self.type = type
    self.path = path
    self.salesforceType = salesforceType
    self.isCompound = isCompound
    self.ordinal = ordinal
  }

  package var typeOID: UInt32 { self.type.oid }
  /// For SQL text.
  package var quotedName: String { SQLIdentifier.quoted(self.name) }
}

/// A table of the sink as it exists in the database.
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
  /// By name, the `pg_type.oid` of data columns with another type in this table. No current schema
  /// has their fields; otherwise the tables would have been refused.
  package var otherTypes: [String: UInt32]
  /// The table has the columns of records that were read; those of earlier versions may lack them.
  package var hasReadColumns = false
  /// Some data columns cannot be read from the org, so their values come from events alone.
  package var hasUnreadColumns = false
  /// SQL names of data columns whose fields events no longer have.
  package var goneColumns: Set<String> = []

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

    /// `pg_type.oid`
    package var typeOID: UInt32 { PostgresType(rawValue: self.sqlType)?.oid ?? 0 }

    /// The column precedes the fields in new tables; the others follow them.
    package var isKey: Bool { self.constraint == Self.key }

    static let key = "primary key"

    /// A line of `CREATE TABLE`.
    package var definition: String {
      "\(self.name) \(self.sqlType)" + (self.constraint.isEmpty ? "" : " \(self.constraint)")
    }
  }

  /// The columns other than the data columns. For history, `Row.metadata` holds all but the last,
  /// in this order; their place in the table may differ (in tables of earlier versions they come
  /// first).
  package static func fixedColumns(_ kind: Kind) -> [FixedColumn] {
    switch kind {
    case .history: Self.historyColumns
    case .current: Self.currentColumns
    }
  }

  package static func allFixedColumns(_ kind: Kind) -> [FixedColumn] {
    Self.fixedColumns(kind) + Self.readColumns
  }

  /// The additional columns of records that were read. Rows of events are written without them.
  package static let readColumns = [
    // `SystemModstamp`; in a current row until the first event after the read is applied.
    FixedColumn(name: "_system_modstamp", sqlType: "timestamp with time zone"),
    FixedColumn(name: "_read_at", sqlType: "timestamp with time zone"),
  ]

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

extension TableDefinition {
  /// An SQL condition: the columns still have the types that rows were encoded for.
  ///
  /// A binary COPY does not check types: it reads the eight bytes of a `bigint` as a `timestamptz`
  /// or a `double precision`, with a different value and no error. Check this after writing rows,
  /// because their locks prevent any ALTER TABLE until the transaction ends.
  package var typeCondition: String {
    let columns =
      Self.fixedColumns(self.kind).map { ($0.name, $0.typeOID) }
      + self.dataColumns.map { ($0.name, self.otherTypes[$0.name] ?? $0.type.oid) }
    let names = SQLIdentifier.literal(SQLArray.literal(columns.map(\.0)))
    let types = SQLIdentifier.literal(SQLArray.literal(columns.map { "\($0.1)" }))
    // The types that `PostgresType(oid:)` accepts as text.
    return """
      (SELECT count(*) = \(columns.count) FROM unnest(\(names)::name[], \(types)::oid[]) AS w (name, type) \
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = \(SQLIdentifier.literal(self.qualifiedName))\
      ::regclass AND a.attname = w.name AND NOT a.attisdropped AND w.type = \
      CASE a.atttypid WHEN 1043 THEN 25 WHEN 1015 THEN 1009 ELSE a.atttypid END)
      """
  }

  /// The column has the type that rows were encoded for.
  func isExpected(_ typeOID: UInt32, of column: TableColumn) -> Bool {
    self.otherTypes[column.name].map { $0 == typeOID }
      ?? (PostgresType(oid: typeOID) == column.type)
  }
}
