/// Folds the rows of a table, in stream order, into one delta per record.
///
/// Only this type knows the effect of an event on a record's row. Loading and rebuilding both use
/// it, so they cannot differ. Memory is reused from fold to fold; in the steady state nothing is
/// allocated per row, except for long-text diffs and for compounds that were not flattened.
package struct RecordFold {
  package let columnCount: Int
  /// Columns of records that were not flattened, whose values in updates hold only what the update
  /// changed. By index; empty if there are none.
  let isCompound: [Bool]
  /// Columns of fields that no event has, so images in events keep their values. By index; empty if
  /// there are none.
  let isOnlyRead: [Bool]
  /// Columns of fields that Salesforce never leaves empty, each with a bit for its field: a field
  /// whose type has changed has several columns.
  private let neverEmpty: [(column: Int, bit: UInt8)]
  /// Deleted rows are removed, leaving a tombstone; otherwise they are marked.
  private let removesDeleted: Bool
  /// The rows are the complete history of their records. Otherwise the table may hold earlier
  /// state.
  let isFromNothing: Bool
  private let metadata: MetadataFields

  package internal(set) var deltas: [RecordDelta] = []
  /// Row-major, `columnCount` per delta.
  var cells: [DeltaCell] = []
  /// Computed values.
  var ownBytes: [UInt8] = []
  var pending: [PendingDiff] = []
  private var index = RecordIndex()

  /// The fold ends at this many bytes of computed values, because a short diff can give a value of
  /// up to 131,072 characters.
  static let maxOwnByteCount = 8 << 20
  /// The fold ends at this many bytes of cells. A delta has one cell per column, so the deltas of
  /// many records of a table with 800 columns would take ten times the memory of the rows.
  static let maxCellByteCount = 16 << 20

  /// The fields of `RowBuffer.Row.metadata` with the texts that a row keeps of its last event.
  struct MetadataFields {
    var eventID: Int
    var changeType: Int
    var commitUser: Int

    /// All metadata columns of the history table.
    static let history = MetadataFields(
      eventID: Self.index("_event_id"), changeType: Self.index("_change_type"),
      commitUser: Self.index("_commit_user"))

    static func index(_ name: String) -> Int {
      let columns = TableDefinition.fixedColumns(.history)
      guard let index = columns.firstIndex(where: { $0.name == name }) else {
        preconditionFailure("the history table has no column \(name)")
      }
      return index
    }
  }

  package init(columns: [TableColumn], removesDeleted: Bool) {
    self.init(
      columns: columns, removesDeleted: removesDeleted, isFromNothing: false, metadata: .history)
  }

  init(
    columns: [TableColumn], removesDeleted: Bool, isFromNothing: Bool, metadata: MetadataFields
  ) {
    self.columnCount = columns.count
    self.isCompound = columns.contains(where: \.isCompound) ? columns.map(\.isCompound) : []
    self.isOnlyRead = columns.contains(where: \.isOnlyRead) ? columns.map(\.isOnlyRead) : []
    self.neverEmpty = columns.enumerated().compactMap { index, column in
      Self.neverEmptyFields.firstIndex(of: column.path).map { (index, 1 << UInt8($0)) }
    }
    self.removesDeleted = removesDeleted
    self.isFromNothing = isFromNothing
    self.metadata = metadata
  }

  // MARK: - Folding

  /// Forgets all deltas, keeping the memory.
  package mutating func removeAll() {
    self.deltas.removeAll(keepingCapacity: true)
    self.cells.removeAll(keepingCapacity: true)
    self.ownBytes.removeAll(keepingCapacity: true)
    self.pending.removeAll(keepingCapacity: true)
    self.index.removeAll()
  }

  /// Forgets all deltas, keeping the memory that they needed.
  mutating func removeAllKeepingWhatIsUsed() {
    if self.deltas.isEmpty { self.index.removeAllAndMemory() }
    self.deltas.removeAllKeepingWhatIsUsed()
    self.cells.removeAllKeepingWhatIsUsed()
    self.ownBytes.removeAllKeepingWhatIsUsed()
    self.pending.removeAllKeepingWhatIsUsed()
    self.index.removeAll()
  }

  /// Folds rows into the deltas. The buffer must be that of the rows folded since `removeAll` or
  /// `detachLast`. It may lack the table's last columns, which its rows then do not hold.
  ///
  /// - Parameters:
  ///   - isSkipped: one element per row, from `rows.lowerBound`; empty skips none.
  ///   - gaps: those to be folded at their places among the rows. The folded ones are removed.
  /// - Returns: the first row that was not folded, or `rows.upperBound` if all were. The fold stops
  ///   when `awaitsValues` is true, and when the deltas have to be in the table before the next
  ///   row.
  mutating func fold(
    _ buffer: RowBuffer, rows: Range<Int>, isSkipped: [Bool] = [],
    gaps: inout ArraySlice<RowBuffer.Gap>
  ) -> Int {
    precondition(buffer.columnCount <= self.columnCount, "rows of another table")
    self.reserveDeltas(self.deltas.count + rows.count + gaps.count, buffer)
    for index in rows {
      if gaps.first?.place == index {
        if self.awaitsValues || self.isFull { return index }
        while let gap = gaps.first, gap.place == index {
          self.fold(gap, buffer)
          gaps.removeFirst()
        }
      }
      if !isSkipped.isEmpty && isSkipped[index - rows.lowerBound] { continue }
      let row = buffer.rows[index]
      switch row.change {
      case .overflow, .wildcard, .event: continue
      default: break
      }
      if row.recordID.isEmpty { continue }
      if self.awaitsValues || self.isFull { return index }
      let (delta, isNew) = self.findOrInsert(row, buffer)
      guard self.apply(row, to: delta, isNew: isNew, buffer) else { return index }
    }
    // Those after the last row of all.
    while let gap = gaps.first, gap.place == rows.upperBound, gap.place == buffer.rows.count {
      self.fold(gap, buffer)
      gaps.removeFirst()
    }
    return rows.upperBound
  }

  /// Folds rows without gaps.
  package mutating func fold(
    _ buffer: RowBuffer, rows: Range<Int>, isSkipped: [Bool] = []
  ) -> Int {
    var none: ArraySlice<RowBuffer.Gap> = []
    return self.fold(buffer, rows: rows, isSkipped: isSkipped, gaps: &none)
  }

  private mutating func fold(_ gap: RowBuffer.Gap, _ buffer: RowBuffer) {
    let (delta, isNew) = self.findOrInsert(gap.row, buffer)
    _ = self.apply(gap.row, to: delta, isNew: isNew, buffer)
  }

  /// Folds reads of different records.
  ///
  /// - Returns: the first place in `rows` that was not folded because there are too many deltas.
  mutating func fold(_ buffer: RowBuffer, rows: [Int], from first: Int) -> Int {
    self.reserveDeltas(self.deltas.count + rows.count - first, buffer)
    for place in first..<rows.count {
      if self.isFull { return place }
      let row = buffer.rows[rows[place]]
      let (delta, isNew) = self.findOrInsert(row, buffer)
      _ = self.apply(row, to: delta, isNew: isNew, buffer)
    }
    return rows.count
  }

  /// Returns false if the delta has to be in the table before this row can be folded.
  private mutating func apply(
    _ row: RowBuffer.Row, to delta: Int, isNew: Bool, _ buffer: RowBuffer
  ) -> Bool {
    if row.isContained {
      self.applyContained(row, to: delta, buffer)
      return true
    }
    switch row.change {
    case .read:
      self.beginRead(delta, row, isNew: isNew, buffer)
      self.deltas[delta].undelete()
    case .readDeletion:
      self.beginRead(delta, row, isNew: isNew, buffer)
      self.deltas[delta].delete(at: row.read?.stamp)
      self.deltas[delta].isRemoved = self.removesDeleted
      self.deltas[delta].isRevived = false
    case .readFields:
      if self.deltas[delta].isRemoved { return true }
      self.setCells(delta, row, buffer)
      // The row keeps what it has of its last event.
      guard isNew else { return true }
      self.deltas[delta].read = row.read
    case .create, .undelete:
      // A row that was removed has lost what was read of it.
      self.replace(
        delta, isPartial: self.lacksValue(row, buffer),
        keepsOnlyRead: !self.deltas[delta].isRemoved)
      self.deltas[delta].stale = .cleared
      self.deltas[delta].undelete()
      // Whatever the record was before no longer counts.
      if isNew || self.isFromNothing { self.deltas[delta].beginsWithImage = true }
      self.setCells(delta, row, buffer)
    case .update:
      if self.deltas[delta].isRemoved { return true }
      self.setCells(delta, row, buffer)
    case .gapUpdate, .unknown:
      if self.deltas[delta].isRemoved { return true }
      self.deltas[delta].stale = .set
    case .delete, .gapDelete:
      self.deltas[delta].delete(at: row.commitTimestamp)
      if self.removesDeleted {
        self.deltas[delta].isRemoved = true
        self.deltas[delta].isRevived = false
      }
    case .gapCreate, .gapUndelete:
      if self.deltas[delta].isRemoved {
        self.replace(delta, isPartial: true)
      } else if self.removesDeleted, !isNew, !self.deltas[delta].isReplacement,
        !self.deltas[delta].isRevived
      {
        // A tombstone, which only the table knows, decides whether the updates so far count.
        return false
      }
      self.deltas[delta].isRevived = true
      self.deltas[delta].stale = .set
      self.deltas[delta].undelete()
    case .overflow, .wildcard, .event: return true
    }
    self.deltas[delta].note(row)
    if row.read != nil { self.deltas[delta].hasEventAfterRead = false }
    return true
  }

  /// Fields that every record has, although events of some objects lack them
  /// (ChangeEvents.md#body).
  static let neverEmptyFields = [
    "CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById", "OwnerId",
  ]

  /// Whether a full image lacks a value that the record has, so that the record has to be read.
  private func lacksValue(_ row: RowBuffer.Row, _ buffer: RowBuffer) -> Bool {
    var missing = self.neverEmpty.reduce(0 as UInt8) { $0 | $1.bit }
    guard missing != 0 else { return false }
    for cell in buffer.cells[row.cells] where !cell.isNull {
      // Few columns, so searching is fast.
      for (column, bit) in self.neverEmpty where column == Int(cell.column) { missing &= ~bit }
    }
    return missing != 0
  }

  /// The deltas have to be in the table before more rows can be folded. A fold from nothing is
  /// never full, because it has no table.
  var isFull: Bool {
    guard !self.isFromNothing else { return false }
    return self.ownBytes.count >= Self.maxOwnByteCount
      || self.cells.count * MemoryLayout<DeltaCell>.stride >= Self.maxCellByteCount
  }

  mutating func replace(_ delta: Int, isPartial: Bool, keepsOnlyRead: Bool = false) {
    self.deltas[delta].isReplacement = true
    self.deltas[delta].isPartial = isPartial
    self.deltas[delta].isRemoved = false
    self.deltas[delta].isRevived = true
    self.deltas[delta].pendingDiffCount = 0
    self.deltas[delta].read = nil
    let start = delta * self.columnCount
    for column in 0..<self.columnCount
    where !keepsOnlyRead || self.isOnlyRead.isEmpty || !self.isOnlyRead[column] {
      self.cells[start + column] = .null
    }
  }

  /// Applies the values and nulls of the row; absent columns keep their state.
  ///
  /// - Parameter keepsRead: also keeps the values of the record's newest read.
  mutating func setCells(
    _ delta: Int, _ row: RowBuffer.Row, keepsRead: Bool = false, _ buffer: RowBuffer
  ) {
    for cell in buffer.cells[row.cells] {
      let target = delta * self.columnCount + Int(cell.column)
      if keepsRead && self.cells[target].isRead { continue }
      if !cell.isNull && (cell.isDiff || self.holdsParts(cell, buffer)) {
        self.patch(delta, target, with: cell, buffer)
        continue
      }
      if self.cells[target].isPending { self.deltas[delta].pendingDiffCount -= 1 }
      self.cells[target] =
        cell.isNull ? .null : .value(offset: cell.offset, count: cell.count, isOwn: false)
    }
  }

  // MARK: - Reading

  package func cell(_ delta: Int, column: Int) -> DeltaCell {
    self.cells[delta * self.columnCount + column]
  }

  /// The columns of a delta, in the table's order.
  func cells(of delta: Int) -> ArraySlice<DeltaCell> {
    self.cells[delta * self.columnCount..<(delta + 1) * self.columnCount]
  }

  /// Runs a closure with the bytes that deltas point into: those of the folded rows and the fold's
  /// own.
  func withBytes<Result>(
    _ buffer: RowBuffer,
    _ body: (_ rows: UnsafeBufferPointer<UInt8>, _ own: UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    try buffer.bytes.withUnsafeBufferPointer { rows in
      try self.ownBytes.withUnsafeBufferPointer { own in try body(rows, own) }
    }
  }

  package func withValue<Result>(
    _ cell: DeltaCell, _ buffer: RowBuffer,
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    try self.withBytes(buffer) { rows, own in
      let start = Int(cell.offset)
      let source = cell.isOwn ? own : rows
      return try body(UnsafeBufferPointer(rebasing: source[start..<start + Int(cell.count)]))
    }
  }

  static func withBytes<Result>(
    _ buffer: RowBuffer, _ offset: UInt32, _ count: Int32,
    _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    buffer.bytes.withUnsafeBufferPointer {
      body(UnsafeBufferPointer(rebasing: $0[Int(offset)..<Int(offset) + Int(count)]))
    }
  }

  /// The texts that the row keeps of the delta's last event, in the fold's own bytes if detached,
  /// otherwise in those of the folded rows.
  func lastEvent(_ delta: RecordDelta, _ buffer: RowBuffer) -> RecordDelta.LastEvent {
    if let detached = delta.detached { return detached }
    let fields = delta.lastMetadata
    return RecordDelta.LastEvent(
      eventID: Self.metadataField(self.metadata.eventID, of: fields, buffer),
      changeType: Self.metadataField(self.metadata.changeType, of: fields, buffer),
      commitUser: Self.metadataField(self.metadata.commitUser, of: fields, buffer))
  }

  /// Where a metadata field's value is; nil when it is null.
  static func metadataField(
    _ index: Int, of metadata: Range<Int>, _ buffer: RowBuffer
  ) -> Range<Int>? {
    var offset = metadata.lowerBound
    for field in 0...index {
      var count: Int32 = 0
      for byte in buffer.bytes[offset..<offset + 4] { count = count << 8 | Int32(byte) }
      offset += 4
      guard count >= 0 else { continue }
      if field == index { return offset..<offset + Int(count) }
      offset += Int(count)
    }
    return nil
  }

  // MARK: - Continuing with other rows

  /// Forgets all deltas except the last, and detaches it from its rows, so that rows of another
  /// buffer can follow.
  mutating func detachLast(_ buffer: RowBuffer) {
    guard var delta = self.deltas.last else { return }
    precondition(delta.pendingDiffCount == 0, "diffs of a record whose table state is known")
    let event = self.lastEvent(delta, buffer)
    let wasDetached = delta.detached != nil
    var bytes: [UInt8] = []
    let cells = self.withBytes(buffer) { rows, own in
      let texts = wasDetached ? own : rows
      func keep(_ range: Range<Int>, of source: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        bytes.append(contentsOf: source[range])
        return bytes.count - range.count..<bytes.count
      }
      delta.recordID = keep(delta.recordID, of: delta.isIDOwn ? own : rows)
      delta.detached = RecordDelta.LastEvent(
        eventID: event.eventID.map { keep($0, of: texts) },
        changeType: event.changeType.map { keep($0, of: texts) },
        commitUser: event.commitUser.map { keep($0, of: texts) })
      return self.cells(of: self.deltas.count - 1).map { cell in
        guard cell.isSet, !cell.isNull else { return cell }
        let start = Int(cell.offset)
        let range = keep(start..<start + Int(cell.count), of: cell.isOwn ? own : rows)
        var kept = DeltaCell.value(
          offset: UInt32(range.lowerBound), count: cell.count, isOwn: true)
        kept.isStale = cell.isStale
        kept.isRead = cell.isRead
        return kept
      }
    }
    delta.isIDOwn = true
    self.removeAll()
    self.deltas.append(delta)
    self.cells.append(contentsOf: cells)
    self.ownBytes = bytes
    self.index.insert(0, id: bytes[delta.recordID])
  }

  // MARK: - Finding a record's delta

  package func recordID(_ delta: Int, _ buffer: RowBuffer) -> String {
    String(decoding: self.idBytes(delta, buffer), as: UTF8.self)
  }

  private func idBytes(_ delta: Int, _ buffer: RowBuffer) -> ArraySlice<UInt8> {
    let delta = self.deltas[delta]
    return (delta.isIDOwn ? self.ownBytes : buffer.bytes)[delta.recordID]
  }

  /// The delta of a record ID.
  func index(of id: UnsafeBufferPointer<UInt8>, _ buffer: RowBuffer) -> Int? {
    self.index.delta(of: id) { self.idBytes($0, buffer).elementsEqual(id) }
  }

  private mutating func findOrInsert(
    _ row: RowBuffer.Row, _ buffer: RowBuffer
  ) -> (delta: Int, isNew: Bool) {
    let id = buffer.bytes[row.recordID]
    let known = self.index.delta(of: id) { self.idBytes($0, buffer).elementsEqual(id) }
    if let known { return (known, false) }
    self.index.insert(self.deltas.count, id: id)
    self.deltas.append(RecordDelta(row, isReplacement: self.isFromNothing))
    self.cells.append(
      contentsOf: repeatElement(self.isFromNothing ? .null : .kept, count: self.columnCount))
    return (self.deltas.count - 1, true)
  }

  private mutating func reserveDeltas(_ count: Int, _ buffer: RowBuffer) {
    guard self.index.needsRoom(for: count) else { return }
    self.index.removeAllReserving(count)
    for delta in self.deltas.indices { self.index.insert(delta, id: self.idBytes(delta, buffer)) }
  }
}
