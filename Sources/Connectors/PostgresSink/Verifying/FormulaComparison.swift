internal import Foundation
internal import JSON
package import Pipeline
package import PostgresClient

/// Compares the view of an object's formulas with the values that the org computes.
///
/// Judges records that have not changed since the horizon, here or there. Values never leave the
/// database.
package final class FormulaComparison {
  private struct Field {
    var name: String
    /// For SQL text.
    var column: String
    var type: PostgresType
    var scale: Int?
  }

  private let connection: PostgresConnection
  private let compared: [Field]
  private let leftOut: [CopyFindings.LeftOut]
  private let table: TableDefinition
  /// For SQL text.
  private let view: String
  private let horizon: Int64
  private var recordCount = 0
  private var differing: [String: [String]] = [:]

  /// Nil for an object without formulas.
  package init?(
    of entity: String, _ catalog: TableCatalog, horizon: Int64,
    over connection: PostgresConnection
  ) throws(PostgresError) {
    guard let table = try catalog.currentTable(of: entity, over: connection) else { return nil }
    self.connection = connection
    self.table = table
    self.horizon = horizon
    let bookkeeping = catalog.bookkeeping
    self.view = bookkeeping.qualified(ReportingViews.formulasName(table.name))
    let exists = try connection.query(
      """
      SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($2) \
      AND attname = 'formula_state' AND NOT attisdropped \
      AND has_table_privilege(attrelid, 'SELECT')), \
      to_regclass($1) IS NOT NULL, has_table_privilege(to_regclass($1), 'SELECT'), current_user
      """, [self.view, bookkeeping.qualified(FieldTables.fields)])
    guard exists[0, 0] == "t" else { return nil }
    let remedy =
      exists[0, 1] != "t"
      ? "view \(self.view) is missing; the next run makes it"
      : exists[0, 2] == "t"
        ? nil
        : "the role may not read view \(self.view); as its owner, run GRANT SELECT ON "
          + "\(self.view) TO \(SQLIdentifier.quoted(exists[0, 3] ?? ""))"
    let found = try connection.query(
      """
      SELECT f.field, f.formula_state, f.scale, a.attname, a.atttypid \
      FROM \(bookkeeping.qualified(FieldTables.fields)) AS f \
      LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = to_regclass($2) AND a.attnum > 0 \
      AND NOT a.attisdropped AND a.attname = ANY ($3::text[]) \
      AND lower(a.attname) = lower(($4::jsonb) ->> f.field) \
      WHERE f.entity = $1 AND f.formula IS NOT NULL ORDER BY f.field
      """, try Self.parameters(entity, self.view, catalog, over: connection))
    var (compared, leftOut): ([Field], [CopyFindings.LeftOut]) = ([], [])
    for row in 0..<found.rowCount {
      guard let name = found[row, 0] else { continue }
      if let remedy, found[row, 1]?.hasPrefix(ReportingViews.translated) == true {
        leftOut.append(CopyFindings.LeftOut(field: name, reason: remedy))
        continue
      }
      guard found[row, 1] == ReportingViews.translated, let column = found[row, 3],
        let type = found[row, 4].flatMap({ UInt32($0) }).flatMap({ PostgresType(oid: $0) })
      else {
        let state = found[row, 1] ?? "not translated: the next run decides about it"
        leftOut.append(CopyFindings.LeftOut(field: name, reason: state))
        continue
      }
      compared.append(
        Field(
          name: name, column: SQLIdentifier.quoted(column), type: type,
          scale: found[row, 2].flatMap { Int($0) }))
    }
    guard found.rowCount > 0 else { return nil }
    (self.compared, self.leftOut) = (compared, leftOut)
  }

  /// The names of columns by field.
  private static func parameters(
    _ entity: String, _ view: String, _ catalog: TableCatalog, over connection: PostgresConnection
  ) throws(PostgresError) -> [String?] {
    let fields = try connection.query(
      """
      SELECT field FROM \(catalog.bookkeeping.qualified(FieldTables.fields)) \
      WHERE entity = $1 AND formula IS NOT NULL
      """, [entity])
    let names = (0..<fields.rowCount).compactMap { fields[$0, 0] }
    let columns = names.map { SQLIdentifier.name($0, catalog.configuration.columns) }
    let members = zip(names, columns).map { JSONMember($0, .string($1)) }
    return [
      entity, view, SQLArray.literal(columns), JSONValue(.object(members)).text(),
    ]
  }

  package var fields: [String] { self.compared.map(\.name) }

  /// SQL: the time of the row's last change, here or there.
  private var newest: String {
    self.table.hasReadColumns
      ? "greatest(t._commit_timestamp, t._system_modstamp)" : "t._commit_timestamp"
  }

  private var isJudged: String {
    let isPartial =
      self.table.hasReadColumns ? "t._partial AND t._read_at IS NULL" : "t._partial"
    return """
      t._deleted_at IS NULL AND NOT t._stale AND t._stale_fields IS NULL AND NOT (\(isPartial)) \
      AND coalesce(\(self.newest) < to_timestamp(\(self.horizon) / 1000.0), true)
      """
  }

  package func sample(_ count: Int) throws(PostgresError) -> [String] {
    let found = try self.connection.query(
      """
      SELECT t.id FROM \(self.table.qualifiedName) AS t WHERE \(self.isJudged) \
      ORDER BY random() LIMIT \(count)
      """)
    return (0..<found.rowCount).compactMap { found[$0, 0] }
  }

  package func compare(_ records: [FormulaRecord]) throws(PostgresError) {
    let rows = records.map { record -> JSONValue in
      let members = self.compared.compactMap { field in
        record.values[field.name].flatMap { value in
          Self.isReadable(value, field.type) ? JSONMember(field.name, .string(value)) : nil
        }
      }
      return [
        "id": .string(record.id), "stamp": .string(record.stamp),
        "v": JSONValue(.object(members)),
      ]
    }
    let differences = self.compared.map { field in
      let name = SQLIdentifier.literal(field.name)
      return "(\(name), r.v ? \(name) AND (\(Self.differs(field, "r.v ->> \(name)"))))"
    }
    let tolerance = "interval '\(ReadMerge.clockTolerance) ms'"
    let found = try self.connection.query(
      """
      WITH j AS MATERIALIZED (SELECT r.id, r.v FROM jsonb_to_recordset($1::jsonb) \
      AS r (id text, stamp timestamptz, v jsonb) \
      JOIN \(self.table.qualifiedName) AS t ON t.id = r.id WHERE \(self.isJudged) \
      AND coalesce(r.stamp < to_timestamp(\(self.horizon) / 1000.0) \
      AND r.stamp <= \(self.newest) + \(tolerance), false)) \
      SELECT NULL, id FROM j UNION ALL SELECT n.field, r.id FROM j AS r \
      JOIN \(self.view) AS w ON w.id = r.id \
      CROSS JOIN LATERAL (VALUES \(differences.joined(separator: ", "))) AS n (field, differs) \
      WHERE n.differs ORDER BY 2
      """, [JSONValue.array(rows).text()])
    for row in 0..<found.rowCount {
      guard let id = found[row, 1] else { continue }
      if let field = found[row, 0] {
        self.differing[field, default: []].append(id)
      } else {
        self.recordCount += 1
      }
    }
  }

  private static func isReadable(_ value: String, _ type: PostgresType) -> Bool {
    type != .numeric || value.isEmpty || Double(value)?.isFinite == true
  }

  /// SQL: whether the view has another value than the text of REST.
  private static func differs(_ field: Field, _ text: String) -> String {
    let (column, text) = ("w.\(field.column)", "nullif(\(text), '')")
    switch field.type {
    case .numeric:
      // REST has 15 digits for certain, and rounded ones perhaps.
      let number = "(\(text))::numeric"
      let rounded = field.scale.map {
        " AND round(\(column), \($0)) <> round(\(number), \($0))"
      }
      return """
        (\(column) IS NULL) <> (\(text) IS NULL) OR coalesce(abs(\(column) - \(number)) \
        > 1e-12 * greatest(abs(\(column)), 1)\(rounded ?? ""), false)
        """
    case .date: return "to_char(\(column), 'YYYY-MM-DD') IS DISTINCT FROM \(text)"
    case .time: return "to_char(\(column), 'HH24:MI:SS.MS') IS DISTINCT FROM left(\(text), 12)"
    case .timestamptz:
      return "to_char(\(column) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') "
        + "IS DISTINCT FROM left(\(text), 19)"
    default: return "nullif(\(column)::text, '') IS DISTINCT FROM \(text)"
    }
  }

  package func findings(idLimit: Int) -> FormulaFindings {
    FormulaFindings(
      compared: self.fields, recordCount: self.recordCount,
      fields: self.differing.sorted { $0.key < $1.key }.map { field, ids in
        CopyFindings.Field(
          field: field, count: ids.count, records: Array(ids.prefix(idLimit)))
      }, leftOut: self.leftOut)
  }
}
