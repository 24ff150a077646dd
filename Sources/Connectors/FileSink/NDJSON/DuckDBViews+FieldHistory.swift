internal import Pipeline

/// Changes from before the first event of a record, from the org's field history (`ChangesView` has
/// the same for PostgreSQL).
extension DuckDBViews {
  /// How the values of a field are written in the field history.
  private enum Kind: String {
    case number, reference, other
  }

  /// The columns of the field history of an object; nil if no view of it has all that is needed.
  static func fieldHistory(of object: String, among viewed: [EntityColumns]) -> EntityColumns? {
    let entity = FieldHistory.entity(of: object)
    let needed = ["_kind", "_change_type", "_record_id", FieldHistory.parent(object)]
    return viewed.first { columns in
      guard columns.entity == entity, columns.entries.contains(where: \.isOfReads) else {
        return false
      }
      let types = Dictionary(
        Self.types(of: columns).types.map { ($0.name, $0.type) }, uniquingKeysWith: { $1 })
      return (needed + FieldHistory.needed).allSatisfy {
        types[$0] == ($0 == "CreatedDate" ? "TIMESTAMPTZ" : "VARCHAR")
      }
    }
  }

  /// SQL after the CTE `events`: the CTE `earlier`, empty without a field history.
  ///
  /// A change that events have is left out. The first event of a record has everything after it. The
  /// clocks of both sources differ, so a change within some seconds of an event that lists its field
  /// is the event's. So is one at the event's `LastModifiedDate`, which a long transaction sets long
  /// before its commit. What a record's creation is known from has nothing before it.
  ///
  /// - Parameter fields: the columns of the object's records.
  static func earlierChanges(
    of columns: EntityColumns, _ fields: [(name: String, type: String)], in history: EntityColumns?
  ) -> String {
    guard let history else { return "" }
    let parent = "p.\(Self.identifier(FieldHistory.parent(columns.entity)))"
    let hasType = history.entries.contains { $0.name == FieldHistory.dataType }
    let isOfID = hasType ? " OR p.\(FieldHistory.dataType) = 'EntityId'" : ""
    let names = Self.namesInHistory(of: columns, fields)
    return """
      ,
      field_names AS (
        SELECT * FROM (VALUES
          \(names.joined(separator: ",\n    "))
        ) AS m (name, field, kind)
      ),
      -- Changes from before the first event. Long texts are listed without their values.
      earlier AS (
        SELECT \(parent) AS id, CASE WHEN p.Field <> 'created' THEN coalesce(m.field, p.Field) END AS field,
          \(Self.historyText("p.OldValue")) AS old,
          \(Self.historyText("p.NewValue")) AS value,
          p.CreatedDate AS time, p.CreatedById AS user_id,
          if(p.Field = 'created', 'CREATE', 'UPDATE') AS type, NULL::VARCHAR AS transaction_key,
          CASE WHEN p.Field <> 'created' THEN coalesce(p.OldValue, p.NewValue) IS NOT NULL END AS is_known,
          is_known AS old_is_known, 'field history' AS source
        FROM (
          SELECT * FROM \(Self.identifier(history.entity))
          WHERE _kind = 'snapshot' AND _change_type = 'SNAPSHOT'
          QUALIFY row_number() OVER (PARTITION BY _record_id
            ORDER BY _system_modstamp DESC, _read_at DESC) = 1
        ) AS p LEFT JOIN field_names AS m ON m.name = p.Field
        WHERE \(parent) IS NOT NULL AND (m.kind IS DISTINCT FROM '\(Kind.reference)'\(isOfID))
          AND NOT EXISTS (FROM events AS e WHERE e.id = \(parent) AND (
            e.time < p.CreatedDate - INTERVAL 5 SECONDS OR e.type IN ('CREATE', 'GAP_CREATE')
            OR (abs(epoch_ms(e.time) - epoch_ms(p.CreatedDate)) <= 5000
              OR abs(epoch_ms(e.modified) - epoch_ms(p.CreatedDate)) <= 5000)
            AND (e.type IS DISTINCT FROM 'UPDATE'
              OR list_contains(e.fields, coalesce(m.field, p.Field)))))
      )
      """
  }

  /// SQL: a value in the form of the values of events. Numbers have 15 digits.
  private static func historyText(_ value: String) -> String {
    let number = "format('{:.15g}', try_cast(\(value) AS DOUBLE))"
    return """
      CASE WHEN m.kind = '\(Kind.number)'
            AND regexp_full_match(\(value), '-?[0-9]{1,15}([.][0-9]{1,15})?([eE][+-]?[0-9])?')
          THEN regexp_replace(try_cast(\(number) AS DECIMAL(38, 16))::VARCHAR, '[.]?0*$', '')
          ELSE regexp_replace(\(value),
            '^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12})[+]0000$', '\\1Z') END
      """
  }

  /// SQL: the names that fields have in a field history, each with its column and `Kind`.
  private static func namesInHistory(
    of columns: EntityColumns, _ fields: [(name: String, type: String)]
  ) -> [String] {
    let references = Set(
      columns.entries.filter { $0.salesforceType == "ForeignKey:EntityId" }.map(\.name))
    let numbers = ["INTEGER", "BIGINT", "FLOAT", "DOUBLE"]
    var names: [String: (column: String, kind: Kind)] = [:]
    for (name, type) in fields {
      let isReference = references.contains(name)
      let isNumber = numbers.contains(type) || type.hasPrefix("DECIMAL")
      let kind: Kind = isReference ? .reference : isNumber ? .number : .other
      names[Self.nameInHistory(of: name)] = (name, kind)
      // A change of the owner is one of `Owner`.
      if isReference, name.hasSuffix("Id"), names[String(name.dropLast(2))] == nil {
        names[String(name.dropLast(2))] = (name, kind)
      }
    }
    return names.sorted { $0.key < $1.key }.map { name, value in
      let texts = [name, value.column, value.kind.rawValue].map(Self.literal)
      return "(\(texts.joined(separator: ", ")))"
    }
  }

  /// The name of a column's field: `BillingCity` for the part `BillingAddress_City` of an address.
  private static func nameInHistory(of column: String) -> String {
    let parts = column.split(separator: "_", omittingEmptySubsequences: false)
    guard let part = parts.last, parts.count > 1, !["c", "s", ""].contains(part) else {
      return column
    }
    let parent = column.dropLast(part.utf8.count + 1)
    return FlattenNaming.sobject.name(of: String(part), in: String(parent))
  }
}
