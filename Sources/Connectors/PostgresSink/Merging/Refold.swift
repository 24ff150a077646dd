internal import Pipeline
package import PostgresClient

/// Rebuilds current rows from the history, through the same fold as loading.
///
/// Used for records whose events did not arrive in order (a redriven dead letter, a stream read
/// again), and to prove that the current table is correct.
package final class Refold {
  package struct Counts: Sendable, Equatable {
    /// Records that have events in the history.
    package var checked = 0
    /// Rows that were created, changed or removed.
    package var changed = 0

    package init(checked: Int = 0, changed: Int = 0) {
      self.checked = checked
      self.changed = changed
    }
  }

  private let history: TableDefinition
  private let current: CurrentTable
  private var reader: HistoryReader
  private var fold: RecordFold
  private var buffer: RowBuffer

  /// The number of records per query, and per transaction when all are rebuilt.
  private static let recordCount = 1000
  /// Bytes of history rows fetched at a time; the number of rows follows from the rows so far.
  private static let fetchBytes = 8 << 20
  private var fetchCount = 64

  /// For a few hundred records, the planner would often scan a history of some hundred thousand
  /// rows completely, in every commit with a dead letter. Without hash joins, events would be compared
  /// with every read of all these records.
  private static let readingPlans = """
    SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL jit = off
    """
  private static let usualPlans = "SET LOCAL enable_seqscan TO DEFAULT"

  /// - Parameter visibilityWait: milliseconds; see `ReadMerge`.
  package init(
    history: TableDefinition, current: TableDefinition,
    delete: PostgresSinkConfiguration.DeletePolicy,
    visibilityWait: Int64 = ReadMerge.visibilityWait
  ) {
    precondition(history.dataColumns == current.dataColumns, "tables of one entity")
    self.history = history
    self.current = CurrentTable(current, delete: delete)
    self.reader = HistoryReader(history, visibilityWait: visibilityWait)
    self.fold = RecordFold(
      columns: current.dataColumns, removesDeleted: delete == .remove,
      isFromNothing: true, metadata: HistoryReader.metadataFields)
    self.buffer = RowBuffer(columnCount: current.dataColumns.count)
  }

  /// Rebuilds the rows of records within the open transaction. Records without history do not
  /// change, nor do rows that are older than the history and so hold more than it, nor those of
  /// records whose values were erased.
  package func refold(
    records: [String], over connection: PostgresConnection
  ) throws -> Counts {
    let erased = try ErasedTable(Bookkeeping(schema: self.history.schema))
      .records(over: connection)
    let entity = self.history.entity
    // Each once, or two queries would copy the same row.
    let records = Set(records).filter { !erased.contains($0, of: entity) }.sorted()
    guard !records.isEmpty else { return Counts() }
    try self.reader.readNames(over: connection)
    var counts = Counts()
    for first in stride(from: 0, to: records.count, by: Self.recordCount) {
      let some = records[first..<min(first + Self.recordCount, records.count)]
      counts.checked += try self.copy(Array(some), isFirst: counts.checked == 0, over: connection)
    }
    try connection.execute("\(Self.usualPlans); \(DeltaTable.planSettings)")
    if counts.checked > 0 { counts.changed = try self.current.applyRebuilt(over: connection) }
    return counts
  }

  /// Copies the rebuilt rows of the records that have events in the history; returns their number.
  ///
  /// - Parameter isFirst: nothing has been copied in this transaction.
  private func copy(
    _ records: [String], isFirst: Bool, over connection: PostgresConnection
  ) throws -> Int {
    try connection.execute(Self.readingPlans)
    try connection.query(
      "DECLARE _etl_refold NO SCROLL CURSOR FOR \(self.reader.selectStatement)",
      [SQLArray.literal(records)])
    var count = 0
    self.fold.removeAll()
    while true {
      let asked = self.fetchCount
      let result = try connection.queryBinary("FETCH FORWARD \(asked) FROM _etl_refold")
      self.buffer.removeAll()
      self.reader.append(result, to: &self.buffer)
      let rows = self.buffer.rows.indices
      let end = self.fold.fold(self.buffer, rows: rows)
      precondition(end == rows.upperBound, "a fold from nothing waits for nothing")
      // The next fetch may continue with rows of the last record.
      let isLast = result.rowCount < asked
      let rowBytes = self.buffer.byteCount / max(1, result.rowCount)
      self.fetchCount = min(max(Self.fetchBytes / max(1, rowBytes), 8), 2000)
      let complete = 0..<max(0, self.fold.deltas.count - (isLast ? 0 : 1))
      if !complete.isEmpty {
        try self.current.copyRebuilt(
          complete, of: self.fold, self.buffer, isFirst: isFirst && count == 0, over: connection)
        count += complete.count
      }
      if isLast { break }
      self.fold.detachLast(self.buffer)
    }
    self.fold.removeAll()
    try connection.execute("CLOSE _etl_refold")
    return count
  }

  /// Rebuilds the rows of all records that have history, some records per transaction. Loading into
  /// the current table waits for each transaction, so nothing newer is overwritten.
  package func refoldAll(
    over connection: PostgresConnection, progress: (Counts) -> Void = { _ in }
  ) throws -> Counts {
    var counts = Counts()
    var last: String? = ""
    while let previous = last {
      let (some, end) = try self.locked(over: connection) {
        let result = try connection.query(
          """
          SELECT _record_id FROM \(self.history.qualifiedName) WHERE _record_id > $1 \
          GROUP BY _record_id ORDER BY _record_id LIMIT \(Self.recordCount)
          """, [previous])
        let records = (0..<result.rowCount).compactMap { result[$0, 0] }
        return (try self.refold(records: records, over: connection), records.last)
      }
      counts.checked += some.checked
      counts.changed += some.changed
      last = end
      progress(counts)
    }
    return counts
  }
  /// Rebuilds the rows of some records in a separate transaction, like those of `refoldAll`.
  package func refoldAlone(
    records: [String], over connection: PostgresConnection
  ) throws -> Counts {
    try self.locked(over: connection) { try self.refold(records: records, over: connection) }
  }

  private func locked<Value>(
    over connection: PostgresConnection, _ body: () throws -> Value
  ) throws -> Value {
    try connection.beginLoad()
    do {
      try connection.execute(
        "LOCK TABLE \(self.current.definition.qualifiedName) IN SHARE ROW EXCLUSIVE MODE")
      let value = try body()
      try connection.execute("COMMIT")
      return value
    } catch {
      // The first error is thrown; if the rollback fails too, the connection is closed.
      if connection.isConnected { try? connection.execute("ROLLBACK") }
      throw error
    }
  }
}
