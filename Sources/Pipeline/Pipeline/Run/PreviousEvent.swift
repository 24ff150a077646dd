/// The last event taken, with which the next one is compared and at which a response ends. Memory
/// is reused.
struct PreviousEvent {
  /// Empty until an event of the response has been taken.
  private(set) var replayID: [UInt8] = []
  private(set) var eventID: [UInt8] = []
  private var transactionKey: [UInt8] = []

  mutating func beginResponse() { self.replayID.removeAll(keepingCapacity: true) }

  /// - Parameter transactionKey: nil if unknown; the next event is then compared with the one
  ///   before.
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
