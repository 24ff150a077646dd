/// The bytes of a cell of type `fieldSet`, with one bit per slot.
extension UnsafeBufferPointer<UInt8> {
  /// Whether the set contains a slot. A set made by the decoder ends before the slots that stages
  /// add.
  @inlinable
  @inline(__always)
  package func hasField(inSlot slot: Int) -> Bool {
    slot >> 3 < self.count && self[slot >> 3] & 1 << UInt8(slot & 7) != 0
  }
}
