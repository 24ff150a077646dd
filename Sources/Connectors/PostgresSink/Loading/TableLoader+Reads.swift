package import PostgresClient

/// Records that were read: rows of the history, merged with their events.
extension TableLoader {
  /// Whether some of the events may be in reads that the current rows begin with.
  func mayContain(_ rows: some Sequence<RowBuffer.Row>) -> Bool {
    guard let newestStamp = self.newestStamp, self.current?.definition.hasReadColumns == true else {
      return false
    }
    let newest = ReadMerge.Read(stamp: newestStamp, readAt: 0)
    return rows.contains { ReadMerge.contains(newest, $0.mergedEvent) }
  }

  /// Writes records that were read. Load the events of the transaction first.
  ///
  /// - Returns: how many of the rows were new or have changed.
  @discardableResult
  package func loadReads(
    _ buffer: RowBuffer, rows: Range<Int>, over connection: PostgresConnection
  ) throws -> Int {
    guard !rows.isEmpty else { return 0 }
    try connection.finishCopy()
    for index in rows where buffer.rows[index].change != .readFields {
      guard let read = buffer.rows[index].read else { continue }
      self.newestStamp = max(self.newestStamp ?? read.stamp, read.stamp)
      if !read.isWhole { self.readsLackColumns = true }
    }
    guard let current else {
      try self.history?.loadMissingReads(buffer, rows: rows, over: connection)
      return rows.count
    }
    let sorted = try self.sorted(buffer, rows, current, over: connection)
    let filledCount = try self.fill(buffer, sorted.filling, current, over: connection)
    try self.history?.copyReads(buffer, rows: sorted.new, over: connection)
    try self.fold(buffer, sorted.new) { fold in
      try current.copyNew(fold, buffer, over: connection)
    }
    try self.fold(buffer, sorted.replacing) { fold in
      try current.replace(fold, buffer, over: connection)
    }
    try self.merge(buffer, sorted.merged, over: connection)
    let changedCount =
      sorted.new.count + sorted.replacing.count + sorted.merged.count + filledCount
    guard let resync, try resync.hasOpenEntries(over: connection) else { return changedCount }
    var settled: [String: Int64] = [:]
    for index in rows where buffer.rows[index].change != .readFields {
      guard let read = buffer.rows[index].read else { continue }
      let (id, time) = (buffer.recordID(index), read.readAt - self.visibilityWait)
      guard !sorted.uncertain.contains(id) else { continue }
      settled[id] = max(settled[id] ?? time, time)
    }
    guard !settled.isEmpty else { return changedCount }
    try resync.close(settled: settled, current: current.definition, over: connection)
    return changedCount
  }

  private func merge(
    _ buffer: RowBuffer, _ reads: [Int], over connection: PostgresConnection
  ) throws {
    guard !reads.isEmpty else { return }
    guard let history, let refold else {
      try self.kept?.merge(buffer, reads: reads, over: connection)
      return
    }
    try history.loadMissingReads(buffer, rows: reads, over: connection)
    _ = try refold.refold(
      records: Array(Set(reads.map { buffer.recordID($0) })), over: connection)
  }

  /// Writes reads of columns that rows lack.
  ///
  /// - Returns: how many rows have changed.
  private func fill(
    _ buffer: RowBuffer, _ reads: [Int], _ current: CurrentTable,
    over connection: PostgresConnection
  ) throws -> Int {
    guard let events = self.eventTable, !reads.isEmpty else { return 0 }
    let columns = Self.columns(of: reads, buffer)
    var (changed, noted): (Set<String>, Set<String>) = ([], [])
    try self.fold(buffer, reads) { fold in
      let filled = try current.fill(
        fold, buffer, columns: columns, events: events, history: self.history?.definition,
        visibilityWait: self.visibilityWait, over: connection)
      changed.formUnion(filled.changed)
      noted.formUnion(filled.unproved.union(filled.changed))
    }
    try self.history?.loadMissingReads(
      buffer, rows: reads.filter { noted.contains(buffer.recordID($0)) }, over: connection)
    return changed.count
  }

  /// The columns that some of the rows hold.
  private static func columns(of rows: [Int], _ buffer: RowBuffer) -> [Int] {
    var columns: Set<Int> = []
    for row in rows {
      for cell in buffer.cells[buffer.rows[row].cells] { columns.insert(Int(cell.column)) }
    }
    return columns.sorted()
  }

  /// Marks records that were requested and not found.
  func noteUnseen(
    _ records: [String], epoch: Int, ordinal: Int64, over connection: PostgresConnection
  ) throws {
    guard let current else { return }
    let list = RepairList(current.definition)
    try list.noteUnseen(records, epoch: epoch, ordinal: ordinal, over: connection)
    if let refold {
      _ = try refold.refold(records: records, over: connection)
    } else {
      try current.markStale(records, over: connection)
    }
  }

