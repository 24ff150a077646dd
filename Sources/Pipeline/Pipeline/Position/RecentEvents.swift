/// The last events of a topic, by replay ID and event ID, which a resumed stream may send again.
///
/// A ring whose slots keep their memory: adding an event allocates nothing once every slot has
/// held an ID of that length.
package struct RecentEvents: Sendable {
  package static let capacity = 128

  private struct Slot: Sendable {
    var replayID: [UInt8] = []
    var eventID: [UInt8] = []
  }

  private var slots: [Slot] = []
  /// The slot that is overwritten next, once the ring is full.
  private var next = 0

  package init() {}

  package mutating func append(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>
  ) {
    if self.slots.count < Self.capacity {
      self.slots.append(Slot(replayID: Array(replayID), eventID: Array(eventID)))
      return
    }
    self.slots[self.next].replayID.replaceAll(with: replayID)
    self.slots[self.next].eventID.replaceAll(with: eventID)
    self.next = (self.next + 1) % Self.capacity
  }

  package func contains(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    self.slots.contains {
      $0.replayID.elementsEqual(replayID) && $0.eventID.elementsEqual(eventID)
    }
  }

  /// Oldest first.
  package var entries: [(replayID: [UInt8], eventID: [UInt8])] {
    (self.slots[self.next...] + self.slots[..<self.next]).map { ($0.replayID, $0.eventID) }
  }
}
