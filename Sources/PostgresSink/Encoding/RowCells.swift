internal import Pipeline

/// What encoding one row reads; valid while its batch is not changed.
struct RowCells {
  let cells: UnsafeMutablePointer<UInt64>
  let presence: UnsafeMutablePointer<UInt8>
  let arena: UnsafeMutablePointer<UInt8>

  init(_ row: Int, of batch: RecordBatch) {
    self.cells = batch.cells(ofRow: row)
    self.presence = batch.presence(ofRow: row)
    self.arena = batch.arenaBase
  }

  @inline(__always)
  func bytes(_ cell: UInt64) -> UnsafeBufferPointer<UInt8> {
    let range = RecordBatch.Range(cell: cell)
    return UnsafeBufferPointer(start: self.arena + range.offset, count: range.count)
  }

  /// Nil unless the slot has a value.
  @inline(__always)
  func value(_ slot: Int) -> UInt64? {
    self.presence[slot] == RecordBatch.Presence.value ? self.cells[slot] : nil
  }

  /// Empty unless the slot has a value.
  @inline(__always)
  func text(_ slot: Int) -> UnsafeBufferPointer<UInt8> {
    self.value(slot).map { self.bytes($0) } ?? UnsafeBufferPointer(start: nil, count: 0)
  }
}
