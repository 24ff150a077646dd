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

  package var bytes: [UInt8] = []
  package var rows: [Row] = []
  /// Row by row, values in the order of the columns.
  package var cells: [Cell] = []
  package let columnCount: Int

  package init(columnCount: Int) { self.columnCount = columnCount }

  /// Memory in use.
  package var byteCount: Int {
    self.bytes.count + self.cells.count * MemoryLayout<Cell>.stride
      + self.rows.count * MemoryLayout<Row>.stride
  }

  /// Removes all rows and keeps the memory.
  package mutating func removeAll() {
    self.bytes.removeAllKeepingWhatIsUsed()
    self.rows.removeAllKeepingWhatIsUsed()
    self.cells.removeAllKeepingWhatIsUsed()
  }
}

extension Array {
  /// Releases memory if less than a quarter of it was used. Otherwise the buffers of many tables
  /// would each keep their largest size.
  mutating func removeAllKeepingWhatIsUsed() {
    self.removeAll(keepingCapacity: self.count >= self.capacity / 4)
  }
}
