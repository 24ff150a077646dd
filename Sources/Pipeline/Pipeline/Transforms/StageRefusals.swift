/// Events and records that the stages of a chain could not process.
struct StageRefusals {
  private var events: [RefusedEvent] = []
  private var records: [UnreadableRecord] = []

  /// Removes the events that a stage has refused from a batch.
  ///
  /// - Parameters:
  ///   - stage: kind and place of the stage, for the reason.
  ///   - sink: the sink that the stage belongs to; nil for a stage of the whole pipeline.
  mutating func take(from batch: RecordBatch, stage: String, sink: String?) {
    for refusal in batch.refusals {
      let event = batch.events[refusal.event]
      let reason = "\(stage): \(refusal.reason)"
      if event.kind == .snapshot {
        self.records.append(
          UnreadableRecord(
            recordID: batch.recordID(of: event), stamp: event.commitTimestamp, reason: reason))
      } else {
        self.events.append(
          RefusedEvent(
            topic: batch.layout.topic, epoch: batch.epoch, ordinal: event.ordinal, reason: reason,
            refusal: sink.map { DeadLetter.Refusal(sink: $0) }))
      }
    }
    batch.removeRefusedEvents()
  }

  mutating func takeEvents() -> [RefusedEvent] {
    defer { self.events.removeAll() }
    return self.events
  }

  mutating func takeRecords() -> [UnreadableRecord] {
    defer { self.records.removeAll() }
    return self.records
  }
}
