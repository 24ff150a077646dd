extension RecordBatch {
  /// One row: the addresses of its cells, its presence bytes and the arena.
  ///
  /// Holds nothing but three addresses, so that reading a cell costs no call and no reference
  /// count. Cells and presence are valid until the next row is added, bytes until the arena grows.
  @usableFromInline package struct Row {
    /// `layout.slotCount` of them.
    @usableFromInline package let cells: UnsafeMutablePointer<UInt64>
    /// Their number is rounded up to a multiple of 8; those beyond `layout.slotCount` stay 0.
    @usableFromInline package let presence: UnsafeMutablePointer<UInt8>
    @usableFromInline let arena: UnsafeMutablePointer<UInt8>

    @inlinable @inline(__always)
    init(
      cells: UnsafeMutablePointer<UInt64>, presence: UnsafeMutablePointer<UInt8>,
      arena: UnsafeMutablePointer<UInt8>
    ) {
      self.cells = cells
      self.presence = presence
      self.arena = arena
    }

    /// False for a slot that is absent or null.
    @inlinable @inline(__always)
    package func hasValue(_ slot: Int) -> Bool { self.presence[slot] == Presence.value }

    /// Nil for a slot that is absent or null.
    @inlinable @inline(__always)
    package func value(_ slot: Int) -> UInt64? { self.hasValue(slot) ? self.cells[slot] : nil }

    /// Bytes of a cell that holds a range.
    @inlinable @inline(__always)
    package func bytes(_ cell: UInt64) -> UnsafeBufferPointer<UInt8> {
      let range = Range(cell: cell)
      return UnsafeBufferPointer(start: self.arena + range.offset, count: range.count)
    }

    /// Bytes of a slot that holds a range; empty if it is absent or null.
    @inlinable @inline(__always)
    package func text(_ slot: Int) -> UnsafeBufferPointer<UInt8> {
      self.value(slot).map { self.bytes($0) } ?? UnsafeBufferPointer(start: nil, count: 0)
    }

    @inlinable @inline(__always)
    package func set(_ slot: Int, to cell: UInt64) {
      self.cells[slot] = cell
      self.presence[slot] = Presence.value
    }

    @inlinable @inline(__always)
    package func set(_ slot: Int, to range: Range) { self.set(slot, to: range.cell) }
  }

  /// Appends the record IDs of an event's rows, joined by commas. Together with the event's ID they
  /// identify it among events with the same replay ID.
  package func appendRecordIDs(of event: Event, to joined: inout [UInt8]) {
    if let recordIDs = event.recordIDs {
      joined.append(contentsOf: self.bytes(recordIDs))
      return
    }
    let start = joined.count
    for index in event.firstRow..<event.firstRow + event.rowCount {
      let row = self.row(index)
      for slot in MetadataSlot.recordID...MetadataSlot.recordIDs where slot < self.layout.slotCount
      {
        guard let cell = row.value(slot) else { continue }
        if joined.count > start { joined.append(UInt8(ascii: ",")) }
        joined.append(contentsOf: row.bytes(cell))
      }
    }
  }
}
