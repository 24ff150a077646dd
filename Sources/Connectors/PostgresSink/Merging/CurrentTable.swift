package import PostgresClient

/// The current table of an entity: one row per record.
///
/// Its SQL is composed once per state of the table. Everything runs in the caller's transaction.
package struct CurrentTable {
  let definition: TableDefinition
  let removesDeleted: Bool
  let deltas: DeltaTable
  private let statements: Statements

  /// Copying new rows directly into the table needs a query first, which is not worth it for few
  /// rows.
  private static let minDirectRows = 32

  package init(_ definition: TableDefinition, delete: PostgresSinkConfiguration.DeletePolicy) {
    self.definition = definition
    self.removesDeleted = delete == .remove
    self.deltas = DeltaTable(definition)
    self.statements = Statements(
      definition, removesDeleted: self.removesDeleted, maskCount: self.deltas.maskCount)
  }

  /// Applies deltas whose events are all later than what the rows hold.
  ///
  /// - Returns: IDs of the records that were not changed because they already hold later events.
  package func apply(
    _ fold: inout RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws -> [String] {
    guard !fold.deltas.isEmpty else { return [] }
    try self.resolveDiffs(&fold, buffer, over: connection)
    let isNew = try self.newRecords(fold, buffer, over: connection)
    let rest: [Int]
    if let isNew {
      try self.deltas.copyDirect(
        fold.deltas.indices.lazy.filter { isNew[$0] }, of: fold, buffer, over: connection)
      rest = fold.deltas.indices.filter { !isNew[$0] }
    } else {
      rest = Array(fold.deltas.indices)
    }
    guard !rest.isEmpty else { return [] }
    try self.deltas.copy(rest, of: fold, buffer, isFirst: true, over: connection)
    let applied = try connection.query(self.statements.apply).number(0, 0).map(Int.init)
    guard applied != rest.count else { return [] }
    let late = try connection.query(self.statements.late)
    return (0..<late.rowCount).compactMap { late[$0, 0] }
  }

  /// The deltas that are full rows of records that the table lacks; nil if the query is not worth
  /// it.
  private func newRecords(
    _ fold: RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws(PostgresError) -> [Bool]? {
    var isNew = fold.deltas.map { $0.isReplacement && !$0.isRemoved }
    let count = isNew.count { $0 }
    guard count >= Self.minDirectRows, count >= fold.deltas.count / 8 else { return nil }
    let known = try connection.queryBinary(
      self.statements.known,
      [SQLArray.literal(isNew.indices.lazy.filter { isNew[$0] }.map { fold.recordID($0, buffer) })])
    for row in 0..<known.rowCount {
      guard let id = known.withField(row, 0) else { return nil }
      if let delta = fold.index(of: id, buffer) { isNew[delta] = false }
    }
    return isNew
  }

  /// Fetches the values that diffs apply to, and applies the diffs. The fetched rows are those
  /// before the fold, because its deltas are the first ones for these columns.
  func resolveDiffs(
    _ fold: inout RecordFold, _ buffer: RowBuffer, over connection: PostgresConnection
  ) throws(PostgresError) {
    let waiting = fold.deltas.indices.filter { fold.deltas[$0].pendingDiffCount > 0 }
    guard !waiting.isEmpty else { return }
    let columns = self.definition.dataColumns.indices.filter { column in
      waiting.contains { fold.isPending($0, column: column) }
    }
    let names = columns.map { self.definition.dataColumns[$0].quotedName }
    let result = try connection.queryBinary(
      """
      SELECT id, \(names.joined(separator: ", ")) FROM \(self.statements.rows)
      """, [SQLArray.literal(waiting.map { fold.recordID($0, buffer) })])
    for row in 0..<result.rowCount {
      guard let id = result.withField(row, 0), let delta = fold.index(of: id, buffer) else {
        continue
      }
      for (field, column) in columns.enumerated() {
        fold.resolve(delta, column: column, base: result.withField(row, field + 1), buffer)
      }
    }
    for delta in waiting where fold.deltas[delta].pendingDiffCount > 0 {
      for column in columns { fold.resolve(delta, column: column, base: nil, buffer) }
    }
    fold.endResolving()
  }

  /// Marks rows some of whose values differ from the service's.
  func markStale(
    _ records: [String], over connection: PostgresConnection
  ) throws(PostgresError) {
    guard !records.isEmpty else { return }
    try connection.query(
      """
      UPDATE \(self.definition.qualifiedName) SET _stale = true, _updated_at = now() \
      WHERE id = ANY($1::text[]) AND NOT _stale
      """, [SQLArray.literal(records)])
  }

  // MARK: Re-reading without a history

  /// Finds rows that the table has already seen when a stream is read again without a history: in
  /// an epoch other than the row's, those without a later commit time.
  package func seen(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws(PostgresError) -> [Bool] {
    func recordID(_ index: Int) -> String {
      String(decoding: buffer.bytes[buffer.rows[index].recordID], as: UTF8.self)
    }
    let ids = Set(rows.map(recordID))
    let result = try connection.query(self.statements.positions, [SQLArray.literal(ids)])
    var positions: [String: (epoch: Int32, ordinal: Int64, time: Int64?)] = [:]
    for row in 0..<result.rowCount {
      guard let id = result[row, 0], let epoch = result[row, 1].flatMap({ Int32($0) }),
        let ordinal = result.number(row, 2)
      else { continue }
      positions[id] = (epoch, ordinal, result.number(row, 3))
    }
    return rows.map { index in
      guard let known = positions[recordID(index)] else { return false }
      let row = buffer.rows[index]
      if row.epoch == known.epoch { return row.ordinal <= known.ordinal }
      guard let time = row.commitTimestamp, let knownTime = known.time else { return false }
      return time <= knownTime
    }
  }

  // MARK: Reads

  /// The table's state of a record that was read.
  struct ReadRow {
    /// `SystemModstamp` of the row's read, milliseconds since 1970; nil if an event was applied
    /// after the read, and for a tombstone.
    var stamp: Int64?
    var isStaleOrPartial: Bool
    /// Commit time of the last applied event; nil if there is none or its time is unknown.
    var commit: Int64?
    /// When that event was applied, by the database's clock; nil for a tombstone.
    var updatedAt: Int64?

    /// When it was read last, by the database's clock.
    var readAt: Int64?
    /// Neither marked as deleted nor a tombstone.
    var isLive: Bool

    /// Whether a read with the same stamp certainly has the same state. Two changes may share a
    /// stamp, but not if the first was read long after it.
    func isSame(as read: RowBuffer.Read, visibilityWait: Int64) -> Bool {
      guard self.stamp == read.stamp, let readAt else { return false }
      return readAt - read.stamp >= visibilityWait + ReadMerge.clockTolerance
    }

    /// Whether the row's own read is newer than a read.
    func isNewer(than read: RowBuffer.Read, visibilityWait: Int64) -> Bool {
      guard let stamp = self.stamp, read.stamp < stamp else { return false }
      let own = ReadMerge.Read(stamp: stamp, readAt: self.readAt ?? Int64.min)
      let other = ReadMerge.Read(stamp: read.stamp, readAt: read.readAt)
      return other.readAt <= own.readAt || !other.hasSeen(own, visibilityWait: visibilityWait)
    }

    /// Whether a read contains everything that was applied to the row.
    func isContained(in read: RowBuffer.Read, visibilityWait: Int64) -> Bool {
      if let commit, commit < read.stamp - ReadMerge.clockTolerance { return true }
      if let updatedAt { return read.readAt - updatedAt >= visibilityWait }
      // A tombstone has only the time of the deletion in the org.
      return commit.map { read.readAt - $0 >= visibilityWait + ReadMerge.clockTolerance } ?? false
    }
  }

  /// The rows and tombstones of some records; nil if row-level security prevents COPY.
  func rows(
    of ids: some Sequence<String?>, over connection: PostgresConnection
  ) throws(PostgresError) -> [String: ReadRow]? {
    let result = try connection.query(self.statements.reads, [SQLArray.literal(ids)])
    var rows: [String: ReadRow] = [:]
    for row in 0..<result.rowCount {
      guard let id = result[row, 0] else { return nil }
      rows[id] = ReadRow(
        stamp: result.number(row, 1), isStaleOrPartial: result[row, 2] == "t",
        commit: result.number(row, 3),
        updatedAt: result.number(row, 4),
        readAt: result.number(row, 5), isLive: result[row, 6] == "t")
    }
    return rows
  }

  /// Finds the events that the rows' reads contain, and their records.
  func contained(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws(PostgresError) -> (isSkipped: [Bool], records: [String]) {
    func recordID(_ index: Int) -> String {
      String(decoding: buffer.bytes[buffer.rows[index].recordID], as: UTF8.self)
    }
    let result = try connection.query(
      self.statements.stamps, [SQLArray.literal(Set(rows.map(recordID)))])
    guard result.rowCount > 0 else { return ([], []) }
    var progress: [String: ReadProgress] = [:]
    for row in 0..<result.rowCount {
      guard let id = result[row, 0], let stamp = result.number(row, 1) else {
        continue
      }
      progress[id] = ReadProgress(after: ReadMerge.Read(stamp: stamp, readAt: 0))
    }
    var met: Set<String> = []
    let isSkipped = rows.map { index in
      let id = recordID(index)
      guard progress[id]?.takes(buffer.rows[index].mergedEvent) == false else { return false }
      met.insert(id)
      return true
    }
    return (isSkipped, Array(met))
  }

  // MARK: Rebuilt rows

  /// Copies deltas that are whole rows; `applyRebuilt` follows.
  func copyRebuilt(
    _ deltas: Range<Int>, of fold: RecordFold, _ buffer: RowBuffer, isFirst: Bool,
    over connection: PostgresConnection
  ) throws {
    try self.deltas.copy(deltas, of: fold, buffer, isFirst: isFirst, over: connection)
  }

  /// Replaces the rows by the copied ones; returns the number of rows that differed.
  func applyRebuilt(over connection: PostgresConnection) throws(PostgresError) -> Int {
    try connection.query(self.statements.applyRebuilt).number(0, 0).map(Int.init) ?? 0
  }
}
