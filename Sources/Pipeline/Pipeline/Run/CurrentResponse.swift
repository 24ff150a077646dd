/// What is known of the response in hand while its events are taken. Memory is reused.
struct CurrentResponse {
  /// The last event taken, with which the next one is compared and at which the response ends.
  private(set) var previous = PreviousEvent()
  /// The record IDs of the current event, joined, which identify it among events with the same
  /// replay ID; empty unless the topic is a channel, since these occur only there.
  private(set) var recordIDs: [UInt8] = []
  /// Commit times that are later than this are in the future and are ignored.
  private(set) var latestCommit = Int64.max
  /// Newest plausible commit time, milliseconds since 1970.
  private(set) var newestCommit: Int64?

  mutating func begin(latestCommit: Int64) {
    self.latestCommit = latestCommit
    self.newestCommit = nil
    self.previous.beginResponse()
  }

  /// Notes the record IDs of the last event of a batch.
  mutating func readRecordIDs(in batch: RecordBatch, isChannel: Bool) {
    self.recordIDs.removeAll(keepingCapacity: true)
    guard isChannel else { return }
    batch.appendRecordIDs(of: batch.events[batch.events.count - 1], to: &self.recordIDs)
  }

  /// Notes events of a batch that are taken, at least one.
  mutating func took(_ events: Range<Int>, of batch: RecordBatch) {
    let last = batch.events[events.upperBound - 1]
    self.previous.replace(
      replayID: batch.bytes(last.replayID), eventID: batch.bytes(last.eventID),
      transactionKey: batch.bytes(last.transactionKey))
    for index in events {
      guard let time = batch.events[index].commitTimestamp, CommitTime.range.contains(time),
        time <= self.latestCommit
      else { continue }
      self.newestCommit = max(self.newestCommit ?? time, time)
    }
  }

  /// Notes an event that could not be decoded. Its transaction is unknown, so the next event is
  /// compared with that of the one before.
  mutating func tookUndecoded(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>
  ) {
    self.previous.replace(replayID: replayID, eventID: eventID, transactionKey: nil)
  }
}

struct PreviousEvent {
  /// Empty until an event of the response has been taken.
  private(set) var replayID: [UInt8] = []
  private(set) var eventID: [UInt8] = []
  private var transactionKey: [UInt8] = []

  mutating func beginResponse() { self.replayID.removeAll(keepingCapacity: true) }

  mutating func replace(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>,
    transactionKey: UnsafeBufferPointer<UInt8>?
  ) {
    self.replayID.replaceAll(with: replayID)
    self.eventID.replaceAll(with: eventID)
    if let transactionKey { self.transactionKey.replaceAll(with: transactionKey) }
  }

  func isOf(transactionKey: UnsafeBufferPointer<UInt8>) -> Bool {
    self.transactionKey.elementsEqual(transactionKey)
  }

  func has(replayID: UnsafeBufferPointer<UInt8>) -> Bool { self.replayID.elementsEqual(replayID) }
}
