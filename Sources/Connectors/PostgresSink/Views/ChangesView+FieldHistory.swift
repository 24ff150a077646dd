internal import Pipeline
internal import PostgresClient

/// The table of an object's field history (`OpportunityFieldHistory`), which the org keeps for months.
struct FieldHistoryTable: Equatable {
  /// SQL name, not quoted.
  var table: String
  /// SQL names, not quoted, by the names of fields.
  var columns: [String: String]
}

/// Changes from before the first event of a record, from the org's field history.
extension ChangesView {
  /// What the program does with the values of a field.
  private enum Kind: String {
    case number, reference, other
  }

  /// SQL after the rows of events; empty without a table of the field history.
  ///
  /// A change that events have is left out. The first event of a record has everything after it. The
  /// clocks of both sources differ, so a change within some seconds of an event that lists its field
  /// is the event's. So is one at the event's `LastModifiedDate`, which a long transaction sets long
  /// before its commit. What a record's creation is known from has nothing before it.
  var earlierChanges: String {
    guard let table = self.fieldHistory,
      let parent = table.columns[FieldHistory.parent(self.history.entity)]
    else { return "" }
    func column(_ name: String) -> String {
      "p.\(SQLIdentifier.quoted(table.columns[name] ?? name))"
    }
    let (record, created) = ("p.\(SQLIdentifier.quoted(parent))", column("CreatedDate"))
    let creator = column("CreatedById")
    let isCreation = "\(column("Field")) = 'created'"
    let (old, new) = (Self.text(column("OldValue")), Self.text(column("NewValue")))
    // Long texts are listed without their values.
    let isKnown =
      "CASE WHEN NOT (\(isCreation)) THEN num_nonnulls(\(column("OldValue")), \(column("NewValue"))) > 0 END"
    return """
       UNION ALL SELECT \(record), CASE WHEN \(isCreation) THEN NULL ELSE f.field END, \(old), \(new), \
      \(created), \(creator), \(self.userName), CASE WHEN \(isCreation) THEN 'CREATE' ELSE 'UPDATE' END, \
      NULL::text, \(isKnown), \(isKnown), 'field history' \
      FROM \(self.bookkeeping.qualified(table.table)) AS p \
      LEFT JOIN (VALUES \(self.fieldNames)) AS m (name, field, kind) ON m.name = \(column("Field")) \
      CROSS JOIN LATERAL (SELECT coalesce(m.field, \(column("Field"))) AS field) AS f\
      \(self.userJoin(creator)) WHERE \(record) IS NOT NULL AND \(self.isOfID(table)) \
      AND NOT EXISTS (SELECT FROM \(self.name) AS _etl_p WHERE _etl_p._record_id = \(record) \
      AND _etl_p._kind IN ('change', 'gap') \
      AND (_etl_p._commit_timestamp < \(created) - \(Self.tolerance) \
      OR _etl_p._change_type IN ('CREATE', 'GAP_CREATE') OR (\(self.isNear(created))) \
      AND (_etl_p._change_type IS DISTINCT FROM 'UPDATE' \
      OR \(self.contains("_changed_fields", "_etl_p")) IS TRUE \
      OR \(self.contains("_nulled_fields", "_etl_p")) IS TRUE)))
      """
  }

  /// SQL: whether an event is of about that time.
  private func isNear(_ created: String) -> String {
    let modified = self.history.dataColumns.first {
      $0.path == "LastModifiedDate" && $0.type == .timestamptz
    }
    let times =
      ["_etl_p._commit_timestamp"] + (modified.map { ["_etl_p.\($0.quotedName)"] } ?? [])
    return times.map {
      "\($0) BETWEEN \(created) - \(Self.tolerance) AND \(created) + \(Self.tolerance)"
    }.joined(separator: " OR ")
  }

  /// SQL: whether a row has values, and not the names of the records that a reference means.
  private func isOfID(_ table: FieldHistoryTable) -> String {
    let isReference = "m.kind IS DISTINCT FROM 'reference'"
    guard let type = table.columns[FieldHistory.dataType] else { return isReference }
    return "(\(isReference) OR p.\(SQLIdentifier.quoted(type)) = 'EntityId')"
  }

  private static let numbers: [PostgresType] = [
    .numeric, .doublePrecision, .real, .bigint, .integer, .smallint,
  ]

  /// SQL: the names that fields have in a field history, with their columns.
  private var fieldNames: String {
    var names: [String: (column: String, kind: Kind)] = [:]
    for column in self.history.dataColumns {
      let parts = column.path.split(separator: ".", maxSplits: 1).map(String.init)
      let isReference = column.salesforceType == "ForeignKey:EntityId"
      let name =
        parts.count == 2 ? FlattenNaming.sobject.name(of: parts[1], in: parts[0]) : column.path
      let isNumber = Self.numbers.contains(column.type)
      let kind: Kind = isReference ? .reference : isNumber ? .number : .other
      names[name] = (column.name, kind)
      // A change of the owner is one of `Owner`.
      if isReference, name.hasSuffix("Id"), names[String(name.dropLast(2))] == nil {
        names[String(name.dropLast(2))] = (column.name, kind)
      }
    }
    let rows = names.sorted { $0.key < $1.key }.map { name, value in
      let texts = [name, value.column, value.kind.rawValue].map { SQLIdentifier.literal($0) }
      return "(\(texts.joined(separator: ", ")))"
    }
    return rows.isEmpty ? "(NULL::text, NULL::text, NULL::text)" : rows.joined(separator: ", ")
  }

  /// SQL: a value in the form of the values of events.
  private static func text(_ value: String) -> String {
    """
    CASE WHEN m.kind = 'number' \
    AND \(value) ~ '^-?[0-9]{1,15}([.][0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$' \
    THEN \(value)::float8::numeric::text ELSE regexp_replace(\(value), \
    '^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12})[+]0000$', '\\1Z') END
    """
  }
}
