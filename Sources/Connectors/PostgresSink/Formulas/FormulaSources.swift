internal import Formulas
internal import Pipeline
internal import PostgresClient

/// What the tables of a schema have for formulas: the columns of each object's current table, and what
/// the org says about its fields.
struct FormulaSources {
  struct Field {
    var name: String
    /// As describe names it.
    var type: String
    var references: [String]
    var formula: String?
    var treatsBlankAsZero: Bool
    var hasOtherLabels: Bool
  }

  struct ColumnOfField {
    /// SQL name, not quoted.
    var name: String
    var type: PostgresType
    var state: ColumnStates.State
  }

  struct Object {
    /// SQL name, not quoted, of its current table.
    var table: String
    /// By name in lowercase letters.
    var fields: [String: Field] = [:]
    /// By the field's name in SOQL, in lowercase letters.
    var columns: [String: ColumnOfField] = [:]
    /// The columns with the parts of a person's name, by part.
    var nameParts: [String: ColumnOfField] = [:]
  }

  /// Nil for an object without a current table.
  private(set) var objects: [String: Object?] = [:]
  private let bookkeeping: Bookkeeping

  init(_ bookkeeping: Bookkeeping) { self.bookkeeping = bookkeeping }

  /// Reads what is known of an object, once.
  mutating func read(_ entity: String, over connection: PostgresConnection) throws(PostgresError) {
    guard self.objects[entity] == nil else { return }
    let columns = try connection.query(
      """
      SELECT t.table_name, c.column_name, c.path, a.atttypid, to_jsonb(c) ->> 'state' \
      FROM \(self.bookkeeping.qualified("_etl_table")) AS t \
      JOIN pg_catalog.pg_class AS r ON r.relname = t.table_name AND r.relkind IN ('r', 'p') \
      JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace AND n.nspname = $2 \
      LEFT JOIN (\(self.bookkeeping.qualified("_etl_column")) AS c JOIN pg_catalog.pg_attribute AS a \
      ON a.attname = c.column_name AND NOT a.attisdropped) \
      ON c.table_name = t.table_name AND a.attrelid = r.oid \
      WHERE t.kind = 'current' AND t.entity = $1 ORDER BY t.table_name, c.ordinal
      """, [entity, self.bookkeeping.schema])
    guard columns.rowCount > 0, let table = columns[0, 0] else {
      self.objects[entity] = .some(nil)
      return
    }
    var object = Object(table: table)
    object.columns["id"] = ColumnOfField(name: "id", type: .text, state: .complete)
    for row in 0..<columns.rowCount where columns[row, 0] == table {
      guard let name = columns[row, 1], let path = columns[row, 2],
        let type = columns[row, 3].flatMap({ UInt32($0) }).flatMap({ PostgresType(oid: $0) })
      else { continue }
      let state = columns[row, 4].flatMap { ColumnStates.State(rawValue: $0) } ?? .complete
      let column = ColumnOfField(name: name, type: type, state: state)
      let parts = path.split(separator: ".").map(String.init)
      // A column that replaces another of its field comes later.
      if parts.count == 2 {
        if parts[0] == "Name" { object.nameParts[parts[1]] = column }
        let name = FlattenNaming.sobject.name(of: parts[1], in: parts[0])
        object.columns[name.lowercased()] = column
      } else if parts.count == 1 {
        object.columns[path.lowercased()] = column
      }
    }
    try self.readFields(of: entity, into: &object, over: connection)
    self.objects[entity] = object
  }

  private func readFields(
    of entity: String, into object: inout Object, over connection: PostgresConnection
  ) throws(PostgresError) {
    let fields = try connection.query(
      """
      SELECT f.field, f.type, u.place, u.name, f.formula, to_jsonb(f) ->> 'blank_as_zero', \
      EXISTS (SELECT FROM \(self.bookkeeping.qualified(FieldTables.choices)) AS p \
      WHERE p.entity = f.entity AND p.field = f.field AND p.label <> p.value) \
      FROM \(self.bookkeeping.qualified(FieldTables.fields)) AS f \
      LEFT JOIN LATERAL unnest(f.reference_to) WITH ORDINALITY AS u (name, place) ON true \
      WHERE f.entity = $1 ORDER BY f.field, u.place
      """, [entity])
    for row in 0..<fields.rowCount {
      guard let name = fields[row, 0], let type = fields[row, 1] else { continue }
      let key = name.lowercased()
      if let reference = fields[row, 3], object.fields[key] != nil {
        object.fields[key]?.references.append(reference)
        continue
      }
      object.fields[key] = Field(
        name: name, type: type, references: fields[row, 3].map { [$0] } ?? [],
        formula: fields[row, 4], treatsBlankAsZero: fields[row, 5] == "true",
        hasOtherLabels: fields[row, 6] == "t")
    }
  }
}
