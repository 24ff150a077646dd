import Pipeline

/// The rows of one table that one transaction writes, in stream order, as PostgreSQL takes them.
///
/// Filled batch by batch, kept until the transaction is known to be committed, so that it can be
/// sent again; memory is reused. Every row has a cell for each of the table's data columns, in the
/// table's order; metadata is in `Row`. Values are in PostgreSQL's binary format (`COPY … (FORMAT
/// binary)`, without the length word), in one byte array.
package struct RowBuffer {
  /// A value, a null or nothing.
  package struct Cell {
    /// Of the value in `bytes`; `absentOffset` when the event does not hold the column.
    package var offset: UInt32
    /// -1 is null.
    package var count: Int32
    /// The value is a long-text diff (contract/cdc.md section 7), not the value.
    package var isDiff: Bool

    package static let absentOffset = UInt32.max
    package static let absent = Cell(offset: absentOffset, count: -1, isDiff: false)
    package static let null = Cell(offset: 0, count: -1, isDiff: false)

    package init(offset: UInt32, count: Int32, isDiff: Bool) {
      self.offset = offset
      self.count = count
      self.isDiff = isDiff
    }

    package var isAbsent: Bool { self.offset == Self.absentOffset }
    package var isNull: Bool { !self.isAbsent && self.count < 0 }
  }

  package enum Change: UInt8 {
    case create, update, delete, undelete
    case gapCreate, gapUpdate, gapDelete, gapUndelete, overflow, wildcard
    /// A platform event, or a change type this program does not know: history only.
    case other
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
  }

  package var bytes: [UInt8] = []
  package var rows: [Row] = []
  /// Row-major, `columnCount` per row.
  package var cells: [Cell] = []
  package let columnCount: Int

  package init(columnCount: Int) { self.columnCount = columnCount }

  package var byteCount: Int { self.bytes.count + self.cells.count * 12 + self.rows.count * 96 }

  /// Keeps the memory that was used.
  package mutating func removeAll() {
    self.bytes.removeAllKeepingWhatIsUsed()
    self.rows.removeAllKeepingWhatIsUsed()
    self.cells.removeAllKeepingWhatIsUsed()
  }
}

extension Array {
  /// Gives memory back of which less than a quarter was used: buffers of many tables, each as large
  /// as it was needed once, would add up.
  mutating func removeAllKeepingWhatIsUsed() {
    self.removeAll(keepingCapacity: self.count >= self.capacity / 4)
  }
}
