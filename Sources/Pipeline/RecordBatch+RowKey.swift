extension RecordBatch {
  /// Record IDs of an event's rows, joined: with the event's ID its name among events with one
  /// replay ID.
  package func recordIDs(of event: Event) -> [UInt8] {
    var joined: [UInt8] = []
    for row in event.firstRow..<event.firstRow + event.rowCount {
      for slot in [MetadataSlot.recordID, MetadataSlot.recordIDs]
      where slot < self.layout.slotCount && self.presence(ofRow: row)[slot] == Presence.value {
        if !joined.isEmpty { joined.append(UInt8(ascii: ",")) }
        joined.append(contentsOf: self.bytes(Range(cell: self.cells(ofRow: row)[slot])))
      }
    }
    return joined
  }
}
