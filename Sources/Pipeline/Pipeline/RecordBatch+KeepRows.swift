extension RecordBatch {
  /// Removes the rows for which `keeps` is false. Events stay, even without rows, and keep their
  /// identity.
  ///
  /// - Parameter keeps: called once for each row, in order, with the index of its event; must not change
  ///   the batch, but may refuse the event.
  package func keepRows(where keeps: (Row, _ event: Int) throws -> Bool) rethrows {
    var kept = 0
    var verdicts: [Bool] = []
    for index in self.events.indices {
      let rows =
        self.events[index].firstRow..<self.events[index].firstRow + self.events[index].rowCount
      verdicts.removeAll(keepingCapacity: true)
      for row in rows { verdicts.append(try keeps(self.row(row), index)) }
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

  /// Removes refused events with their rows.
  func removeRefusedEvents() {
    let refused = Set(self.refusals.map(\.event))
    var keptRows = 0
    var keptEvents: [Event] = []
    for (index, event) in self.events.enumerated() where !refused.contains(index) {
      var event = event
      for offset in 0..<event.rowCount {
        self.moveRow(event.firstRow + offset, to: keptRows + offset)
      }
      event.firstRow = keptRows
      keptRows += event.rowCount
      keptEvents.append(event)
    }
    self.events = keptEvents
    self.truncate(rows: keptRows, arena: self.arenaCount)
    self.removeRefusals()
  }

  /// Keeps the record IDs of an event that is about to lose rows.
  private func nameRows(ofEvent index: Int) {
    let event = self.events[index]
    // The text of a single ID stays where it is.
    if event.rowCount == 1, let cell = self.row(event.firstRow).value(MetadataSlot.recordID) {
      self.events[index].recordIDs = Range(cell: cell)
      return
    }
    var recordIDs: [UInt8] = []
    self.appendRecordIDs(of: event, to: &recordIDs)
    self.events[index].recordIDs = recordIDs.withUnsafeBufferPointer { self.append($0) }
  }
}
