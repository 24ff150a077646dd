internal import Pipeline
internal import PostgresClient

/// An event of a dead letter that is being loaded.
struct RedrivenEvent {
  var place: PostgresSink.EventPlace
  var eventID: String
  /// Hexadecimal.
  var replayID: String
}

/// Loading events of dead letters, long after those that followed them.
///
/// A history takes what it does not hold yet, by (`_event_id`, `_record_id`), and the current rows of
/// those records are rebuilt from it, so that the same again changes nothing. Without a history the
/// place of the event among the others cannot be found: its records are marked, and read again by
/// repair.
extension PostgresSink {
  func noteRedriven(_ batch: RecordBatch) {
    self.isRedriving = true
    for event in batch.events {
      self.redriven.append(
        RedrivenEvent(
          place: EventPlace(
            topic: batch.layout.topic, epoch: batch.epoch, ordinal: event.ordinal),
          eventID: PostgresText.storable(
            String(decoding: batch.bytes(event.eventID), as: UTF8.self)),
          replayID: ReplayID(batch.bytes(event.replayID)).hex))
    }
  }

  /// Marks the records of some rows as stale, so that repair reads them again.
  func markForRepair(_ rows: PendingRows, _ range: Range<Int>) throws {
    try rows.loader.noteDeadLetters(
      range.map { rows.deadLetter(ofRow: $0) }, over: self.connection)
  }

  /// The events are known now, whatever has become of their rows.
  ///
  /// - Parameter refused: these are as they were.
  func closeRedriven(but refused: [RefusedEvent]) throws(PostgresError) {
    guard !self.redriven.isEmpty else { return }
    let refused = Set(refused.map { EventPlace($0) })
    let events = self.redriven.filter { !refused.contains($0.place) }
    try ResyncTable.closeUndecoded(
      eventIDs: events.map(\.eventID).filter { !$0.isEmpty },
      replayIDs: events.filter(\.eventID.isEmpty).map(\.replayID),
      schema: self.configuration.schema, over: self.connection)
  }
}
