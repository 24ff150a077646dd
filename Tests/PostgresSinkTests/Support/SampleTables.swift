import PostgresClient
import PostgresSink
import TestSupport

/// The tables of an imaginary entity `Thing`, in a schema of a database of their own.
struct SampleTables {
  var history: TableDefinition
  var current: TableDefinition
  let connection: PostgresConnection
  let database: String

  static let schema = "sales force"
  static let columns = [
    TableColumn(name: "name", type: .text, path: "Name"),
    TableColumn(name: "order", type: .integer, path: "Order"),
    TableColumn(name: "description", type: .text, path: "Description"),
    TableColumn(name: "tags", type: .textArray, path: "Tags"),
    TableColumn(name: "amount \"net\"", type: .doublePrecision, path: "Amount"),
  ]

  /// Names that statements of the sink use themselves, and that columns may have, too.
  static let aliases = [
    "n", "t", "s", "e", "f", "r", "w", "h", "d", "l", "m", "x", "u", "a", "b", "c", "i", "k", "v",
    "key", "names", "place", "place_alike", "part", "fill", "first", "whole", "is_whole", "is_fill",
    "is_contained", "reads", "fills", "starts", "placed", "snapshots", "at", "epoch", "ordinal",
    "listed", "is_gap", "is_image", "read_at", "record_id", "kind", "entity", "event_id", "stamp",
    "field", "image", "old_value", "new_value", "changed_at", "changed_by", "value", "waiting",
    "missing", "now", "count", "state", "valid_from", "valid_to", "begun_at", "is_unseen", "rows",
  ]
  static let allWidth = Self.columns.count + Self.aliases.count

  /// - Parameters:
  ///   - width: number of columns; those beyond the sample's own are text, the first of them
  ///     with the names of `aliases`.
  ///   - takesReads: with the columns of records that were read.
  init(width: Int = 5, takesReads: Bool = false) async throws {
    let cluster = try await PostgresCluster.shared
    self.database = try cluster.makeDatabase()
    self.connection = try PostgresConnection(
      PostgresConnectionConfiguration(url: cluster.url(database: self.database)))
    var columns = Self.columns
    for index in columns.count..<max(width, columns.count) {
      let more = index - Self.columns.count
      let name = more < Self.aliases.count ? Self.aliases[more] : "f\(index)"
      columns.append(TableColumn(name: name, type: .text, path: "F\(index)"))
    }
    self.history = TableDefinition(
      kind: .history, entity: "Thing", schema: Self.schema, name: "thing_history",
      dataColumns: columns)
    self.current = TableDefinition(
      kind: .current, entity: "Thing", schema: Self.schema, name: "thing", dataColumns: columns)
    self.history.hasReadColumns = takesReads
    self.current.hasReadColumns = takesReads
    let configuration = PostgresSinkConfiguration(
      connection: PostgresConnectionConfiguration(url: cluster.url(database: self.database)),
      schema: Self.schema)
    try TableCatalog(configuration).prepare(over: self.connection)
    try self.connection.execute(
      """
      \(Self.create(self.history)); \(Self.create(self.current)); \
      CREATE INDEX ON \(self.history.qualifiedName) (_record_id, _event_id)
      """)
  }

  private static func create(_ table: TableDefinition) -> String {
    let columns =
      (table.hasReadColumns
      ? TableDefinition.allFixedColumns(table.kind) : TableDefinition.fixedColumns(table.kind))
      .map { "\($0.name) \($0.sqlType) \($0.constraint)" }
      + table.dataColumns.map { "\($0.quotedName) \($0.type.sqlName)" }
    return "CREATE TABLE \(table.qualifiedName) (\(columns.joined(separator: ", ")))"
  }

  func rows(_ sql: String) throws -> [String] {
    let result = try self.connection.query(sql)
    return (0..<result.rowCount).map { row in
      (0..<result.columnCount).map { result[row, $0] ?? "-" }.joined(separator: "|")
    }
  }

  /// The current table without what differs from run to run, by ID.
  func currentRows() throws -> [String] {
    try self.rows(
      """
      SELECT id, _epoch, _ordinal, _event_id, _change_type, _commit_user, \
      extract(epoch FROM _commit_timestamp)::bigint, extract(epoch FROM _deleted_at)::bigint, \
      _stale, _partial, _stale_fields, \
      \(self.current.dataColumns.map(\.quotedName).joined(separator: ", ")) \
      FROM \(self.current.qualifiedName) ORDER BY id
      """)
  }

  func tombstones() throws -> [String] {
    try self.rows(
      """
      SELECT id, epoch, ordinal, extract(epoch FROM commit_timestamp)::bigint \
      FROM \(SQLIdentifier.quoted(Self.schema))._etl_tombstone ORDER BY id
      """)
  }
}
