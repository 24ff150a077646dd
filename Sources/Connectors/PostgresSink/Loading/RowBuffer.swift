import Pipeline

/// The rows that one transaction writes to one table, in stream order and in PostgreSQL's format.
///
/// Filled batch by batch and kept until the transaction is known to be committed, so that it can be
/// sent again; memory is reused. A row has cells only for the data columns that its event holds,
/// which are few for an update of a wide table; metadata is in `Row`. Values are in PostgreSQL's
/// binary format (`COPY … (FORMAT binary)`, without the length word), in one byte array.
package struct RowBuffer {
  /// A value or a null.
  package struct Cell {
    /// The offset of the value in `bytes`.
    package var offset: UInt32
    /// -1 is null.
    package var count: Int32
    /// Index into the table's data columns, of which there are 1,600 at most.
    package var column: UInt16
    /// The value is a long-text diff (ChangeEvents.md#long-texts), not the value.
    package var isDiff: Bool

    /// - Parameter range: of the value in `bytes`.
    package init(column: Int, _ range: Range<Int>, isDiff: Bool = false) {
      self.offset = UInt32(truncatingIfNeeded: range.lowerBound)
      self.count = Int32(range.count)
      self.column = UInt16(column)
      self.isDiff = isDiff
    }

    /// A null.
    package init(nullOf column: Int) {
      self.offset = 0
      self.count = -1
      self.column = UInt16(column)
      self.isDiff = false
    }

    package var isNull: Bool { self.count < 0 }
  }

  package enum Change: UInt8 {
    case create, update, delete, undelete
    case gapCreate, gapUpdate, gapDelete, gapUndelete, overflow, wildcard
    /// A change type that this program does not know, and so an unknown change of the record.
    case unknown
    /// A platform event: history only.
    case event
    /// A record as it was read, and a record that was read as deleted.
    case read, readDeletion
    /// Some fields of a record, read for columns that rows lack. Everything else is unchanged.
    case readFields
  }

  /// Details of a record's read.
  package struct Read: Equatable {
    /// `SystemModstamp`, milliseconds since 1970.
    package var stamp: Int64
    /// When the record was requested, milliseconds since 1970 by the database's clock.
    package var readAt: Int64
    /// Every field with a column in the current schema was read.
    package var isWhole: Bool
  }

  package struct Row {
    package var change: Change
    package var epoch: Int32
    package var ordinal: Int64
    /// Milliseconds since 1970; nil for platform events.
    package var commitTimestamp: Int64?
    /// UTF-8 of the record ID; empty for platform events.
    package var recordID: Range<Int>
    package var eventID: Range<Int>
    /// The metadata columns of the history table as fields of a binary COPY, length words included.
    package var metadata: Range<Int>
    package var metadataFieldCount: Int
    /// In `cells`. Rows of one event may share them.
    package var cells: Range<Int>
    /// Set for a record that was read.
    package var read: Read?
    /// The record's newest read has the event already; see `ReadMerge`.
    package var isContained = false
  }

  /// An event that became a dead letter, in the form of a gap of its record: the history has no row
  /// for it.
  struct Gap {
    /// The row that it precedes; the number of rows if it follows all of them.
    var place: Int
    var row: Row
  }

  package var bytes: [UInt8] = []
  package var rows: [Row] = []
  /// In the order of their places.
  private(set) var gaps: [Gap] = []
  /// Row by row, values in the order of the columns.
  package var cells: [Cell] = []
  package let columnCount: Int

  package init(columnCount: Int) { self.columnCount = columnCount }

  /// Memory in use.
  package var byteCount: Int {
    self.bytes.count + self.cells.count * MemoryLayout<Cell>.stride
      + self.rows.count * MemoryLayout<Row>.stride + self.gaps.count * MemoryLayout<Gap>.stride
  }

  package var isEmpty: Bool { self.rows.isEmpty && self.gaps.isEmpty }

  /// Removes all rows and keeps the memory.
  package mutating func removeAll() {
    self.bytes.removeAllKeepingWhatIsUsed()
    self.rows.removeAllKeepingWhatIsUsed()
    self.cells.removeAllKeepingWhatIsUsed()
    self.gaps.removeAllKeepingWhatIsUsed()
  }

  /// Appends a dead letter of a known record; other letters concern no row.
  mutating func appendGap(_ letter: ResyncTable.Entry) {
    guard let row = self.gap(letter) else { return }
    self.gaps.append(Gap(place: self.rows.count, row: row))
  }

  /// Appends the texts of a dead letter. An overflow event has no record, and a wildcard event has
  /// a key prefix (ChangeEvents.md#gaps-overflows-and-wildcards).
  mutating func gap(_ letter: ResyncTable.Entry) -> Row? {
    guard let recordID = letter.recordID, !recordID.hasSuffix("*"),
      recordID != "000000000000000AAA", let epoch = letter.epoch, let ordinal = letter.ordinal
    else { return nil }
    let start = self.bytes.count
    for field in 0..<Self.gapFieldCount {
      let text = field == RecordFold.MetadataFields.history.eventID ? letter.eventID?.utf8 : nil
      withUnsafeBytes(of: (text.map { Int32($0.count) } ?? -1).bigEndian) {
        self.bytes.append(contentsOf: $0)
      }
      if let text { self.bytes.append(contentsOf: text) }
    }
    let metadata = start..<self.bytes.count
    self.bytes.append(contentsOf: recordID.utf8)
    return Row(
      change: .gapUpdate, epoch: epoch, ordinal: ordinal, commitTimestamp: letter.commitTimestamp,
      recordID: metadata.upperBound..<self.bytes.count, eventID: 0..<0, metadata: metadata,
      metadataFieldCount: Self.gapFieldCount, cells: 0..<0)
  }

  private static let gapFieldCount = TableDefinition.fixedColumns(.history).count
}

extension Array {
  /// Releases memory if less than a quarter of it was used. Otherwise the buffers of many tables
  /// would each keep their largest size.
  mutating func removeAllKeepingWhatIsUsed() {
    self.removeAll(keepingCapacity: self.count >= self.capacity / 4)
  }
}
