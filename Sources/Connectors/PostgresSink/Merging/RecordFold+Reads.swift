// Records that were read. A partial read lacks the fields that the user may not see or that REST
// does not have. For these fields all earlier values count, including those of events that the read
// contains. Everything that can be read of the record has been read, so its row is not partial.
extension RecordFold {
  mutating func beginRead(_ delta: Int, _ row: RowBuffer.Row, isNew: Bool, _ buffer: RowBuffer) {
    if row.read?.isWhole == false {
      self.beginPartialRead(delta, isNew: isNew)
      let start = delta * self.columnCount
      for cell in buffer.cells[row.cells] {
        var value =
          cell.isNull
          ? DeltaCell.null : .value(offset: cell.offset, count: cell.count, isOwn: false)
        value.isRead = true
        self.cells[start + Int(cell.column)] = value
      }
    } else {
      self.replace(delta, isPartial: false)
      self.setCells(delta, row, buffer)
    }
    self.deltas[delta].stale = .cleared
    self.deltas[delta].beginsWithImage = true
    self.deltas[delta].read = row.read
  }

  private mutating func beginPartialRead(_ delta: Int, isNew: Bool) {
    self.deltas[delta].isReplacement = true
    self.deltas[delta].isRemoved = false
    self.deltas[delta].isRevived = true
    let columns = delta * self.columnCount..<(delta + 1) * self.columnCount
    self.deltas[delta].isPartial = false
    if isNew {
      for index in columns { self.cells[index] = .kept }
    }
    for index in columns { self.cells[index].isRead = false }
  }

  /// Takes the fields that the newest read lacks from an event that the read contains.
  mutating func applyContained(_ row: RowBuffer.Row, to delta: Int, _ buffer: RowBuffer) {
    guard self.deltas[delta].read?.isWhole == false else { return }
    switch row.change {
    case .create, .undelete:
      let start = delta * self.columnCount
      for column in 0..<self.columnCount where !self.cells[start + column].isRead {
        if !self.isOnlyRead.isEmpty, self.isOnlyRead[column] { continue }
        self.cells[start + column] = .null
      }
      self.setCells(delta, row, keepsRead: true, buffer)
    case .update, .readFields:
      self.setCells(delta, row, keepsRead: true, buffer)
    case .gapCreate, .gapUpdate, .gapUndelete, .unknown, .delete, .gapDelete, .overflow, .wildcard,
      .event, .read, .readDeletion:
      break
    }
  }
}
