internal import JSON
internal import Pipeline

/// The last events of a topic that a sink has taken: those with one replay ID, and the ID before.
///
/// Goes into the manifest. A lost checkpoint can be restored from it although CUSTOM is exclusive:
/// a resume begins after `after`, which is closed, and skips the events of the group.
struct StreamTail: Equatable {
  struct Place: Equatable {
    var replayID: [UInt8]
    var ordinal: Int64
  }

  var epoch: Int
  var replayID: [UInt8]
  /// Of the last event.
  var ordinal: Int64
  /// Event IDs and joined record IDs of the group, as far as this run has seen it.
  var group: [StreamPosition.RowKey]
  /// The last event before the group; nil when this run has not seen one.
  var after: Place?

  /// More than that is not written down: a restore then goes back to an earlier file.
  private static let maxGroupCount = 1000

  /// The tail once the first `count` events of a batch have been taken.
  ///
  /// - Parameters:
  ///   - previous: the tail before the batch.
  ///   - count: at least one.
  init(_ previous: StreamTail?, _ batch: RecordBatch, count: Int) {
    let previous = previous?.epoch == batch.epoch ? previous : nil
    let last = batch.events[count - 1]
    let replayID = batch.bytes(last.replayID)
    var first = count - 1
    while first > 0, batch.bytes(batch.events[first - 1].replayID).elementsEqual(replayID) {
      first -= 1
    }
    self.epoch = batch.epoch
    self.replayID = Array(replayID)
    self.ordinal = last.ordinal
    self.group = []
    if first > 0 {
      let before = batch.events[first - 1]
      self.after = Place(replayID: Array(batch.bytes(before.replayID)), ordinal: before.ordinal)
    } else if let previous, previous.replayID.elementsEqual(replayID) {
      self.group = previous.group
      self.after = previous.after
    } else {
      self.after = previous.map { Place(replayID: $0.replayID, ordinal: $0.ordinal) }
    }
    for event in batch.events[first..<count] where self.group.count <= Self.maxGroupCount {
      var recordIDs: [UInt8] = []
      batch.appendRecordIDs(of: event, to: &recordIDs)
      self.group.append(
        StreamPosition.RowKey(
          eventID: Array(batch.bytes(event.eventID)), recordIDs: recordIDs))
    }
  }

  var json: JSONValue {
    let group = self.group.count > Self.maxGroupCount ? [] : self.group
    return [
      "ordinal": .integer(self.ordinal),
      "after": self.after.map { .string(ReplayID($0.replayID).hex) } ?? nil,
      "after_ordinal": self.after.map { .integer($0.ordinal) } ?? nil,
      "group": .array(
        group.map { row -> JSONValue in
          [
            .string(String(decoding: row.eventID, as: UTF8.self)),
            .string(String(decoding: row.recordIDs, as: UTF8.self)),
          ]
        }),
    ]
  }
}
