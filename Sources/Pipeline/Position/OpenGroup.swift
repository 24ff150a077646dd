/// The group of equal replay IDs at the end of a channel, while it grows.
///
/// Its rows keep their memory from group to group: in the steady state an event allocates nothing.
struct OpenGroup: Sendable {
  private var bytes: [UInt8] = []
  private var rows: [StreamPosition.RowKey] = []
  /// Rows in use, the first of `rows`.
  private var count = 0

  init() {}

  init(_ group: StreamPosition.Group) {
    self.bytes = group.replayID
    self.rows = group.rows
    self.count = group.rows.count
  }

  var isEmpty: Bool { self.count == 0 }

  var replayID: ReplayID { ReplayID(self.bytes) }

  func isAfter(_ id: ReplayID) -> Bool { !self.isEmpty && id.isCertainlyBefore(self.replayID) }

  /// The stored form; nil without rows.
  var group: StreamPosition.Group? {
    if self.isEmpty { return nil }
    return StreamPosition.Group(replayID: self.bytes, rows: Array(self.rows[..<self.count]))
  }

  func isOf(_ replayID: UnsafeBufferPointer<UInt8>) -> Bool {
    !self.isEmpty && self.bytes.elementsEqual(replayID)
  }

  mutating func removeAll() { self.count = 0 }

  mutating func begin(_ replayID: UnsafeBufferPointer<UInt8>) {
    self.count = 0
    self.bytes.replaceAll(with: replayID)
  }

  mutating func append(
    eventID: UnsafeBufferPointer<UInt8>, recordIDs: UnsafeBufferPointer<UInt8>
  ) {
    if self.count == self.rows.count {
      self.rows.append(
        StreamPosition.RowKey(eventID: Array(eventID), recordIDs: Array(recordIDs)))
    } else {
      self.rows[self.count].eventID.replaceAll(with: eventID)
      self.rows[self.count].recordIDs.replaceAll(with: recordIDs)
    }
    self.count += 1
  }

  func forEachEvent(
    _ body: (_ replayID: UnsafeBufferPointer<UInt8>, _ eventID: UnsafeBufferPointer<UInt8>) -> Void
  ) {
    self.bytes.withUnsafeBufferPointer { replayID in
      for row in self.rows[..<self.count] {
        row.eventID.withUnsafeBufferPointer { body(replayID, $0) }
      }
    }
  }
}

extension [UInt8] {
  /// Keeps the memory.
  mutating func replaceAll(with bytes: UnsafeBufferPointer<UInt8>) {
    self.removeAll(keepingCapacity: true)
    self.append(contentsOf: bytes)
  }
}
