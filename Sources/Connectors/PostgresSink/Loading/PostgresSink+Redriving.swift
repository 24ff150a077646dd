internal import Pipeline
internal import PostgresClient

/// Loads events of dead letters, long after the events that followed them.
///
/// A history takes rows that it lacks, by (`_event_id`, `_record_id`), and the current rows of
/// those records are rebuilt from it, so repeating the load changes nothing. Without a history the
/// event's place among the others is unknown, so its records are marked and repair reads them
/// again.
extension PostgresSink {
  func noteRedriven(_ batch: RecordBatch) {
    for event in batch.events {
      self.open.redriven.append(
        (
          EventPlace(topic: batch.layout.topic, epoch: batch.epoch, ordinal: event.ordinal),
          PostgresText.storable(String(decoding: batch.bytes(event.eventID), as: UTF8.self)),
          ReplayID(batch.bytes(event.replayID)).hex
        ))
    }
  }

  /// Marks the records of some rows as stale, so that repair reads them again.
  func markForRepair(_ rows: PendingRows, _ range: Range<Int>) throws {
    try rows.loader.noteDeadLetters(
      range.map { rows.deadLetter(ofRow: $0) }, over: self.connection)
  }

  /// Closes the notes about redriven events, which can be decoded now even if their rows were
  /// refused. The notes about events that were refused again stay open.
  func closeRedriven(of commit: SealedCommit) throws(PostgresError) {
    guard commit.isRedriving else { return }
    let refused = Set(commit.refused(by: self.name).map { EventPlace($0) })
    let events = commit.content.redriven.filter { !refused.contains($0.place) }
    try ResyncTable.closeUndecoded(
      eventIDs: events.map(\.eventID).filter { !$0.isEmpty },
      replayIDs: events.filter(\.eventID.isEmpty).map(\.replayID),
      schema: self.configuration.schema, over: self.connection)
  }
}
