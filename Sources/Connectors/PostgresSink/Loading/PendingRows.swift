internal import Pipeline
internal import PostgresClient

/// Rows of one topic for the tables of one entity, from the open commit and the sealed one, waiting
/// for their transaction.
final class PendingRows {
  let topic: String
  let entity: String
  private(set) var tables: LayoutTables
  private(set) var loader: TableLoader
  var open: RowBuffer
  private(set) var sealed: RowBuffer
  /// Records that were read, which follow the events of their transaction.
  var openReads: RowBuffer
  private(set) var sealedReads: RowBuffer
  /// The numbers of rows that the transactions of the two commits have sent to the history.
  private(set) var openSentCount = 0
  private(set) var sealedSentCount = 0
  private var sentByteCount = 0
  /// The newest commit time of the events so far, milliseconds since 1970.
  private var newestCommit: Int64?
  /// The newest commit time up to the end of the sealed commit.
  private(set) var sealedNewestCommit: Int64?
  private let configuration: PostgresSinkConfiguration

  init(
    topic: String, entity: String, tables: LayoutTables, _ configuration: PostgresSinkConfiguration,
    newestStamp: Int64?
  ) {
    self.topic = topic
    self.entity = entity
    self.tables = tables
    self.configuration = configuration
    self.loader = TableLoader(tables, configuration, newestStamp: newestStamp)
    self.open = RowBuffer(columnCount: tables.dataColumns.count)
    self.sealed = self.open
    self.openReads = self.open
    self.sealedReads = self.open
  }

  /// Adopts tables that have changed since these rows were encoded. Columns keep their places, so
  /// the values still match; later rows need a buffer of their own only if columns were added.
  func adopt(_ tables: LayoutTables) throws(PostgresError) {
    guard !self.isFor(tables) else { return }
    let columns = tables.dataColumns.prefix(self.open.columnCount)
    let isSame = self.tables.dataColumns.prefix(self.open.columnCount)
      .elementsEqual(columns) { $0.ordinal == $1.ordinal && $0.type == $1.type }
    guard isSame else {
      throw PostgresError(
        .configuration,
        "postgres: columns of the tables of \(self.entity) were dropped or altered during the "
          + "run; run again")
    }
    self.tables = tables
    self.loader = TableLoader(
      tables, self.configuration, newestStamp: self.loader.newestStamp)
  }

  func note(commit time: Int64) {
    self.newestCommit = max(self.newestCommit ?? time, time)
  }

  /// Bytes of values that the transaction of the open commit has not sent yet.
  var unsentByteCount: Int { self.open.bytes.count - self.sentByteCount }

  /// The next rows to be sent, with at least `byteCount` bytes of values if there are as many.
  func unsentRows(byteCount: Int) -> Range<Int> {
    let limit = self.sentByteCount + byteCount
    var end = self.openSentCount
    while end < self.open.rows.count, self.end(ofRowsBefore: end) < limit { end += 1 }
    return self.openSentCount..<end
  }

  /// Where the values of the first `count` rows of the open commit end: a row's metadata follow them.
  private func end(ofRowsBefore count: Int) -> Int {
    if count == self.open.rows.count { return self.open.bytes.count }
    return count == 0 ? 0 : self.open.rows[count - 1].metadata.upperBound
  }

  /// Call this when the first `count` rows of the open commit have been sent.
  func sent(_ count: Int) {
    self.openSentCount = count
    self.sentByteCount = self.end(ofRowsBefore: count)
  }

  /// Call this when the sent rows of the open commit are rolled back.
  func unsend() { (self.openSentCount, self.sentByteCount) = (0, 0) }

  /// Call this when the sent rows of the sealed commit are rolled back.
  func unsendSealed() { self.sealedSentCount = 0 }

  /// Call this when the first `count` rows of the sealed commit have been sent.
  func sentSealed(_ count: Int) { self.sealedSentCount = count }

  /// Call this when later rows belong to the next commit.
  func seal() {
    swap(&self.open, &self.sealed)
    swap(&self.openReads, &self.sealedReads)
    self.sealedSentCount = self.openSentCount
    self.unsend()
    self.sealedNewestCommit = self.newestCommit
  }

  /// Call this when the transaction is committed.
  func removeSealed() {
    self.sealed.removeAll()
    // The memory is reused unless the next commit has begun.
    if self.open.isEmpty { swap(&self.open, &self.sealed) }
    self.sealedReads.removeAll()
    if self.openReads.rows.isEmpty { swap(&self.openReads, &self.sealedReads) }
    self.loader.removeAll()
    self.sealedSentCount = 0
  }

  func isFor(_ tables: LayoutTables) -> Bool {
    self.tables.history == tables.history && self.tables.current == tables.current
      && self.tables.dataColumns == tables.dataColumns
  }

  /// Whether no row waits for this transaction or the next.
  var isEmpty: Bool { self.open.isEmpty && self.openReads.rows.isEmpty }
  var hasSealed: Bool { !self.sealed.rows.isEmpty || !self.sealedReads.rows.isEmpty }

  /// The entry of `_etl_resync` for a row that was refused.
  func deadLetter(ofRow row: Int) -> ResyncTable.Entry {
    ResyncTable.entry(.deadLetter, self.sealed, row)
  }

  func refusal(ofRow row: Int, by sink: String, _ error: PostgresError) -> RefusedEvent {
    let row = self.sealed.rows[row]
    return RefusedEvent(
      topic: self.topic, epoch: Int(row.epoch), ordinal: row.ordinal,
      reason: "refused by the database (sink '\(sink)'): \(error.message)",
      refusal: DeadLetter.Refusal(sink: sink, column: error.column, sqlState: error.sqlState))
  }
}