  /// Reads grouped by their treatment; reads that change nothing are in no list.
  private struct Sorted {
    /// Reads of records that the table does not know.
    var new: [Int] = []
    /// Reads to be merged with the events of their records.
    var merged: [Int] = []
    /// Reads that contain all events of their records.
    var replacing: [Int] = []
    /// Reads of columns that rows lack.
    var filling: [Int] = []
    /// Records whose reads may lack an event that their rows have.
    var uncertain: Set<String> = []
  }

  private func sorted(
    _ buffer: RowBuffer, _ rows: Range<Int>, _ current: CurrentTable,
    over connection: PostgresConnection
  ) throws -> Sorted {
    let known = try current.rows(of: rows.lazy.map { .some(buffer.recordID($0)) }, over: connection)
    var sorted = Sorted()
    let asked = try self.askedAlthoughOlder(buffer, rows, known ?? [:], over: connection)
    // Two pages may contain the same record.
    var seen: [String: Int64] = [:]
    var same: [Int] = []
    for index in rows {
      guard let read = buffer.rows[index].read else { continue }
      let id = buffer.recordID(index)
      if buffer.rows[index].change == .readFields {
        // Records without a row get one from their events.
        if seen[id] == nil, known?[id]?.isLive != false { sorted.filling.append(index) }
        continue
      }
      let before = seen.updateValue(read.stamp, forKey: id)
      let isImage = buffer.rows[index].change == .read
      guard let known, before == nil else {
        if before != read.stamp { self.merge(index, id, nil, read, into: &sorted) }
        continue
      }
      guard let row = known[id] else {
        if isImage {
          sorted.new.append(index)
        } else {
          self.merge(index, id, nil, read, into: &sorted)
        }
        continue
      }
      if row.isNewer(than: read, visibilityWait: self.visibilityWait), !asked.contains(id) {
        continue
      }
      let isSame =
        isImage && row.isLive && row.isSame(as: read, visibilityWait: self.visibilityWait)
      if isSame && !row.isStaleOrPartial {
        same.append(index)
      } else {
        self.merge(index, id, row, read, into: &sorted)
      }
    }
    // Values may change without a change of the record: converted fields, formulas, new columns.
    let differing = try self.differing(buffer, same, current, over: connection)
    if self.history != nil || self.isKeeping {
      sorted.merged += differing
    } else {
      sorted.replacing += differing
    }
    return sorted
  }

  /// The reads whose values differ from those of the rows with the same stamps.
  private func differing(
    _ buffer: RowBuffer, _ reads: [Int], _ current: CurrentTable,
    over connection: PostgresConnection
  ) throws -> [Int] {
    guard !reads.isEmpty else { return [] }
    let columns = Self.columns(of: reads, buffer)
    var records: Set<String> = []
    try self.fold(buffer, reads) { fold in
      records.formUnion(
        try current.differing(fold, buffer, columns: columns, over: connection))
    }
    return reads.filter { records.contains(buffer.recordID($0)) }
  }

  /// The records that `verify --repair` has asked for and whose reads seem older than their rows.
  private func askedAlthoughOlder(
    _ buffer: RowBuffer, _ rows: Range<Int>, _ known: [String: CurrentTable.ReadRow],
    over connection: PostgresConnection
  ) throws -> Set<String> {
    guard let resync else { return [] }
    let older = rows.lazy.filter { index in
      guard let read = buffer.rows[index].read, let row = known[buffer.recordID(index)] else {
        return false
      }
      return row.isNewer(than: read, visibilityWait: self.visibilityWait)
    }.map { buffer.recordID($0) }
    return older.isEmpty ? [] : try resync.askedByVerify(among: Array(older), over: connection)
  }

  private func merge(
    _ index: Int, _ id: String, _ row: CurrentTable.ReadRow?, _ read: RowBuffer.Read,
    into sorted: inout Sorted
  ) {
    if self.history != nil || self.isKeeping {
      sorted.merged.append(index)
    } else if row?.isContained(in: read, visibilityWait: self.visibilityWait) == true {
      sorted.replacing.append(index)
    } else if row != nil {
      sorted.uncertain.insert(id)
    }
  }

  /// Folds reads of different records, and calls the closure each time the fold is full.
  private func fold(
    _ buffer: RowBuffer, _ rows: [Int], _ body: (RecordFold) throws -> Void
  ) throws {
    var next = 0
    while next < rows.count {
      self.readFold.removeAll()
      next = self.readFold.fold(buffer, rows: rows, from: next)
      try body(self.readFold)
    }
    self.readFold.removeAll()
  }
}

extension RowBuffer {
  func recordID(_ index: Int) -> String {
    String(decoding: self.bytes[self.rows[index].recordID], as: UTF8.self)
  }
}
