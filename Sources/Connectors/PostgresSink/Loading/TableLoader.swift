package import PostgresClient

/// Writes rows to the tables of one entity, within the caller's transaction.
package final class TableLoader {
  let history: HistoryTable?
  let current: CurrentTable?
  let resync: ResyncTable?
  let refold: Refold?
  /// The events since the current pass over the object began, for tables without a history.
  let kept: KeptEvents?
  /// A pass over the object is in progress, so its events are kept.
  var isKeeping = false
  /// Each changed record is read again; see `PostgresSinkConfiguration.subsets`.
  private var isSubset = false
  /// Reads lack columns of the table, because the user may not see some fields or REST lacks them.
  var readsLackColumns: Bool
  let visibilityWait: Int64
  /// SQL condition: the tables still have the types that rows were encoded for.
  let typeCondition: String
  private var fold: RecordFold
  /// A fold for records that were read.
  var readFold: RecordFold
  /// The newest `SystemModstamp` that rows of the current table may have, milliseconds since 1970,
  /// or a later one; nil if no record was ever read.
  package var newestStamp: Int64?

  /// - Parameters:
  ///   - history: nil in mode `current`.
  ///   - current: nil in mode `history`, and for platform events.
  package init(
    history: TableDefinition?, current: TableDefinition?,
    delete: PostgresSinkConfiguration.DeletePolicy,
    visibilityWait: Int64 = ReadMerge.visibilityWait
  ) {
    self.visibilityWait = visibilityWait
    self.readsLackColumns = current?.hasUnreadColumns ?? false
    self.kept =
      if history == nil, let current, current.hasReadColumns {
        KeptEvents(current, delete: delete, visibilityWait: visibilityWait)
      } else {
        nil
      }
    precondition(history != nil || current != nil, "an entity has a table")
    self.history = history.map { HistoryTable($0) }
    self.current = current.map { CurrentTable($0, delete: delete) }
    self.resync = (history ?? current).map { ResyncTable(entity: $0.entity, schema: $0.schema) }
    self.refold =
      if let history, let current {
        Refold(
          history: history, current: current, delete: delete, visibilityWait: visibilityWait)
      } else {
        nil
      }
    self.typeCondition = [history, current].compactMap(\.?.typeCondition).joined(separator: " AND ")
    let columns = (history ?? current)?.dataColumns ?? []
    self.fold = RecordFold(columns: columns, removesDeleted: delete == .remove)
    self.readFold = self.fold
  }

  convenience init(
    _ tables: LayoutTables, _ configuration: PostgresSinkConfiguration, newestStamp: Int64?
  ) {
    self.init(
      history: tables.history, current: tables.current, delete: configuration.delete,
      visibilityWait: configuration.reads?.visibilityWait ?? ReadMerge.visibilityWait)
    self.newestStamp = newestStamp
    self.isSubset =
      (tables.current?.entity).map { configuration.subsets.contains($0) } ?? false
  }

  /// The events that reads are merged with.
  var eventTable: TableDefinition? { self.history?.definition ?? self.kept?.definition }

  /// Sends `rows` of the buffer: history, current, resync, tombstones. Changes nothing in the
  /// buffer; throws `PostgresError`, after which the transaction, or what has been done since its
  /// last savepoint, has to be rolled back.
  ///
  /// - Parameters:
  ///   - sentCount: rows of the buffer, from its first, that the transaction has sent to the history;
  ///     none when re-reading.
  ///   - foldsGaps: marks the records of the gaps among the rows; see `takesGaps`.
  package func load(
    _ buffer: RowBuffer, rows: Range<Int>, sentCount: Int = 0, foldsGaps: Bool = false,
    over connection: PostgresConnection, isRereading: Bool
  ) throws {
    try self.resync?.note(buffer, rows: rows, over: connection)
    if self.isSubset { try self.resync?.noteChanged(buffer, rows: rows, over: connection) }
    if let history, isRereading {
      let records = try history.loadMissing(buffer, rows: rows, over: connection)
      try self.resync?.closeDeadLetters(of: records, heldBy: history.definition, over: connection)
      _ = try self.refold?.refold(records: records, over: connection)
      return
    }
    try self.history?.send(
      buffer, rows: max(rows.lowerBound, min(sentCount, rows.upperBound))..<rows.upperBound,
      over: connection)
    try connection.finishCopy()
    guard let current else { return }
    var (isSkipped, contained): ([Bool], [String]) =
      try self.mayContain(buffer.rows[rows])
      ? current.contained(buffer, rows: rows, over: connection) : ([], [])
    if isRereading {
      let seen = try current.seen(buffer, rows: rows, over: connection)
      isSkipped = isSkipped.isEmpty ? seen : zip(seen, isSkipped).map { $0 || $1 }
    }
    var gaps = foldsGaps ? buffer.gaps[...].drop { $0.place < rows.lowerBound } : []
    var next = rows.lowerBound
    while next < rows.upperBound {
      self.fold.removeAll()
      repeat {
        if self.fold.awaitsValues {
          try current.resolveDiffs(&self.fold, buffer, over: connection)
        }
        let rest = next..<rows.upperBound
        next = self.fold.fold(
          buffer, rows: rest,
          isSkipped: isSkipped.isEmpty ? [] : Array(isSkipped.suffix(rest.count)),
          gaps: &gaps)
      } while self.fold.awaitsValues && !self.fold.isFull
      let late = try current.apply(&self.fold, buffer, over: connection)
      _ = try self.refold?.refold(records: late, over: connection)
    }
    // Columns that the reads lack have their values from all events.
    if self.readsLackColumns {
      _ = try self.refold?.refold(records: contained, over: connection)
    }
    if self.isKeeping { try self.kept?.keep(buffer, rows: rows, over: connection) }
  }

  /// Call this when the transaction is committed.
  func removeAll() {
    self.fold.removeAllKeepingWhatIsUsed()
    self.readFold.removeAllKeepingWhatIsUsed()
  }

  /// Whether `load` can mark the records of all gaps of a buffer, in one pass with its rows. Their
  /// events have to be noted before. If rows are read again, or their events may be in reads, the
  /// history decides what the gaps mean; see `noteDeadLetters`. Without a history, that marks rows
  /// and rebuilds none.
  func takesGaps(of buffer: RowBuffer) -> Bool {
    guard self.refold != nil, !buffer.rows.isEmpty else { return false }
    let events = [buffer.rows, buffer.gaps.map(\.row)]
    return events.allSatisfy { $0.allSatisfy { $0.epoch <= 1 } && !self.mayContain($0) }
  }

  /// Notes events that went to the dead letters, and marks the rows of their records as stale.
  ///
  /// - Parameters:
  ///   - entries: of kind `deadLetter`. One without record ID, epoch or ordinal marks no row.
  ///   - buffer: the rows loaded in this transaction, among which the events had their places.
  package func noteDeadLetters(
    _ entries: [ResyncTable.Entry], among loaded: RowBuffer? = nil,
    over connection: PostgresConnection
  ) throws {
    try self.resync?.noteDeadLetters(entries, over: connection)
    guard let current else { return }
    var buffer = RowBuffer(columnCount: self.fold.columnCount)
    for entry in entries {
      if self.refold == nil, let loaded, Self.isReplaced(entry, in: loaded) { continue }
      if let gap = buffer.gap(entry) { buffer.rows.append(gap) }
    }
    let rows = buffer.rows.indices
    guard !rows.isEmpty,
      try connection.refusal(of: { try self.mark(buffer, rows, in: current, over: connection) })
        != nil
    else { return }
    // If the database refuses even the mark, only the note remains.
    for row in rows {
      _ = try connection.refusal {
        try self.mark(buffer, row..<row + 1, in: current, over: connection)
      }
    }
  }

  /// Marks the records of gaps as stale.
  private func mark(
    _ buffer: RowBuffer, _ rows: Range<Int>, in current: CurrentTable,
    over connection: PostgresConnection
  ) throws {
    var next = rows.lowerBound
    while next < rows.upperBound {
      self.fold.removeAll()
      next = self.fold.fold(buffer, rows: next..<rows.upperBound)
      let late = try current.apply(&self.fold, buffer, over: connection)
      guard let refold else {
        // Later events do not contain their changes.
        try current.markStale(late, over: connection)
        continue
      }
      // The history knows which events came later, also between epochs.
      let records = self.fold.deltas.indices.map { self.fold.recordID($0, buffer) }
      _ = try refold.refold(records: records, over: connection)
    }
  }

  /// Whether a full image of the record follows the event.
  private static func isReplaced(_ entry: ResyncTable.Entry, in buffer: RowBuffer) -> Bool {
    guard let recordID = entry.recordID, let epoch = entry.epoch, let ordinal = entry.ordinal
    else { return false }
    return buffer.rows.contains { row in
      (row.change == .create || row.change == .undelete) && row.epoch == epoch
        && row.ordinal > ordinal && buffer.bytes[row.recordID].elementsEqual(recordID.utf8)
    }
  }
}
