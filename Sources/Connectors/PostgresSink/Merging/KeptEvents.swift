internal import PostgresClient

/// The events of an object during a pass over its records, for sinks without a history. Events that
/// the read of a record does not contain are applied to it again.
///
/// The table has the columns of a history; its name is `_etl_kept_` and the name of the current
/// table. Every read of the pass contains the events from before it.
final class KeptEvents {
  let definition: TableDefinition
  private let history: HistoryTable
  private let refold: Refold

  init(
    _ current: TableDefinition, delete: PostgresSinkConfiguration.DeletePolicy,
    visibilityWait: Int64
  ) {
    var definition = current
    definition.kind = .history
    definition.name = Self.name(current.name)
    self.definition = definition
    self.history = HistoryTable(definition)
    self.refold = Refold(
      history: definition, current: current, delete: delete, visibilityWait: visibilityWait)
  }

  /// SQL name, not quoted, for the events of a current table.
  static func name(_ table: String) -> String { SQLIdentifier.shortened("_etl_kept_\(table)") }

  /// Creates the empty table in the open transaction.
  func create(over connection: PostgresConnection) throws(PostgresError) {
    let columns =
      TableDefinition.allFixedColumns(.history).map(\.definition)
      + self.definition.dataColumns.map { "\($0.quotedName) \($0.type.sqlName)" }
    let name = self.definition.qualifiedName
    guard try connection.dropUnlessRead(name) else {
      guard try self.isReady(over: connection) else {
        throw PostgresError(.retry, "postgres: \(name) has other columns and is being read")
      }
      return
    }
    try connection.execute(
      """
      CREATE TABLE \(name) (\(columns.joined(separator: ", "))); \
      CREATE INDEX ON \(name) (_record_id, _event_id); \
      COMMENT ON TABLE \(name) IS 'Events since the current snapshot began'
      """)
  }

  /// Whether the table exists; adds columns that it lacks, and takes no lock if it has all.
  func isReady(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let name = self.definition.qualifiedName
    guard try connection.query("SELECT to_regclass($1) IS NOT NULL", [name])[0, 0] == "t" else {
      return false
    }
    let isSame = "SELECT \(self.definition.typeCondition)"
    if try connection.query(isSame)[0, 0] == "t" { return true }
    let columns = self.definition.dataColumns.map {
      "ADD COLUMN IF NOT EXISTS \($0.quotedName) \($0.type.sqlName)"
    }
    try connection.execute("ALTER TABLE \(name) \(columns.joined(separator: ", "))")
    return try connection.query(isSame)[0, 0] == "t"
  }

  func drop(over connection: PostgresConnection) throws(PostgresError) {
    _ = try connection.dropUnlessRead(self.definition.qualifiedName)
  }

  func keep(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws {
    try self.history.send(buffer, rows: rows, over: connection)
    try connection.finishCopy()
  }

  /// Makes current rows of reads and of the events that these do not contain.
  func merge(
    _ buffer: RowBuffer, reads: [Int], over connection: PostgresConnection
  ) throws {
    try self.history.loadMissingReads(buffer, rows: reads, over: connection)
    let records = Set(reads.map { buffer.recordID($0) })
    _ = try self.refold.refold(records: Array(records), over: connection)
  }
}
