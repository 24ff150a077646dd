/// The group of equal replay IDs at the end of a channel, while it grows.
///
/// Its rows keep their memory from group to group: in the steady state an event allocates nothing.
package struct OpenGroup: Sendable {
  private var bytes: [UInt8] = []
  private var rows: [StreamCursor.RowKey] = []
  /// Rows in use, the first of `rows`.
  package private(set) var count = 0
  /// The total size of the names of the rows in use.
  package private(set) var byteCount = 0

  /// A checkpoint holds the rows of every open group, so a group must not grow without limit.
  package static let maxByteCount = 16 << 20
  /// The memory of the rows: their names, and an overhead per row.
  package var memoryByteCount: Int { self.byteCount + self.count * 128 }

  package init() {}

  init(_ group: StreamCursor.Group) {
    self.bytes = group.replayID
    self.rows = group.rows
    self.count = group.rows.count
    self.byteCount = group.rows.reduce(0) { $0 + $1.eventID.count + $1.recordIDs.count }
  }

  package var isEmpty: Bool { self.count == 0 }

  package var replayID: ReplayID { ReplayID(self.bytes) }

  func isAfter(_ id: ReplayID) -> Bool { !self.isEmpty && id.isCertainlyBefore(self.replayID) }

  /// The stored form; nil without rows.
  package var group: StreamCursor.Group? {
    if self.isEmpty { return nil }
    return StreamCursor.Group(replayID: self.bytes, rows: Array(self.rows[..<self.count]))
  }

  package func isOf(_ replayID: UnsafeBufferPointer<UInt8>) -> Bool {
    !self.isEmpty && self.bytes.elementsEqual(replayID)
  }

  package mutating func removeAll() { (self.count, self.byteCount) = (0, 0) }

  package mutating func begin(_ replayID: UnsafeBufferPointer<UInt8>) {
    self.removeAll()
    self.bytes.replaceAll(with: replayID)
  }

  /// Empties the group.
  ///
  /// - Parameter replayID: swapped with the group's ID, so that memory is reused.
  package mutating func close(_ replayID: inout [UInt8]) {
    self.removeAll()
    swap(&self.bytes, &replayID)
  }

  /// Becomes equal to another group and keeps its own memory.
  package mutating func copy(_ other: Self) {
    other.bytes.withUnsafeBufferPointer { self.begin($0) }
    for row in other.rows[..<other.count] {
      row.eventID.withUnsafeBufferPointer { eventID in
        row.recordIDs.withUnsafeBufferPointer {
          self.append(eventID: eventID, recordIDs: $0)
        }
      }
    }
  }

  package mutating func append(
    eventID: UnsafeBufferPointer<UInt8>, recordIDs: UnsafeBufferPointer<UInt8>
  ) {
    if self.count == self.rows.count {
      self.rows.append(
        StreamCursor.RowKey(eventID: Array(eventID), recordIDs: Array(recordIDs)))
    } else {
      self.rows[self.count].eventID.replaceAll(with: eventID)
      self.rows[self.count].recordIDs.replaceAll(with: recordIDs)
    }
    self.count += 1
    self.byteCount += eventID.count + recordIDs.count
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
  package mutating func replaceAll(with bytes: UnsafeBufferPointer<UInt8>) {
    self.removeAll(keepingCapacity: true)
    self.append(contentsOf: bytes)
  }
}
