package import Pipeline
package import PostgresClient

/// The columns for the fields of a layout, with their types, regardless of existing tables.
///
/// Depends only on layout and configuration.
package struct TableMapping: Sendable {
  package struct Field: Sendable {
    /// SQL name of at most 63 bytes.
    package var name: String
    /// The configured type, or the one that follows from the schema.
    package var type: PostgresType
    /// The type that earlier versions gave such a column. Existing columns keep it.
    package var earlierType: PostgresType?
    /// Dotted: `BillingAddress.City`.
    package var path: String
    package var salesforceType: String?
    /// The ID of a custom field; nil if the schema does not say.
    package var fieldID: String?
    package var content: Column.Content
    /// New tables get an index on it.
    package var isIndexed = false
    /// No event of the schema has it; see `Column`.
    package var isOnlyRead = false

    /// The types of columns that may belong to the field, the best first.
    var acceptedTypes: [PostgresType] { [self.type] + (self.earlierType.map { [$0] } ?? []) }
  }

  package let entity: String
  package let schemaID: String
  package let family: RecordLayout.Family
  /// In the order of the layout's columns.
  package let fields: [Field]

  /// The mapping of an entity without a layout.
  init(entity: String, family: RecordLayout.Family) {
    self.entity = entity
    self.schemaID = ""
    self.family = family
    self.fields = []
  }

  /// - Throws: `PostgresError` (configuration) for duplicate and reserved names; the message names
  ///   both paths.
  package init(
    _ layout: RecordLayout, _ configuration: PostgresSinkConfiguration
  ) throws(PostgresError) {
    self.entity = layout.entity
    // In the form of the journal, so that it is recognized later.
    self.schemaID = PostgresText.storable(layout.schemaID)
    self.family = layout.family
    var fields: [Field] = []
    var paths = Self.reservedNames(layout.family)
    for column in layout.columns where !column.isMetadata {
      let path = column.path.joined(separator: ".")
      let name = SQLIdentifier.name(column.name, configuration.columns)
      guard !name.isEmpty, !name.unicodeScalars.contains("\0") else {
        throw PostgresError(
          .configuration,
          "postgres: \(layout.entity).\(path) has a name that a column cannot have; rename it "
            + "in a stage")
      }
      if let other = paths.updateValue(path, forKey: name) {
        throw PostgresError(
          .configuration,
          "postgres: \(other) and field \(path) of \(layout.entity) (schema "
            + "\(layout.schemaID)) would both become column \"\(name)\"; rename or drop one of "
            + "them in a stage")
      }
      let wanted = PostgresType(column)
      let configured = Self.configuredType(of: column, layout.entity, configuration)
      let type = configured ?? wanted
      guard CellEncoding.operation(from: column, to: type) != nil else {
        throw PostgresError(
          .configuration,
          "postgres: column_types: \(layout.entity).\(path), which is \(wanted.sqlName) by "
            + "default, cannot be stored as \(type.sqlName)")
      }
      fields.append(
        Field(
          name: name, type: type,
          earlierType: configured == nil ? PostgresType.earlier(column, type) : nil, path: path,
          salesforceType: column.salesforceType, fieldID: column.fieldID,
          content: column.content,
          isIndexed: configuration.isIndexed(
            [column.name, path, name], column.salesforceType, of: layout.entity),
          isOnlyRead: column.isOnlyRead))
    }
    let ids = Dictionary(fields.compactMap(\.fieldID).map { ($0, 1) }, uniquingKeysWith: +)
    // An ID that two fields have identifies neither.
    for index in fields.indices where fields[index].fieldID.flatMap({ ids[$0] }) ?? 0 > 1 {
      fields[index].fieldID = nil
    }
    self.fields = fields
  }

  /// The tables' own columns. Records in change events have no field called Id, so `id` is usually
  /// free. Platform events may have one, but they have no current table.
  private static func reservedNames(_ family: RecordLayout.Family) -> [String: String] {
    var names: [String: String] = [:]
    for kind in TableDefinition.Kind.allCases
    where family == .changeEvent || kind == .history {
      for column in TableDefinition.allFixedColumns(kind) {
        names[column.name] = "the \(kind.rawValue) table's own column \(column.name)"
      }
    }
    return names
  }

  private static func configuredType(
    of column: Column, _ entity: String, _ configuration: PostgresSinkConfiguration
  ) -> PostgresType? {
    let types = configuration.columnTypes
    guard !types.isEmpty else { return nil }
    return self.typeKeys(of: column, entity).lazy.compactMap { types[$0] }.first
  }

  /// The keys of `column_types` for the column; the first one present counts.
  static func typeKeys(of column: Column, _ entity: String) -> [String] {
    let path = column.path.joined(separator: ".")
    return ["\(entity).\(column.name)", "\(entity).\(path)", column.name, path]
  }

  /// - Throws: `PostgresError` (configuration) when the template gives no usable name.
  package static func tableName(
    of entity: String, _ kind: TableDefinition.Kind, _ configuration: PostgresSinkConfiguration
  ) throws(PostgresError) -> String {
    let template = configuration.tables.template(kind)
    let parts = template.split(separator: "{entity}", omittingEmptySubsequences: false)
    let name = SQLIdentifier.shortened(
      parts.joined(separator: SQLIdentifier.name(entity, configuration.columns)))
    let isTaken =
      name.hasPrefix("_etl_")
      || [ReportingViews.freshnessName, ReportingViews.columnsName].contains(name)
      || FieldTables.names.contains(name)
    guard !name.isEmpty, !isTaken, !name.unicodeScalars.contains("\0") else {
      throw PostgresError(
        .configuration,
        "postgres: tables.\(kind.rawValue): '\(template)' gives entity \(entity) the table "
          + "\"\(name)\", a name that is empty or reserved; choose another one")
    }
    return name
  }
}

extension PostgresType {
  /// The default type of a column (LinesAndColumns.md#values).
  init(_ column: Column) {
    switch column.content {
    case .constant: self = .text
    case .record: self = .jsonb
    case .slot(_, let type): self.init(type, salesforceType: column.salesforceType)
    }
  }

  /// Percent and number fields were `double precision` before they became `numeric`, in which
  /// `round(x, 2)` works and sums are those of the decimals that users entered.
  fileprivate static func earlier(_ column: Column, _ type: PostgresType) -> PostgresType? {
    guard type == .numeric, case .slot(_, .double) = column.content else { return nil }
    return .doublePrecision
  }

  /// Salesforce types with decimal values that are sent as doubles. The parts of geolocations have
  /// no type and remain doubles.
  private static let decimalTypes: Set<Substring> = ["Currency", "Double", "Percent"]

  init(_ type: ColumnType, salesforceType: String?) {
    let meaning = salesforceType?.split(separator: ":").dropFirst().first
    switch type {
    case .boolean: self = .boolean
    case .int32: self = .integer
    case .int64: self = .bigint
    case .float: self = .real
    case .double:
      self = meaning.map(Self.decimalTypes.contains) == true ? .numeric : .doublePrecision
    case .string: self = meaning == "MultiEnum" ? .textArray : .text
    case .enumeration: self = .text
    case .bytes: self = .bytea
    case .decimal: self = .numeric
    case .uuid: self = .uuid
    case .date: self = .date
    case .time: self = .time
    case .timestamp(_, let isLocal): self = isLocal ? .timestamp : .timestamptz
    case .duration: self = .interval
    case .stringList, .fieldSet: self = .textArray
    case .json: self = .jsonb
    }
  }
}
