extension RecordBatch {
  /// Leaves out the rows for which `keeps` is false; events stay, if need be without rows, and keep
  /// their names.
  ///
  /// - Parameter keeps: called once for each row, in order; must not change the batch.
  public func keepRows(where keeps: (Row) throws -> Bool) rethrows {
    var kept = 0
    var verdicts: [Bool] = []
    for index in self.events.indices {
      let rows =
        self.events[index].firstRow..<self.events[index].firstRow + self.events[index].rowCount
      verdicts.removeAll(keepingCapacity: true)
      for row in rows { verdicts.append(try keeps(self.row(row))) }
      if self.events[index].recordIDs == nil, verdicts.contains(false) {
        self.nameRows(ofEvent: index)
      }
      self.events[index].firstRow = kept
      for (row, isKept) in zip(rows, verdicts) where isKept {
        self.moveRow(row, to: kept)
        kept += 1
      }
      self.events[index].rowCount = kept - self.events[index].firstRow
    }
    self.truncate(rows: kept, arena: self.arenaCount)
  }

  /// Keeps the record IDs of an event that is about to lose rows.
  private func nameRows(ofEvent index: Int) {
    var recordIDs: [UInt8] = []
    self.appendRecordIDs(of: self.events[index], to: &recordIDs)
    self.events[index].recordIDs = recordIDs.withUnsafeBufferPointer { self.append($0) }
  }
}
