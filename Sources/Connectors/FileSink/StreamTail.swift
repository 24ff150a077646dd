internal import JSON
internal import Pipeline

/// The last events of a topic that a sink has taken: those with the last replay ID, and the ID
/// before it.
///
/// Stored in the manifest, so that a lost checkpoint can be restored although CUSTOM is exclusive:
/// a resume begins after `after`, which is closed, and skips the events of the group. Memory is
/// reused: on a channel a batch may be a single event.
struct StreamTail {
  private(set) var epoch = 0
  /// Replay ID, event IDs and joined record IDs of the last events, as far as this run has seen
  /// them; empty before the first.
  private(set) var group = OpenGroup()
  /// The ordinal of the last event.
  private(set) var ordinal: Int64 = 0
  private var before: [UInt8] = []
  /// The ordinal of the last event before the group; nil if this run has not seen one.
  private(set) var afterOrdinal: Int64?

  /// A longer group is not stored, and a restore then uses an earlier file. A line of the manifest
  /// can be at most 16 MiB long.
  private static let maxGroupCount = 1000
  private static let maxGroupByteCount = 1 << 20

  /// The replay ID of the last event before the group.
  var after: ReplayID? { self.afterOrdinal.map { _ in ReplayID(self.before) } }

  /// Becomes equal to another tail and keeps its own memory.
  mutating func copy(_ other: Self) {
    self.epoch = other.epoch
    self.group.copy(other.group)
    self.ordinal = other.ordinal
    other.before.withUnsafeBufferPointer { self.before.replaceAll(with: $0) }
    self.afterOrdinal = other.afterOrdinal
  }

  /// Notes that the first `count` events of a batch have been taken.
  ///
  /// - Parameters:
  ///   - count: at least one.
  ///   - recordIDs: scratch.
  mutating func advance(over batch: RecordBatch, count: Int, _ recordIDs: inout [UInt8]) {
    if self.epoch != batch.epoch {
      self.epoch = batch.epoch
      self.group.removeAll()
    }
    let last = batch.events[count - 1]
    let replayID = batch.bytes(last.replayID)
    var first = count - 1
    while first > 0, batch.bytes(batch.events[first - 1].replayID).elementsEqual(replayID) {
      first -= 1
    }
    if first > 0 {
      let event = batch.events[first - 1]
      self.before.replaceAll(with: batch.bytes(event.replayID))
      self.afterOrdinal = event.ordinal
      self.group.begin(replayID)
    } else if !self.group.isOf(replayID) {
      self.afterOrdinal = self.group.isEmpty ? nil : self.ordinal
      self.group.close(&self.before)
      self.group.begin(replayID)
    }
    self.ordinal = last.ordinal
    for event in batch.events[first..<count] where !self.isGroupTooLarge {
      recordIDs.removeAll(keepingCapacity: true)
      batch.appendRecordIDs(of: event, to: &recordIDs)
      recordIDs.withUnsafeBufferPointer {
        self.group.append(eventID: batch.bytes(event.eventID), recordIDs: $0)
      }
    }
  }

  private var isGroupTooLarge: Bool {
    self.group.count > Self.maxGroupCount || self.group.byteCount > Self.maxGroupByteCount
  }

  /// Null before the first event.
  var json: JSONValue {
    guard let group = self.group.group else { return nil }
    let rows = self.isGroupTooLarge ? [] : group.rows
    return [
      "ordinal": .integer(self.ordinal),
      "after": self.after.map { .string($0.hex) } ?? nil,
      "after_ordinal": self.afterOrdinal.map { .integer($0) } ?? nil,
      "group": .array(
        rows.map { row -> JSONValue in
          [
            .string(String(decoding: row.eventID, as: UTF8.self)),
            .string(String(decoding: row.recordIDs, as: UTF8.self)),
          ]
        }),
    ]
  }
}
