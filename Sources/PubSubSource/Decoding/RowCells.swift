internal import Pipeline

/// The cells of one row; valid until a row is added.
struct RowCells {
  let cells: UnsafeMutablePointer<UInt64>
  let presence: UnsafeMutablePointer<UInt8>

  /// The row the visitor was aimed at.
  init(_ visitor: borrowing RowVisitor) {
    self.cells = visitor.cells
    self.presence = visitor.presence
  }

  init(_ batch: RecordBatch, row: Int) {
    self.cells = batch.cells(ofRow: row)
    self.presence = batch.presence(ofRow: row)
  }

  /// Nil for a cell that is absent or null.
  @inline(__always)
  func value(_ slot: Int) -> UInt64? {
    self.presence[slot] == RecordBatch.Presence.value ? self.cells[slot] : nil
  }

  @inline(__always)
  func set(_ slot: Int, to cell: UInt64) {
    self.cells[slot] = cell
    self.presence[slot] = RecordBatch.Presence.value
  }

  @inline(__always)
  func set(_ slot: Int, to range: RecordBatch.Range) { self.set(slot, to: range.cell) }
}
