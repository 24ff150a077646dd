package import PostgresClient

/// The history table of an entity or event: one row per event and record ID.
package struct HistoryTable {
  let definition: TableDefinition
  private let columns: String
  private let copyStatement: String
  /// Additional columns of records that were read.
  private let readColumns: String

  private static let stage = "pg_temp._etl_history"
  private static let metadataNames = TableDefinition.fixedColumns(.history).map(\.name)
    .filter { $0 != "_loaded_at" }

  package init(_ definition: TableDefinition) {
    self.definition = definition
    self.columns = (Self.metadataNames + definition.dataColumns.map(\.quotedName))
      .joined(separator: ", ")
    self.copyStatement =
      "COPY \(definition.qualifiedName) (\(self.columns)) FROM STDIN (FORMAT binary)"
    self.readColumns =
      (Self.metadataNames + TableDefinition.readColumns.map(\.name)
      + definition.dataColumns.map(\.quotedName)).joined(separator: ", ")
  }

  /// Whether two transactions that insert rows never wait for each other: no row excludes another, and
  /// nothing else happens to a row.
  func isIndependent(over connection: PostgresConnection) throws(PostgresError) -> Bool {
    let result = try connection.query(
      """
      SELECT c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhasrules \
      AND NOT c.relhastriggers AND NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i \
      WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)) \
      FROM pg_catalog.pg_class AS c \
      WHERE c.oid = \(SQLIdentifier.literal(self.definition.qualifiedName))::regclass
      """)
    return result[0, 0] == "t"
  }

  /// A COPY to the table is open for more rows.
  package func isTaking(over connection: PostgresConnection) -> Bool {
    connection.isTakingCopy(self.copyStatement)
  }

  /// Copies rows directly into the table, in a COPY that stays open. The next call has to be this
  /// one or the connection's `finishCopy`. Absent and null are both NULL in the table; the field
  /// lists distinguish them.
  package func send(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws {
    guard !rows.isEmpty else { return }
    self.check(buffer)
    try connection.sendCopyIn(self.copyStatement) { writer in
      for row in rows { try self.copy(row, of: buffer, to: &writer) }
    }
  }

  /// Begins a transaction in which the table takes rows, and does not wait for the server.
  package func request(over connection: PostgresConnection) throws(PostgresError) {
    try connection.requestCopyIn(after: connection.beginLoadStatement, self.copyStatement)
  }

  /// Sends rows to the COPY that is open, and does not wait until the server has room for them.
  package func queue(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws {
    self.check(buffer)
    try connection.queueCopyIn(self.copyStatement) { writer in
      for row in rows { try self.copy(row, of: buffer, to: &writer) }
    }
  }

  /// Copies rows of records that were read, which the table does not hold yet.
  package func copyReads(
    _ buffer: RowBuffer, rows: some Collection<Int>, over connection: PostgresConnection
  ) throws {
    guard !rows.isEmpty else { return }
    self.check(buffer)
    try connection.copyIn(
      "COPY \(self.definition.qualifiedName) (\(self.readColumns)) FROM STDIN (FORMAT binary)"
    ) { writer in
      for row in rows { try self.copy(row, of: buffer, to: &writer) }
    }
  }

  /// Loads the rows of records that were read that the table does not hold yet.
  package func loadMissingReads(
    _ buffer: RowBuffer, rows: some Collection<Int>, over connection: PostgresConnection
  ) throws {
    _ = try self.loadMissing(buffer, rows: rows, areReads: true, over: connection)
  }

  /// Loads the rows that the table does not hold yet, by (`_event_id`, `_record_id`).
  ///
  /// - Returns: the IDs of the records with new rows, without duplicates.
  package func loadMissing(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws -> [String] {
    try self.loadMissing(buffer, rows: rows, areReads: false, over: connection)
  }

  private func loadMissing(
    _ buffer: RowBuffer, rows: some Collection<Int>, areReads: Bool,
    over connection: PostgresConnection
  ) throws -> [String] {
    guard !rows.isEmpty else { return [] }
    self.check(buffer)
    let name = self.definition.qualifiedName
    let columns = areReads ? self.readColumns : self.columns
    let create = """
      \(DeltaTable.planSettings); DROP TABLE IF EXISTS \(Self.stage); CREATE TEMPORARY TABLE _etl_history ON COMMIT DROP \
      AS SELECT \(columns) FROM \(name) WITH NO DATA; \
      COPY \(Self.stage) (\(columns)) FROM STDIN (FORMAT binary)
      """
    var seen: Set<[UInt8]> = []
    try connection.copyIn(create) { writer in
      for index in rows {
        let row = buffer.rows[index]
        // An event without an ID differs from every other.
        let key = buffer.bytes[row.eventID] + [0] + buffer.bytes[row.recordID]
        guard row.eventID.isEmpty || seen.insert(Array(key)).inserted else { continue }
        try self.copy(index, of: buffer, to: &writer)
      }
    }
    // Events without an ID are identified by their place in the stream.
    let isSame =
      areReads
      ? "h._read_at = s._read_at" : "(s._event_id <> '' OR h._replay_id = s._replay_id)"
    // Two queries, because `IS NOT DISTINCT FROM` cannot use an index.
    let result = try connection.query(
      """
      WITH inserted AS (INSERT INTO \(name) (\(columns)) \
      SELECT \(columns) FROM \(Self.stage) AS s \
      WHERE NOT EXISTS (SELECT FROM \(name) AS h \
      WHERE h._record_id = s._record_id AND h._event_id = s._event_id AND \(isSame)) \
      AND NOT EXISTS (SELECT FROM \(name) AS h WHERE s._record_id IS NULL \
      AND h._record_id IS NULL AND h._event_id = s._event_id AND \(isSame)) \
      RETURNING _record_id) SELECT DISTINCT _record_id FROM inserted WHERE _record_id IS NOT NULL
      """)
    return (0..<result.rowCount).compactMap { result[$0, 0] }
  }

  private func check(_ buffer: RowBuffer) {
    precondition(
      buffer.columnCount <= self.definition.dataColumns.count, "rows of another table")
  }

  private func copy(
    _ index: Int, of buffer: RowBuffer, to writer: inout CopyWriter
  ) throws(PostgresError) {
    let row = buffer.rows[index]
    let columnCount = self.definition.dataColumns.count
    try writer.row(fieldCount: row.metadataFieldCount + columnCount)
    var failure: PostgresError?
    buffer.bytes.withUnsafeBufferPointer { bytes in
      do throws(PostgresError) {
        try writer.raw(UnsafeBufferPointer(rebasing: bytes[row.metadata]))
        var column = 0
        for cell in buffer.cells[row.cells] where !cell.isNull {
          try writer.nulls(Int(cell.column) - column)
          let start = Int(cell.offset)
          try writer.value(UnsafeBufferPointer(rebasing: bytes[start..<start + Int(cell.count)]))
          column = Int(cell.column) + 1
        }
        try writer.nulls(columnCount - column)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }
}
