extension RecordBatch {
  /// Appends the record IDs of an event's rows, joined: with the event's ID its name among events
  /// with one replay ID.
  package func appendRecordIDs(of event: Event, to joined: inout [UInt8]) {
    let start = joined.count
    for row in event.firstRow..<event.firstRow + event.rowCount {
      for slot in MetadataSlot.recordID...MetadataSlot.recordIDs
      where slot < self.layout.slotCount && self.presence(ofRow: row)[slot] == Presence.value {
        if joined.count > start { joined.append(UInt8(ascii: ",")) }
        joined.append(contentsOf: self.bytes(Range(cell: self.cells(ofRow: row)[slot])))
      }
    }
  }
}
